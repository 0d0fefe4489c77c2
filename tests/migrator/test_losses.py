"""A rewrite never loses a field: proven before it, journalled, put back, undone."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from instar.base.json_values import Object
from instar.tools.migrator.outcomes import Fate
from instar.tools.migrator.progress_file import ProgressFile, default_path
from instar.tools.migrator.undo.journal import UndoJournal, UndoJournalError, journal_path
from tests.migrator.running import Silent, command, instar, migrated
from tests.migrator.support import (
    edit_crd,
    lossy_crd,
    name_of,
    objects_path,
    schema,
    stale_crd,
    store_at,
    stored_versions,
    with_legacy,
)
from tests.migrator.upstream import Upstream
from tests.support.server import LiveServer
from tests.support.waiting import eventually
from tests.support.webhook import Webhook, relabel

MERGE = "application/merge-patch+json"
LATE = range(100, 300)


def _readings(server: LiveServer, definition: Object) -> dict[str, Any]:
    """Every object at every version, without what a write counts up."""
    found = {}
    for version in ("v1beta1", "v1"):
        for item in server.request("GET", objects_path(definition, version)).json["items"]:
            for name in ("resourceVersion", "generation"):
                item["metadata"].pop(name, None)
            for entry in item["metadata"].get("managedFields") or ():
                entry.pop("time", None)
            found[f"{version}/{item['metadata']['name']}"] = item
    return found


def _journal_of(server: LiveServer, definition: Object) -> Path:
    from instar.wire.client.kubeconfig import load_access

    return journal_path(default_path(name_of(definition), load_access(server.kubeconfig).server))


def test_a_plan_names_the_fields_that_would_be_lost_with_counts_and_an_example(
    server: LiveServer,
) -> None:
    definition = lossy_crd(server, 300, LATE)

    planned = instar(server, "migrate", name_of(definition), "--plan")

    assert planned.returncode == 1
    assert "spec.legacy at v1beta1 would be lost: 200 objects, for example default/w00100" in (
        planned.stdout
    )
    assert "conversion None keeps only fields that v1's schema has" in planned.stdout
    assert "--accept-change spec.legacy" in planned.stdout


def test_a_dry_run_names_the_fields_that_would_be_lost(server: LiveServer) -> None:
    definition = lossy_crd(server, 60, range(30, 60))

    tried = instar(server, "migrate", name_of(definition), "--dry-run", "--output", "json")

    (document,) = json.loads(tried.stdout)
    assert tried.returncode == 1
    assert document["objects"] == {"would-pass": 30, "refused": 30}
    (change,) = document["changes"]
    assert (change["field"], change["objects"]) == ("spec.legacy", 30)


def test_no_object_that_would_lose_a_field_is_written(server: LiveServer) -> None:
    definition = lossy_crd(server, 300, LATE)

    run = instar(server, "migrate", name_of(definition))

    assert run.returncode == 1
    assert "spec.legacy" in run.stdout
    assert "none of them was written" in run.stdout
    assert with_legacy(server, definition) == 200
    assert stored_versions(server, definition) == ["v1beta1", "v1"]


def test_the_other_objects_are_written_with_keep_going(server: LiveServer) -> None:
    definition = lossy_crd(server, 60, range(30, 60))

    report = migrated(server, definition, keep_going=True, undo=UndoJournal())

    assert report.counts == {Fate.REWRITTEN: 30, Fate.REFUSED: 30}
    assert with_legacy(server, definition) == 30
    assert not report.pruned


def test_an_accepted_path_is_lost_and_an_undo_brings_it_back(server: LiveServer) -> None:
    definition = lossy_crd(server, 40, range(10, 40))
    before = _readings(server, definition)
    accept = ("--accept-change", "spec.legacy")

    run = instar(server, "migrate", name_of(definition), *accept)

    assert run.returncode == 0, run.stdout
    assert with_legacy(server, definition) == 0
    journal = _journal_of(server, definition)
    first = instar(server, "migrate", "--undo", str(journal))
    assert first.returncode == 1
    assert "make the version that shows it the storage version" in first.stdout
    store_at(server, definition, "v1beta1")
    undone = instar(server, "migrate", "--undo", str(journal))
    assert undone.returncode == 0, undone.stdout
    assert with_legacy(server, definition) == 30
    assert _readings(server, definition) == before


def test_a_journal_can_be_read_by_its_owner_alone(server: LiveServer) -> None:
    definition = stale_crd(server, 5)
    old = os.umask(0)
    try:
        assert instar(server, "migrate", name_of(definition)).returncode == 0
    finally:
        os.umask(old)

    journal = _journal_of(server, definition)
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600


def test_a_journal_that_would_grow_too_large_stops_the_run_before_its_page(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = stale_crd(server, 30)
    undo = UndoJournal(tmp_path / "x.undo", limit=8_000)

    report = migrated(server, definition, undo=undo, page=10)

    undo.close()
    assert "would exceed" in report.stopped
    assert report.counts[Fate.REWRITTEN] == 20
    assert not report.pruned


def test_three_journals_of_earlier_runs_are_kept(tmp_path: Path) -> None:
    from instar.tools.migrator.listed_object import ListedObject
    from instar.tools.migrator.undo.journal import JournalSubject

    for number in range(6):
        undo = UndoJournal(tmp_path / "x.undo")
        undo.begin(JournalSubject("s", "c", str(number)), resumed=False)
        undo.record([ListedObject("a", "u", "1", readings={"v1": {"metadata": {}}})])
        undo.close()

    kept = sorted(path.name for path in tmp_path.iterdir() if ".lock" not in path.name)
    assert kept == ["x.undo", "x.undo.1", "x.undo.2", "x.undo.3"]


def test_another_process_cannot_use_the_same_journal(tmp_path: Path) -> None:
    undo = UndoJournal(tmp_path / "x.undo")

    with pytest.raises(UndoJournalError, match="another instar process"):
        UndoJournal(tmp_path / "x.undo")
    undo.close()


def test_changes_that_a_conversion_makes_only_on_write_are_put_back_at_once(
    server: LiveServer,
) -> None:
    """The webhook shows another host at v1beta1 as soon as it has a mark that writes leave: no
    dry run foretells it."""
    with Webhook() as hook:
        definition = stale_crd(server, 30, conversion=hook.conversion())
        broken: set[str] = set()

        def convert(obj: Object, wanted: str) -> Object:
            out = relabel(obj, wanted)
            if wanted.endswith("/v1beta1") and obj["metadata"]["name"] in broken:
                return {**out, "spec": {**out["spec"], "host": "broken"}}
            return out

        class Breaking(Silent):
            """Called between the write of an object and the look at it."""

            def advance(self, count: int) -> None:
                super().advance(count)
                if self.advanced == 23:
                    broken.add("w00022")

        hook.convert = convert
        undo = UndoJournal()
        report = migrated(server, definition, undo=undo, page=5, concurrency=1, progress=Breaking())
        undo.close()

    assert "spec.host" in report.stopped
    assert report.counts[Fate.DIFFERS] == 1
    (item,) = report.put_back.objects
    assert item.key == "default/w00022"
    assert "it is not restored: spec.host at v1beta1" in report.quarantine[0].message


def test_changes_by_mutating_admission_are_found_before_the_write(
    server: LiveServer,
) -> None:
    definition = stale_crd(server, 5)
    policy = _mutating_policy(definition)
    for item in policy:
        answer = server.request("POST", item.pop("path"), item)
        assert answer.status == 201, answer.text

    def refused() -> bool:
        report = migrated(server, definition, dry_run=True)
        return bool(report.counts.get(Fate.REFUSED))

    eventually(refused)
    report = migrated(server, definition, undo=UndoJournal())
    assert "spec.host" in report.stopped
    assert "a mutating admission webhook or policy" in report.stopped
    assert Fate.REWRITTEN not in report.counts


def _mutating_policy(definition: Object) -> list[Object]:
    base = "/apis/admissionregistration.k8s.io/v1"
    name = definition["spec"]["group"]
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    rule = {
        "apiGroups": [name],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["widgets"],
    }
    expression = 'Object{spec: Object.spec{host: "mutated"}}'
    return [
        {
            **head,
            "path": f"{base}/mutatingadmissionpolicies",
            "kind": "MutatingAdmissionPolicy",
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "mutations": [
                    {
                        "patchType": "ApplyConfiguration",
                        "applyConfiguration": {"expression": expression},
                    }
                ],
            },
        },
        {
            **head,
            "path": f"{base}/mutatingadmissionpolicybindings",
            "kind": "MutatingAdmissionPolicyBinding",
            "spec": {"policyName": name},
        },
    ]


def test_an_undo_waits_until_every_api_server_knows_the_crd(
    server: LiveServer, cluster: Upstream
) -> None:
    definition = stale_crd(server, 5)
    quick = ("migrate", name_of(definition), "--settle", "0")
    assert instar(cluster, *quick).returncode == 0
    journal = str(_journal_of(cluster, definition))

    foreign = instar(cluster, "migrate", "--undo", journal, "--settle", "0.2")
    own = instar(server, "migrate", "--undo", journal, "--settle", "0.2")

    waits = "waiting 0.2 s for every API server to know the CRD"
    assert (foreign.returncode, own.returncode) == (0, 0)
    assert waits in foreign.stderr
    assert waits not in own.stderr


def test_an_undo_leaves_alone_what_another_client_wrote_since(server: LiveServer) -> None:
    definition = stale_crd(server, 5)
    assert instar(server, "migrate", name_of(definition)).returncode == 0
    path = objects_path(definition, "v1", "w00002")
    server.request("PATCH", path, {"spec": {"host": "mine"}}, content_type=MERGE)

    undone = instar(server, "migrate", "--undo", str(_journal_of(server, definition)))

    assert undone.returncode == 1
    assert "default/w00002: changed since" in undone.stdout
    assert server.request("GET", path).json["spec"]["host"] == "mine"


def test_an_undo_of_an_undo_changes_nothing(server: LiveServer) -> None:
    definition = stale_crd(server, 5)
    assert instar(server, "migrate", name_of(definition)).returncode == 0
    journal = str(_journal_of(server, definition))
    assert instar(server, "migrate", "--undo", journal).returncode == 0
    before = server.request("GET", objects_path(definition, "v1")).json["items"]

    again = instar(server, "migrate", "--undo", journal)

    assert again.returncode == 0
    assert server.request("GET", objects_path(definition, "v1")).json["items"] == before


def test_an_undo_without_a_journal_is_reported_in_one_line(
    server: LiveServer, tmp_path: Path
) -> None:
    missing = instar(server, "migrate", "--undo", str(tmp_path / "no.undo"))
    (tmp_path / "x.undo").write_text("no database")
    broken = instar(server, "migrate", "--undo", str(tmp_path / "x.undo"))

    assert (missing.returncode, broken.returncode) == (1, 1)
    assert "there is no such journal" in missing.stderr
    assert broken.stderr.count("\n") == 1


def test_a_killed_run_leaves_a_journal_that_undoes_it(server: LiveServer) -> None:
    definition = lossy_crd(server, 200, range(200))
    before = _readings(server, definition)
    words = ["migrate", name_of(definition), "--accept-change", "spec.legacy", "--page", "20"]
    run = subprocess.Popen(
        command(server, *words, "--concurrency", "1", "--qps", "150"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: with_legacy(server, definition) < 150)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    store_at(server, definition, "v1beta1")

    undone = instar(server, "migrate", "--undo", str(_journal_of(server, definition)))

    assert undone.returncode == 0, undone.stdout
    assert with_legacy(server, definition) == 200
    assert _readings(server, definition) == before


def test_a_default_of_the_storage_version_is_reported_as_a_default(server: LiveServer) -> None:
    replicas = {"type": "integer", "default": 3}
    definition = stale_crd(server, 3, schemas={"v1": schema(replicas=replicas)})

    refused = instar(server, "migrate", name_of(definition))
    accepted = instar(server, "migrate", name_of(definition), "--accept-change", "spec.replicas")

    assert refused.returncode == 1
    assert "a default of v1's schema" in refused.stdout
    assert "webhook" not in refused.stdout
    assert accepted.returncode == 0, accepted.stdout


def test_fields_of_a_version_that_is_not_served_are_not_risked(
    server: LiveServer, cluster: LiveServer
) -> None:
    definition = lossy_crd(server, 10, range(5))

    def unserve(current: Object) -> None:
        for item in current["spec"]["versions"]:
            item["served"] = item["name"] != "v1beta1"

    edit_crd(server, definition, unserve)

    for api in (server, cluster):
        run = instar(api, "migrate", name_of(definition), "--settle", "0")
        assert run.returncode == 1
        assert "objects stored at v1beta1 may hold spec.legacy" in run.stdout
        assert f"instar versions {name_of(definition)} serve v1beta1" in run.stdout


def test_a_run_that_continues_keeps_the_first_reading_of_an_object(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = lossy_crd(server, 30, range(30))
    before = _readings(server, definition)
    journal = ProgressFile(tmp_path / "x.progress")
    for _ in range(2):
        undo = UndoJournal(tmp_path / "x.undo")
        report = migrated(
            server, definition, journal=journal, undo=undo, accept_changes=("spec.legacy",)
        )
        undo.close()
    journal.close()
    assert report.ok, report.lines()
    store_at(server, definition, "v1beta1")

    undone = instar(server, "migrate", "--undo", str(tmp_path / "x.undo"))

    assert undone.returncode == 0, undone.stdout
    assert _readings(server, definition) == before
