"""Plays one random history of a CRD, and judges after each step what the objects show and hold.

After every run of a tool: nothing that a version could show is lost, unless its path was accepted;
nothing is claimed that the bytes in etcd deny; an undo returns the state of before.
``test_loss_histories.py`` draws the histories.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from instar.base.json_values import ABSENT, differing
from instar.tools.migrator.live_crd import USER_AGENT
from instar.tools.migrator.preflight import fetch_crd
from instar.tools.migrator.progress_file import ProgressFile
from instar.tools.migrator.report import MigrationReport
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.migrator.rewrite_checks.pass_record import save_record
from instar.tools.migrator.undo.journal import UndoJournal
from instar.tools.migrator.undo.put_back import ObjectRestorer, UndoReport
from instar.wire.client.paths import crd_path
from tests.migrator.loss_cluster import LossCluster, Strike
from tests.migrator.loss_subject import History, LossSubject, nothing_happens
from tests.migrator.running import QUICK, Silent, command, instar, migrated
from tests.migrator.support import client, group_of, name_of, objects_path
from tests.support.webhook import relabel

MERGE = "application/merge-patch+json"
LEGACY = ("spec.legacy", "spec.heritage", "spec.replicas")
"""What the planted losses drop, and the default of v1."""
PATIENT = RetryPolicy(attempts=30, first_delay=0.05, longest_delay=0.3)
"""Outlasts the restart of a killed server."""


class Play(LossSubject):
    def __init__(self, cluster: LossCluster, history: History) -> None:
        super().__init__(cluster, history)
        self.flip()
        cluster.hook.convert = self.convert
        self.accepted = False
        self.before_run: Mapping[str, Any] | None = None
        self.written: set[str] = set()
        """Objects that another client wrote, or that left the store, since the run began."""
        self.raced_objects: set[str] = set()
        """Objects that another client wrote during the present run."""
        self.ended = False

    def play(self) -> None:
        try:
            for step in self.history.steps:
                if self.ended:
                    break
                self.cluster.steps[step] += 1
                getattr(self, step.replace("-", "_"))()
                self.census_denies_nothing()
        finally:
            self.cluster.wait_for_server()
            self.api.passing = nothing_happens
            self.cluster.hook.convert = relabel
            self.api.request("DELETE", crd_path(name_of(self.definition)))

    # --- steps: runs of tools --------------------------------------------------------------------

    def migrate(self) -> None:
        self._run()

    def keep_going(self) -> None:
        self._run(keep_going=True)

    def accept(self) -> None:
        self._run(keep_going=True, accept_changes=LEGACY)

    def server_killed(self) -> None:
        """kill -9 of the API server at some write; it is started again at once."""
        self._strike(lambda path: self.cluster.kill_server())
        self._run(keep_going=True, patience=PATIENT)

    def raced(self) -> None:
        """Another client changes the object that is about to be written, or was just written."""
        self._strike(lambda path: self._edit(path.rpartition("/")[2]))
        self._run(keep_going=True)

    def flipped_midway(self) -> None:
        """The CRD changes its storage version between two writes of a run: from then on every
        write by any client may lose what the new one cannot hold. What the run wrote then is
        in its journal, and comes back with the storage version."""
        before, storage = self.readings(), self.storage
        self._strike(lambda path: self.store_at(self.other_version()))
        self._run(keep_going=True, judged=False)
        if self._lost(before, ()):
            self.store_at(storage)
            self._undone()
            assert self.readings() == before
        self.storage = self.storage_now()
        self.before_run = None

    def tool_killed(self) -> None:
        """kill -9 of ``instar migrate`` at some write."""
        before, goes_on = self.readings(), self._progress.exists()
        self.accepted = False
        words = ["migrate", name_of(self.definition), "--progress", str(self._progress)]
        words += ["--keep-going", "--settle", "0", "--page", "3", "--concurrency", "2"]
        with subprocess.Popen(
            command(self.api, *words, "--retries", "1"), stdout=subprocess.PIPE, stderr=-2
        ) as process:
            self._strike(lambda path: process.send_signal(signal.SIGKILL))
            told = process.communicate(timeout=120)[0].decode()
        self.api.passing = nothing_happens
        assert "Traceback" not in told, told
        assert process.returncode in (0, 1, -signal.SIGKILL), told
        if self._lost(before, ()):
            # Some writes make a kube-apiserver forget the owners. The tool writes them again at
            # once, and was killed between the two; they are in its journal.
            assert self.api.is_real
            assert all(": metadata.managedFields" in text for text in self._lost(before, ()))
            self._undone()
            self._nothing_is_lost(before, ())
        self._note_run(before, goes_on)

    def undo(self) -> None:
        """Back to the state before the last run, as far as no other client wrote since."""
        if self.before_run is None or not self._journal.exists():
            return
        report = self._undone()
        unrestored = self._unrestored(report)
        now = self.readings()
        for place, reading in self.before_run.items():
            name = place.rpartition("/")[2]
            if name not in self.written and name not in unrestored:
                assert now.get(place) == reading, f"{place}: {list(differing(reading, now[place]))}"
        # Twice is once.
        self._undone()
        assert self.readings() == now

    def remove(self) -> None:
        """``instar versions remove`` of v1beta1: only when no byte is at it."""
        name, before = name_of(self.definition), self.readings()
        assert instar(self.api, "versions", name, "unserve", "v1beta1", "--clients-migrated")
        done = instar(self.api, "versions", name, "remove", "v1beta1", "--settle", "0")
        assert "Traceback" not in done.stderr, done.stderr
        if done.returncode == 0:
            assert not self.stored_versions()["v1beta1"], done.stdout
            self.versions = tuple(v for v in self.versions if v != "v1beta1")
            kept = {k: v for k, v in before.items() if not k.startswith("v1beta1/")}
            self._nothing_is_lost(kept, ())
            self.ended = True
            return
        instar(self.api, "versions", name, "serve", "v1beta1")
        self._nothing_is_lost(before, ())

    def upgrade(self) -> None:
        """``instar upgrade`` to a release that has v1 alone."""
        before, values = self.readings(), self.values()
        release = json.loads(json.dumps(self.definition))
        (v1,) = (v for v in release["spec"]["versions"] if v["name"] == "v1")
        release["spec"]["versions"] = [{**v1, "storage": True}]
        release["spec"].pop("conversion", None)
        file = self.folder / "release.json"
        file.write_text(json.dumps(release))
        words = ["--fail-on", "none", "--settle", "0", "--retries", "2", "--concurrency", "2"]
        done = instar(self.api, "upgrade", str(file), *words)
        assert "Traceback" not in done.stderr, done.stderr
        self.before_run = None
        if done.returncode == 0:
            self.versions, self.ended = ("v1",), True
            assert set(self.stored_versions()) <= {"v1"}, done.stdout
            assert values <= self.values(), done.stdout
            return
        self.storage = self.storage_now()
        self._nothing_is_lost(before, ())

    # --- steps: what others do -------------------------------------------------------------------

    def lie(self) -> None:
        path = crd_path(name_of(self.definition), subresource="status")
        body = {"status": {"storedVersions": [self.storage]}}
        assert self.api.request("PATCH", path, body, content_type=MERGE).status == 200

    def by_hand(self) -> None:
        """An object of the other version, as no API server would have written it now."""
        name = self.names[0]
        key = f"{self.prefix}default/{name}"
        obj = json.loads(self.cluster.stored(key).get("", b"{}"))
        if not obj:
            return
        obj["apiVersion"] = f"{group_of(self.definition)}/v1beta1"
        obj["spec"].pop("heritage", None)
        obj["spec"]["legacy"] = "by hand"
        self.cluster.store(key, json.dumps(obj).encode())
        self.written.add(name)
        self.by_hands.add(name)

    def bad(self) -> None:
        """Bytes that no API server can decode, for the length of one run."""
        key = f"{self.prefix}default/{self.names[0]}"
        kept = self.cluster.stored(key).get("")
        if kept is None:
            return
        self.cluster.store(key, b"no json")
        self.names, names = self.names[1:], self.names
        try:
            self._run(keep_going=True)
        finally:
            self.cluster.store(key, kept)
            self.names = names
        self.written.add(self.names[0])
        self.by_hands.add(self.names[0])

    def flip(self) -> None:
        self.storage = self.other_version()
        self.store_at(self.storage)
        self.before_run = None

    def edit(self) -> None:
        self._edit(self.names[-1])

    def delete(self) -> None:
        """Another client deletes an object for good."""
        if len(self.names) > 1:
            name = self.names.pop()
            self.api.request("DELETE", objects_path(self.definition, "v1beta1", name))
            self.written.add(name)

    # --- how a run is made and judged ------------------------------------------------------------

    @property
    def _progress(self) -> Any:
        return self.folder / "x.progress"

    @property
    def _journal(self) -> Any:
        return self.folder / "x.undo"

    def _strike(self, act: Callable[[str], None]) -> None:
        strike = Strike(self.history.strike, act, late=self.history.late)
        marker = f"/apis/{group_of(self.definition)}/"

        def passing(method: str, path: str, answered: bool) -> bool:
            return path.startswith(marker) and strike.passing(path, answered=answered)

        self.api.passing = passing

    def _run(self, *, judged: bool = True, **options: Any) -> None:
        before, goes_on = self.readings(), self._progress.exists()
        accepted = options.get("accept_changes", ())
        self.accepted = bool(accepted)
        journal = ProgressFile(self._progress)
        undo = UndoJournal(self._journal)
        report: MigrationReport | None = None
        try:
            report = migrated(
                self.api, self.definition, journal=journal, undo=undo, progress=Silent(),
                page=3, concurrency=2, **options,
            )  # fmt: skip
        finally:
            self.api.passing = nothing_happens
            self.cluster.wait_for_server()
            journal.close(remove=report is not None and report.ok)
            undo.close()
        if judged:
            self._nothing_is_lost(before, accepted)
        if report.pruned:
            written = report.plan.live.storage
            lying = {v for v, count in self.stored_versions().items() if count}
            assert lying <= {written, self.storage_now()}, lying
        if report.ok:
            save_record(report.pass_record())
            self.by_hands = set()
        self._note_run(before, goes_on)

    def _note_run(self, before: Mapping[str, Any], goes_on: bool) -> None:
        if self.before_run is None or not goes_on:
            # Every run that does not go on with another one has a journal of its own.
            self.before_run = before
            self.written = {name for name in self.written if name in self.raced_objects}
        self.raced_objects = set()

    def _nothing_is_lost(self, before: Mapping[str, Any], accepted: tuple[str, ...]) -> None:
        lost = self._lost(before, accepted)
        assert not lost, "; ".join(lost)

    def _lost(self, before: Mapping[str, Any], accepted: tuple[str, ...]) -> list[str]:
        """Return what a version showed before and does not show now, beyond what was accepted."""
        now, found = self.readings(), []
        for place, reading in before.items():
            if place not in now:
                found.append(f"{place} is gone")
                continue
            raced = place.rpartition("/")[2] in self.raced_objects
            for path, old, new in differing(reading, now[place]):
                kept = old is ABSENT or path in accepted or (raced and path == "spec.host")
                if path.startswith("metadata.managedFields"):
                    # The owner of an accepted change is part of the change.
                    owners = now[place]["metadata"]["managedFields"]
                    kept = bool(accepted) or raced
                    kept = kept or set(reading["metadata"]["managedFields"]) <= set(owners)
                if not kept:
                    found.append(f"{place}: {path}: {old} -> {new}")
        return found

    def _unrestored(self, report: UndoReport) -> set[str]:
        """Accepted losses that the storage version cannot hold: the report must say so."""
        wrong = {o.key.rpartition("/")[2] for o in report.objects if o.state == "not restored"}
        assert not wrong or self.accepted, report.lines()
        return wrong

    def _undone(self) -> UndoReport:
        async def work() -> UndoReport:
            journal = UndoJournal(self._journal)
            try:
                journal.reopen()
                async with client(self.api, user_agent=USER_AGENT) as api:
                    live = await fetch_crd(api, name_of(self.definition))
                    restorer = ObjectRestorer(api, live, QUICK, journal)
                    return await restorer.put_all_back(Silent())
            finally:
                journal.close()

        return asyncio.run(work())

    def _edit(self, name: str) -> None:
        path = objects_path(self.definition, "v1beta1", name)
        answer = self.api.request("PATCH", path, {"spec": {"host": "edited"}}, content_type=MERGE)
        if answer.status == 200:
            self.written.add(name)
            self.raced_objects.add(name)
