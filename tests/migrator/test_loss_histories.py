"""Random histories of CRDs, objects, conversions, kills and lies, on a real etcd.

After every run of the migrator: nothing that a version could show is lost, unless its path was
accepted; nothing is claimed that the bytes in etcd deny; an undo returns the state of before. The
two critical cases of data loss are the first examples.

``INSTAR_LOSS_HISTORIES=500 pytest tests/migrator/test_loss_histories.py`` plays five hundred.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import ABSENT, Object, differing
from instar.tools.migrator.census.version_census import estimate
from instar.tools.migrator.live_crd import USER_AGENT
from instar.tools.migrator.preflight import fetch_crd
from instar.tools.migrator.progress_file import ProgressFile
from instar.tools.migrator.report import MigrationReport
from instar.tools.migrator.undo.journal import UndoJournal
from instar.tools.migrator.undo.put_back import ObjectRestorer, UndoReport
from instar.wire.client.paths import crd_path
from tests.migrator.loss_cluster import KilledJournal, LossCluster
from tests.migrator.running import QUICK, Silent, migrated
from tests.migrator.support import (
    client,
    crd,
    edit_crd,
    group_of,
    name_of,
    objects_path,
    schema,
)
from tests.support.webhook import relabel

HISTORIES = int(os.environ.get("INSTAR_LOSS_HISTORIES", "12"))
SHRINKS = bool(os.environ.get("INSTAR_LOSS_SHRINK"))
VERSIONS = ("v1beta1", "v1")
MERGE = "application/merge-patch+json"
LEGACY = "spec.legacy"


@dataclass(frozen=True)
class History:
    conversion: str
    """``none``, ``webhook``, ``lossy`` (v1 forgets spec.legacy) or ``flapping``."""
    default: bool
    """Whether v1 has a default that v1beta1 has not."""
    objects: tuple[tuple[str, bool], ...]
    """The version each is written at, and whether it sets spec.legacy where that exists."""
    steps: tuple[str, ...]


STEPS = (
    "migrate",
    "keep-going",
    "accept",
    "killed",
    "lie",
    "by-hand",
    "bad",
    "undo",
    "flip",
    "edit",
)
histories = st.builds(
    History,
    conversion=st.sampled_from(["none", "none", "webhook", "lossy", "flapping"]),
    default=st.sampled_from([False, False, True]),
    objects=st.lists(
        st.tuples(st.sampled_from(VERSIONS), st.booleans()), min_size=2, max_size=8
    ).map(tuple),
    steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=6).map(tuple),
)
LATE_OBJECTS = History(
    "none", False, (("v1beta1", False),) * 5 + (("v1beta1", True),) * 3, ("migrate",)
)
KILLED_AFTER_ACCEPTED = History(
    "lossy", False, (("v1beta1", True), ("v1", True)), ("accept", "killed", "undo", "flip", "undo")
)
FALSE_STORED = History("none", False, (("v1beta1", False),) * 4, ("lie", "migrate"))


class Play:
    """One history."""

    def __init__(self, cluster: LossCluster, history: History) -> None:
        self.cluster, self.history, self.api = cluster, history, cluster.api
        cluster.played += 1
        self.folder = cluster.folder / f"history{cluster.played}"
        self.folder.mkdir()
        remote = history.conversion != "none"
        later = {"replicas": {"type": "integer", "default": 3}} if history.default else {}
        schemas = {"v1beta1": schema("legacy"), "v1": schema(**later)}
        if remote:
            schemas["v1"] = schema("legacy", **later)
        changes: dict[str, Any] = {"conversion": cluster.hook.conversion()} if remote else {}
        self.definition = crd(schemas=schemas, **changes)
        self.asked = 0
        cluster.hook.convert = relabel
        self.api.create_crd(self.definition)
        self.names: list[str] = []
        for version, legacy in history.objects:
            self.create(version, legacy)
        self.storage = "v1beta1"
        self.flip()
        self.api.meddle = lambda method, path, body: None
        cluster.hook.convert = self.convert
        self.accepted = False
        self.before_run: Mapping[str, Any] | None = None
        self.written: set[str] = set()

    def convert(self, obj: Object, wanted: str) -> Object:
        self.asked += 1
        if self.history.conversion == "flapping" and self.asked % 7 == 0:
            raise RuntimeError("out of luck")
        out = relabel(obj, wanted)
        if self.history.conversion == "lossy" and wanted.endswith("/v1"):
            spec = {name: value for name, value in out["spec"].items() if name != "legacy"}
            return {**out, "spec": spec}
        return out

    def create(self, version: str, legacy: bool) -> None:
        name = f"w{len(self.names):03d}"
        spec: Object = {"host": name, "size": len(self.names)}
        if legacy and version == "v1beta1":
            spec["legacy"] = f"kept-{name}"
        body = {
            "apiVersion": f"{group_of(self.definition)}/{version}",
            "kind": "Widget",
            "metadata": {"name": name},
            "spec": spec,
        }
        answer = self.api.request("POST", objects_path(self.definition, version), body)
        assert answer.status == 201, answer.text
        self.names.append(name)

    def play(self) -> None:
        for step in self.history.steps:
            self.cluster.runs[step] += 1
            getattr(self, step.replace("-", "_"))()
            self.census_denies_nothing()
        self.api.request("DELETE", crd_path(name_of(self.definition)))

    def migrate(self) -> None:
        self._run()

    def keep_going(self) -> None:
        self._run(keep_going=True)

    def accept(self) -> None:
        self._run(keep_going=True, accept_changes=(LEGACY, "spec.replicas"))

    def killed(self) -> None:
        self._run(killed=True)

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
        obj["spec"]["legacy"] = "by hand"
        self.cluster.store(key, json.dumps(obj).encode())
        self.written.add(name)

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

    def undo(self) -> None:
        """Back to the state before the last run, as far as no other client wrote since."""
        path = self.folder / "x.undo"
        if self.before_run is None or not path.exists():
            return
        report = self._undone(path)
        now = self._readings()
        for place, reading in self.before_run.items():
            name = place.rpartition("/")[2]
            if name in self.written or name in self.unrestored(report):
                continue
            assert now.get(place) == reading, f"{place}: {list(differing(reading, now[place]))}"

    def unrestored(self, report: UndoReport) -> set[str]:
        """Accepted losses that the storage version cannot hold: the report must say so."""
        wrong = {o.key.rpartition("/")[2] for o in report.objects if o.state == "not restored"}
        assert not wrong or self.accepted, report.lines()
        return wrong

    def flip(self) -> None:
        self.storage = "v1" if self.storage == "v1beta1" else "v1beta1"

        def change(current: Object) -> None:
            for item in current["spec"]["versions"]:
                item["storage"] = item["name"] == self.storage

        edit_crd(self.api, self.definition, change)
        self.before_run = None

    def edit(self) -> None:
        name = self.names[-1]
        path = objects_path(self.definition, "v1beta1", name)
        answer = self.api.request("PATCH", path, {"spec": {"host": "edited"}}, content_type=MERGE)
        if answer.status == 200:
            self.written.add(name)

    @property
    def prefix(self) -> str:
        return f"{group_of(self.definition)}/widgets/"

    def _run(self, *, killed: bool = False, **options: Any) -> None:
        before = self._readings()
        goes_on = (self.folder / "x.progress").exists()
        accepted = options.get("accept_changes", ())
        self.accepted = bool(accepted)
        journal = (KilledJournal if killed else ProgressFile)(self.folder / "x.progress")
        undo = UndoJournal(self.folder / "x.undo")
        report: MigrationReport | None = None
        try:
            report = migrated(
                self.api, self.definition, journal=journal, undo=undo, progress=Silent(),
                page=3, concurrency=2, **options,
            )  # fmt: skip
        except KeyboardInterrupt:
            pass
        finally:
            journal.close(remove=report is not None and report.ok)
            undo.close()
        self._nothing_is_lost(before, accepted)
        if report is not None and report.pruned:
            lying = {json.loads(value)["apiVersion"] for value in self._stored().values()}
            assert lying <= {f"{group_of(self.definition)}/{self.storage}"}, lying
        if self.before_run is None or not goes_on:
            # Every run that does not go on with another one has a journal of its own.
            self.before_run, self.written = before, set()

    def _nothing_is_lost(self, before: Mapping[str, Any], accepted: tuple[str, ...]) -> None:
        now = self._readings()
        for place, reading in before.items():
            assert place in now, f"{place} is gone"
            for path, old, new in differing(reading, now[place]):
                kept = old is ABSENT or path in accepted
                if path.startswith("metadata.managedFields"):
                    # Who owns an accepted change is part of the change.
                    owners = now[place]["metadata"]["managedFields"]
                    kept = bool(accepted) or set(reading["metadata"]["managedFields"]) <= set(
                        owners
                    )
                assert kept, f"{place}: {path}: {old} -> {new}"

    def _undone(self, path: Path) -> UndoReport:
        async def work() -> UndoReport:
            journal = UndoJournal(path)
            try:
                journal.reopen()
                async with client(self.api, user_agent=USER_AGENT) as api:
                    live = await fetch_crd(api, name_of(self.definition))
                    restorer = ObjectRestorer(api, live, QUICK, journal)
                    return await restorer.put_all_back(Silent())
            finally:
                journal.close()

        return asyncio.run(work())

    def _stored(self) -> dict[str, bytes]:
        return self.cluster.stored(self.prefix)

    def _readings(self) -> dict[str, Any]:
        """Every object at every version with a steady webhook, without bookkeeping."""
        found: dict[str, Any] = {}
        flapping, self.asked = self.asked, 1
        for version in VERSIONS:
            for name in self.names:
                for _ in range(3):
                    answer = self.api.request("GET", objects_path(self.definition, version, name))
                    if answer.status == 200:
                        break
                if answer.status != 200:
                    continue
                obj = answer.json
                metadata = obj["metadata"]
                for part in ("resourceVersion", "generation"):
                    metadata.pop(part, None)
                metadata["managedFields"] = sorted(
                    (entry["manager"], entry["operation"], json.dumps(entry["fieldsV1"]))
                    for entry in metadata.get("managedFields") or ()
                )
                found[f"{version}/{name}"] = obj
        self.asked = flapping
        return found

    def census_denies_nothing(self) -> None:
        async def work() -> Any:
            async with client(self.api) as api:
                return await estimate(api, await fetch_crd(api, name_of(self.definition)))

        census = asyncio.run(work())
        lying = Counter(
            json.loads(value)["apiVersion"].rpartition("/")[2] for value in self._stored().values()
        )
        for version in VERSIONS:
            assert census.counts.get(version, 0) <= lying[version], census
            assert not census.counted or lying[version] <= census.at_most(version), census


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LossCluster]:
    with ExitStack() as stack:
        yield LossCluster(tmp_path_factory.mktemp("losses"), stack)


@settings(
    max_examples=HISTORIES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    phases=[phase for phase in Phase if SHRINKS or phase is not Phase.shrink],
)
@example(history=LATE_OBJECTS)
@example(history=FALSE_STORED)
@example(history=KILLED_AFTER_ACCEPTED)
@given(history=histories)
def test_no_history_loses_what_a_version_could_show(cluster: LossCluster, history: History) -> None:
    Play(cluster, history).play()
