"""``instar migrate`` when objects, webhooks or the cluster misbehave."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from instar.base.json_values import Object
from instar.tools.migrator.outcomes import Fate
from instar.tools.migrator.progress_file import ProgressFile
from instar.wire.client.paths import crd_path
from tests.migrator.running import Silent, command, instar, migrated
from tests.migrator.support import (
    census,
    crd,
    fill,
    forbid_size,
    group_of,
    migrating_condition,
    name_of,
    objects_path,
    stale_crd,
    store_at,
    stored_versions,
)
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually
from tests.support.webhook import Webhook, relabel


def test_an_object_that_became_invalid_is_quarantined_and_the_rest_continues(
    server: LiveServer,
) -> None:
    definition = stale_crd(server, 12)
    forbid_size(server, definition, 7)

    report = migrated(server, definition)

    assert report.counts == {Fate.REWRITTEN: 11, Fate.FAILED: 1}
    (bad,) = report.quarantine
    assert (bad.key, bad.reason) == ("default/w00007", "Invalid")
    assert "kubectl edit widgets." in bad.fix
    assert not report.ok
    assert report.not_pruned == "1 object could not be rewritten"
    assert stored_versions(server, definition) == ["v1beta1", "v1"]
    assert migrating_condition(server, definition)["reason"] == "MigrationFailed"


def test_a_quarantined_object_is_tried_again_once_it_is_mended(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = stale_crd(server, 12)
    forbid_size(server, definition, 7)
    journal = ProgressFile(tmp_path / "journal")
    migrated(server, definition, journal=journal)
    patch = {"spec": {"size": 8}}
    path = objects_path(definition, "v1", "w00007")
    server.request("PATCH", path, patch, content_type="application/merge-patch+json")

    again = migrated(server, definition, journal=journal)

    journal.close()
    assert again.resumed
    assert again.ok, again.lines()
    assert stored_versions(server, definition) == ["v1"]


def test_a_crd_changed_during_the_run_is_never_pruned(server: LiveServer) -> None:
    with Webhook(convert=relabel) as hook:
        definition = stale_crd(server, 20, conversion=hook.conversion())
        changed = False

        def convert(obj: Object, wanted: str) -> Object:
            nonlocal changed
            if not changed and obj["metadata"]["name"] == "w00010":
                changed = True
                path = crd_path(name_of(definition))
                patch = {"spec": {"names": {"shortNames": ["moved"]}}}
                kind = "application/merge-patch+json"
                assert server.request("PATCH", path, patch, content_type=kind).status == 200
            return relabel(obj, wanted)

        def planned() -> None:
            hook.convert = convert

        report = migrated(server, definition, planned=planned)

    assert changed
    assert "the CRD was changed (generation 2 then, 3 now)" in report.stopped
    assert report.not_pruned
    assert Fate.REWRITTEN not in report.counts
    assert stored_versions(server, definition) == ["v1beta1", "v1"]


def test_a_webhook_that_sometimes_fails_is_called_again() -> None:
    with live_server(conversion_cache=False) as server, Webhook() as hook:
        definition = stale_crd(server, 60, conversion=hook.conversion())
        asked = 0

        def flaky(obj: Object, wanted: str) -> Object:
            nonlocal asked
            asked += 1
            if asked % 100 == 0:
                raise RuntimeError("out of luck")
            return relabel(obj, wanted)

        hook.convert = flaky
        report = migrated(server, definition, page=20)

        assert report.ok, report.lines()
        assert census(server, definition) == {"v1": 60}


def test_objects_the_webhook_cannot_convert_are_quarantined_one_by_one(
    server: LiveServer,
) -> None:
    with Webhook() as hook:
        definition = stale_crd(server, 100, conversion=hook.conversion())

        def convert(obj: Object, wanted: str) -> Object:
            if obj["metadata"]["name"] == "w00042" and wanted.endswith("/v1"):
                raise RuntimeError("no idea what this is")
            return relabel(obj, wanted)

        hook.convert = convert
        report = migrated(server, definition, page=30)

    assert report.counts == {Fate.REWRITTEN: 99, Fate.FAILED: 1}
    (bad,) = report.quarantine
    assert bad.key == "default/w00042"
    assert "no idea what this is" in bad.message
    assert "mend the conversion webhook" in bad.fix
    assert not report.pruned


def test_a_webhook_that_is_down_stops_the_run_before_it_starts(server: LiveServer) -> None:
    with Webhook() as hook:
        definition = stale_crd(server, 10, conversion=hook.conversion())
        hook.fault = "http_500"

        finished = instar(server, "migrate", name_of(definition))

    assert finished.returncode == 1
    assert "cannot start: v1 cannot be used" in finished.stdout
    assert census(server, definition) == {"v1": 0, "v1beta1": 10}


def test_a_conversion_that_changes_content_is_found_before_anything_is_written(
    server: LiveServer,
) -> None:
    with Webhook() as hook:
        definition = stale_crd(server, 60, conversion=hook.conversion())
        calls = 0

        def drifting(obj: Object, wanted: str) -> Object:
            nonlocal calls
            calls += 1
            return {**relabel(obj, wanted), "spec": {**obj["spec"], "size": calls}}

        hook.convert = drifting
        report = migrated(server, definition)

    assert report.counts[Fate.REFUSED] == 20
    assert "spec.size" in report.stopped
    assert "none of them was written" in report.stopped
    assert report.not_pruned == "the run was stopped"
    assert census(server, definition) == {"v1": 0, "v1beta1": 60}


def test_a_webhook_that_answers_differently_each_time_is_refused_before_a_write() -> None:
    with live_server(conversion_cache=False) as server, Webhook() as hook:
        definition = stale_crd(server, 40, conversion=hook.conversion())
        calls = 0

        def drifting(obj: Object, wanted: str) -> Object:
            nonlocal calls
            calls += 1
            return {**relabel(obj, wanted), "spec": {**obj["spec"], "size": calls}}

        hook.convert = drifting
        report = migrated(server, definition, concurrency=1)

        assert census(server, definition) == {"v1": 0, "v1beta1": 40}

    assert report.counts[Fate.REFUSED] == 20
    assert "the conversion from v1beta1 to v1 and back" in report.stopped


def test_a_webhook_that_dies_half_way_stops_the_run_and_a_second_one_finishes(
    server: LiveServer, tmp_path: Path
) -> None:
    with Webhook() as hook:
        definition = stale_crd(server, 120, conversion=hook.conversion())

        def dying(obj: Object, wanted: str) -> Object:
            if obj["metadata"]["name"] > "w00050":
                raise RuntimeError("out of memory")
            return relabel(obj, wanted)

        hook.convert = dying
        journal = ProgressFile(tmp_path / "journal")
        report = migrated(server, definition, page=10, concurrency=2, journal=journal)
        assert "nothing works any more" in report.stopped
        assert report.counts[Fate.REWRITTEN] == 50
        assert stored_versions(server, definition) == ["v1beta1", "v1"]

        hook.convert = relabel
        again = migrated(server, definition, page=10, concurrency=2, journal=journal)

    journal.close()
    assert again.resumed
    assert again.ok, again.lines()
    # A write that was under way when the run stopped may have been done after all.
    assert again.total == 120
    assert set(again.counts) <= {Fate.REWRITTEN, Fate.OVERTAKEN}


def test_content_that_changes_everywhere_is_counted_with_keep_going(
    server: LiveServer,
) -> None:
    with Webhook() as hook:
        definition = stale_crd(server, 30, conversion=hook.conversion())
        calls = 0

        def drifting(obj: Object, wanted: str) -> Object:
            nonlocal calls
            calls += 1
            return {**relabel(obj, wanted), "spec": {**obj["spec"], "size": calls}}

        hook.convert = drifting
        report = migrated(server, definition, keep_going=True)

    assert report.counts == {Fate.REFUSED: 30}
    assert report.not_pruned == "a rewrite would change 30 objects"
    assert stored_versions(server, definition) == ["v1beta1", "v1"]


def test_a_namespace_deleted_during_the_run_is_not_a_failure(server: LiveServer) -> None:
    definition = crd()
    server.create_crd(definition)
    namespace = group_of(definition).replace(".", "-")
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    server.request("POST", "/api/v1/namespaces", body)
    fill(server, definition, 40)
    path = objects_path(definition, "v1beta1", namespace=namespace)
    for number in range(40):
        obj = {
            "apiVersion": f"{group_of(definition)}/v1beta1",
            "kind": "Widget",
            "metadata": {"name": f"doomed{number}"},
        }
        assert server.request("POST", path, obj).status == 201
    store_at(server, definition, "v1")

    class Deleting(Silent):
        def begin(self, phase: str, total: int | None) -> None:
            if phase == "rewriting":
                server.request("DELETE", f"/api/v1/namespaces/{namespace}")

    report = migrated(server, definition, progress=Deleting(), page=10, concurrency=2)

    assert report.ok, report.lines()
    assert Fate.FAILED not in report.counts
    assert stored_versions(server, definition) == ["v1"]


def test_an_interrupted_run_says_so_and_can_continue(server: LiveServer, tmp_path: Path) -> None:
    definition = stale_crd(server, 200)
    options = ("--progress", str(tmp_path / "progress"), "--page", "10")
    words = command(server, "migrate", name_of(definition), *options, "--qps", "20")
    # A test run in the background of a shell ignores SIGINT, and so would the command.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    signal.signal(signal.SIGINT, handler)
    try:
        eventually(lambda: census(server, definition)["v1"] > 20)
        process.send_signal(signal.SIGINT)
    finally:
        output, _ = process.communicate(timeout=20)

    assert process.returncode == 130
    assert b"interrupted after " in output
    assert b"run the same command again to go on" in output
    condition = migrating_condition(server, definition)
    assert condition["status"] == "False"
    assert condition["message"] == "the run was interrupted"
    assert stored_versions(server, definition) == ["v1beta1", "v1"]
    assert instar(server, "migrate", name_of(definition), *options).returncode == 0
    assert census(server, definition) == {"v1": 200}
