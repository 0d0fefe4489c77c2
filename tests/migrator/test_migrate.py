"""``instar migrate`` against a live server: what is rewritten, what is refused, what is told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from instar.client.paths import crd_path
from instar.errors import ApiError
from instar.migrator.journal import Journal
from instar.migrator.outcomes import Fate
from tests.migrator.running import QUICK, instar, migrated, plan_for
from tests.migrator.support import (
    census,
    client,
    crd,
    edit_crd,
    fill,
    group_of,
    name_of,
    objects_path,
    store_at,
    stored_versions,
)
from tests.support.server import LiveServer, live_server
from tests.support.webhook import Webhook, relabel

Object = dict[str, Any]


def _stale(server: LiveServer, count: int, **changes: Any) -> Object:
    """A CRD with ``count`` objects stored at v1beta1 while v1 is the storage version."""
    definition = crd(**changes)
    server.create_crd(definition)
    fill(server, definition, count)
    store_at(server, definition, "v1")
    return definition


def _condition(server: LiveServer, definition: Object) -> Object:
    current = server.request("GET", crd_path(name_of(definition))).json
    found: Object = next(
        item for item in current["status"]["conditions"] if item["type"] == "StorageMigrating"
    )
    return found


def test_every_stale_object_is_rewritten_and_stored_versions_pruned(server: LiveServer) -> None:
    definition = _stale(server, 30)
    fill(server, definition, 5, "v1", start=30)

    report = migrated(server, definition, page=7)

    assert report.counts == {Fate.REWRITTEN: 30, Fate.CURRENT: 5}
    assert report.verification is not None
    assert (report.verification.same, report.verification.differing) == (35, 0)
    assert report.ok
    assert census(server, definition) == {"v1": 35}
    assert stored_versions(server, definition) == ["v1"]
    assert _condition(server, definition)["status"] == "False"


def test_a_second_run_finds_nothing_to_do(server: LiveServer) -> None:
    definition = _stale(server, 5)
    migrated(server, definition)

    again = instar(server, "migrate", name_of(definition))

    assert again.returncode == 0
    assert "nothing to do" in again.stdout


def test_rewriting_what_is_current_writes_nothing(server: LiveServer) -> None:
    definition = _stale(server, 5)
    migrated(server, definition)
    before = server.request("GET", objects_path(definition, "v1")).json["items"]

    report = migrated(server, definition, forced=True)

    assert report.counts == {Fate.CURRENT: 5}
    assert server.request("GET", objects_path(definition, "v1")).json["items"] == before


def test_a_dry_run_writes_nothing_and_names_what_would_fail(server: LiveServer) -> None:
    definition = _stale(server, 12)
    _forbid(server, definition, 7)

    report = migrated(server, definition, dry_run=True)

    assert report.counts == {Fate.WOULD_PASS: 11, Fate.FAILED: 1}
    assert report.quarantine[0].key == "default/w00007"
    assert census(server, definition) == {"v1": 0, "v1beta1": 12}
    assert stored_versions(server, definition) == ["v1beta1", "v1"]


def test_an_object_that_became_invalid_is_quarantined_and_the_rest_goes_on(
    server: LiveServer,
) -> None:
    definition = _stale(server, 12)
    _forbid(server, definition, 7)

    report = migrated(server, definition)

    assert report.counts == {Fate.REWRITTEN: 11, Fate.FAILED: 1}
    (bad,) = report.quarantine
    assert (bad.key, bad.reason) == ("default/w00007", "Invalid")
    assert "kubectl edit widgets." in bad.fix
    assert not report.ok
    assert report.not_pruned == "1 object could not be rewritten"
    assert stored_versions(server, definition) == ["v1beta1", "v1"]
    assert _condition(server, definition)["reason"] == "MigrationFailed"


def test_what_was_quarantined_is_tried_again_once_it_is_mended(
    server: LiveServer, tmp_path: Path
) -> None:
    definition = _stale(server, 12)
    _forbid(server, definition, 7)
    journal = Journal(tmp_path / "journal")
    migrated(server, definition, journal=journal)
    patch = {"spec": {"size": 8}}
    path = objects_path(definition, "v1", "w00007")
    server.request("PATCH", path, patch, content_type="application/merge-patch+json")

    again = migrated(server, definition, journal=journal)

    journal.close()
    assert again.resumed
    assert again.ok, again.lines()
    assert stored_versions(server, definition) == ["v1"]


def _forbid(server: LiveServer, definition: Object, size: int) -> None:
    """A rule that ratcheting does not forgive."""

    def tighten(current: Object) -> None:
        for item in current["spec"]["versions"]:
            spec = item["schema"]["openAPIV3Schema"]["properties"]["spec"]
            text = f"self.size != {size} || (oldSelf.hasValue() && false)"
            spec["x-kubernetes-validations"] = [{"rule": text, "optionalOldSelf": True}]

    edit_crd(server, definition, tighten)


def test_a_crd_changed_during_the_run_is_never_pruned(server: LiveServer) -> None:
    with Webhook(convert=relabel) as hook:
        definition = _stale(server, 20, conversion=hook.conversion())
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

        async def plan_then_change() -> Any:
            async with client(server) as api:
                plan = await plan_for(api, definition)
                hook.convert = convert
                from instar.migrator.migration import Options, migrate
                from tests.migrator.running import Silent

                options = Options(patience=QUICK)
                return await migrate(api, plan, options, Journal(), Silent())

        report = asyncio.run(plan_then_change())

    assert changed
    assert "the CRD was changed during the run" in report.not_pruned
    assert stored_versions(server, definition) == ["v1beta1", "v1"]


def test_a_webhook_that_sometimes_fails_is_asked_again() -> None:
    with live_server(conversion_cache=False) as server, Webhook() as hook:
        definition = _stale(server, 60, conversion=hook.conversion())
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
        definition = _stale(server, 100, conversion=hook.conversion())

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
        definition = _stale(server, 10, conversion=hook.conversion())
        hook.fault = "http_500"

        finished = instar(server, "migrate", name_of(definition))

    assert finished.returncode == 1
    assert "cannot start: v1 cannot be used" in finished.stdout
    assert census(server, definition) == {"v1": 0, "v1beta1": 10}


def test_a_conversion_that_changes_content_is_found_after_a_few_objects(
    server: LiveServer,
) -> None:
    with Webhook() as hook:
        definition = _stale(server, 60, conversion=hook.conversion())
        calls = 0

        def drifting(obj: Object, wanted: str) -> Object:
            nonlocal calls
            calls += 1
            return {**relabel(obj, wanted), "spec": {**obj["spec"], "size": calls}}

        hook.convert = drifting
        report = migrated(server, definition)

    assert report.counts[Fate.DIFFERS] == 1
    assert "content is not the same as before at v1beta1" in report.stopped
    assert report.not_pruned == "the run was stopped"
    assert census(server, definition) == {"v1": 20, "v1beta1": 40}


def test_a_rewrite_whose_answer_differs_stops_at_once() -> None:
    with live_server(conversion_cache=False) as server, Webhook() as hook:
        definition = _stale(server, 40, conversion=hook.conversion())
        calls = 0

        def drifting(obj: Object, wanted: str) -> Object:
            nonlocal calls
            calls += 1
            return {**relabel(obj, wanted), "spec": {**obj["spec"], "size": calls}}

        hook.convert = drifting
        report = migrated(server, definition, concurrency=1)

    assert report.counts[Fate.DIFFERS] == 1
    assert "nothing more is rewritten" in report.stopped


def test_a_webhook_that_dies_half_way_stops_the_run_and_a_second_one_finishes(
    server: LiveServer, tmp_path: Path
) -> None:
    with Webhook() as hook:
        definition = _stale(server, 120, conversion=hook.conversion())

        def dying(obj: Object, wanted: str) -> Object:
            if obj["metadata"]["name"] > "w00050":
                raise RuntimeError("out of memory")
            return relabel(obj, wanted)

        hook.convert = dying
        journal = Journal(tmp_path / "journal")
        report = migrated(server, definition, page=10, concurrency=2, journal=journal)
        assert "nothing works any more" in report.stopped
        assert report.counts[Fate.REWRITTEN] == 51
        assert stored_versions(server, definition) == ["v1beta1", "v1"]

        hook.convert = relabel
        again = migrated(server, definition, page=10, concurrency=2, journal=journal)

    journal.close()
    assert again.resumed
    assert again.ok, again.lines()
    # A write that was under way when the run stopped may have been done after all.
    assert again.total == 120
    assert set(again.counts) <= {Fate.REWRITTEN, Fate.OVERTAKEN}


def test_content_that_changes_everywhere_is_counted_when_told_to_keep_going(
    server: LiveServer,
) -> None:
    with Webhook() as hook:
        definition = _stale(server, 30, conversion=hook.conversion())
        calls = 0

        def drifting(obj: Object, wanted: str) -> Object:
            nonlocal calls
            calls += 1
            return {**relabel(obj, wanted), "spec": {**obj["spec"], "size": calls}}

        hook.convert = drifting
        report = migrated(server, definition, keep_going=True)

    assert report.counts == {Fate.DIFFERS: 30}
    assert report.not_pruned == "the content of 30 objects changed"
    assert stored_versions(server, definition) == ["v1beta1", "v1"]


def test_a_namespace_deleted_under_the_run_is_no_failure(server: LiveServer) -> None:
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

    async def work() -> Any:
        from instar.migrator.migration import Options, migrate
        from tests.migrator.running import Silent

        class Deleting(Silent):
            def begin(self, phase: str, total: int | None) -> None:
                if phase == "rewriting":
                    server.request("DELETE", f"/api/v1/namespaces/{namespace}")

        async with client(server) as api:
            plan = await plan_for(api, definition)
            options = Options(patience=QUICK, page=10, concurrency=2)
            return await migrate(api, plan, options, Journal(), Deleting())

    report = asyncio.run(work())

    assert report.ok, report.lines()
    assert Fate.FAILED not in report.counts
    assert stored_versions(server, definition) == ["v1"]


def test_writers_and_readers_notice_nothing_but_conflicts_of_their_own(server: LiveServer) -> None:
    definition = _stale(server, 300)
    failures: list[ApiError] = []

    async def busy(stop: asyncio.Event) -> int:
        written = 0
        async with client(server) as api:
            while not stop.is_set():
                path = objects_path(definition, "v1beta1", f"w{written * 37 % 300:05d}")
                try:
                    await api.patch(path, {"metadata": {"annotations": {"n": str(written)}}})
                    await api.get(path)
                    await api.list(objects_path(definition, "v1"), limit=50)
                except ApiError as error:
                    failures.append(error)
                written += 1
        return written

    async def work() -> Any:
        from instar.migrator.migration import Options, migrate
        from tests.migrator.running import Silent

        stop = asyncio.Event()
        others = [asyncio.create_task(busy(stop)) for _ in range(3)]
        async with client(server) as api:
            plan = await plan_for(api, definition)
            options = Options(patience=QUICK, page=50)
            report = await migrate(api, plan, options, Journal(), Silent())
        stop.set()
        return report, sum(await asyncio.gather(*others))

    report, written = asyncio.run(work())

    assert written > 10
    assert failures == []
    assert report.ok, report.lines()
    assert census(server, definition) == {"v1": 300}


def test_two_runs_side_by_side_do_no_harm(server: LiveServer) -> None:
    definition = _stale(server, 200)

    async def work() -> Any:
        from instar.migrator.migration import Options, migrate
        from tests.migrator.running import Silent

        async def one() -> Any:
            async with client(server) as api:
                plan = await plan_for(api, definition)
                return await migrate(
                    api, plan, Options(patience=QUICK, page=25), Journal(), Silent()
                )

        return await asyncio.gather(one(), one())

    reports = asyncio.run(work())

    assert all(report.ok for report in reports), [report.lines() for report in reports]
    assert census(server, definition) == {"v1": 200}


def test_an_expired_position_is_replaced_by_the_servers_own() -> None:
    with live_server() as server:
        definition = _stale(server, 60)

        async def work() -> Any:
            from instar.migrator.migration import Options, migrate
            from tests.migrator.running import Silent

            class Compacting(Silent):
                def advance(self, count: int) -> None:
                    super().advance(count)
                    backend = server.running.machinery.backend
                    if self.advanced in (15, 35):
                        done = asyncio.run_coroutine_threadsafe(_compact(backend), server.loop)
                        done.result(5)

            async with client(server) as api:
                plan = await plan_for(api, definition)
                options = Options(patience=QUICK, page=10, concurrency=1)
                return await migrate(api, plan, options, Journal(), Compacting())

        report = asyncio.run(work())

        assert report.ok, report.lines()
        assert census(server, definition) == {"v1": 60}


async def _compact(backend: Any) -> None:
    revision = backend.revision
    await backend.store.compact(revision)
    backend.cache.compacted(revision)


def test_ownership_of_versions_that_are_gone_is_dropped(server: LiveServer) -> None:
    definition = _stale(server, 3)

    def unserve(current: Object) -> None:
        current["spec"]["versions"][0]["served"] = False

    edit_crd(server, definition, unserve)

    report = migrated(server, definition, clean_managed_fields=True)

    assert report.ok, report.lines()
    for item in server.request("GET", objects_path(definition, "v1")).json["items"]:
        entries = item["metadata"]["managedFields"]
        assert {entry["apiVersion"] for entry in entries} == {f"{group_of(definition)}/v1"}


def test_the_status_subresource_can_carry_the_write(server: LiveServer) -> None:
    definition = _stale(server, 8)

    report = migrated(server, definition, via_status=True)

    assert report.counts == {Fate.REWRITTEN: 8}
    assert census(server, definition) == {"v1": 8}


def test_an_unserved_storage_version_is_written_through_another(server: LiveServer) -> None:
    definition = _stale(server, 8)

    def unserve(current: Object) -> None:
        current["spec"]["versions"][1]["served"] = False

    edit_crd(server, definition, unserve)

    report = migrated(server, definition)

    assert report.ok, report.lines()
    assert "the storage version v1 is not served" in report.plan.facts.warnings[0]
    assert census(server, definition) == {"v1": 8}


def test_cluster_scoped_objects_are_migrated_too(server: LiveServer) -> None:
    definition = crd(scope="Cluster")
    server.create_crd(definition)
    path = f"/apis/{group_of(definition)}/v1beta1/widgets"
    obj = {"apiVersion": f"{group_of(definition)}/v1beta1", "kind": "Widget"}
    assert server.request("POST", path, {**obj, "metadata": {"name": "one"}}).status == 201
    store_at(server, definition, "v1")

    report = migrated(server, definition)

    assert report.ok
    assert server.stored(f"{group_of(definition)}/widgets/one")["apiVersion"].endswith("/v1")


def test_the_report_is_json_and_says_it_all(server: LiveServer, tmp_path: Path) -> None:
    definition = _stale(server, 4)
    file = tmp_path / "report.json"

    finished = instar(server, "migrate", name_of(definition), "--report", str(file))

    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "4 stale and rewritten" in finished.stdout
    assert "verified at v1, v1beta1: 4 the same, 0 different" in finished.stdout
    (document,) = json.loads(file.read_text())
    assert document["ok"]
    assert document["stale"] == 4
    assert document["pruned"]
    assert document["plan"]["census"]["objects"] == {"v1": 0, "v1beta1": 4}


def test_all_takes_only_crds_with_old_objects() -> None:
    with live_server() as server:
        definition = _stale(server, 3)
        untouched = crd()
        server.create_crd(untouched)

        finished = instar(server, "migrate", "--all")

        assert finished.returncode == 0, finished.stderr
        assert name_of(definition) in finished.stdout
        assert name_of(untouched) not in finished.stdout


def test_wrong_calls_are_told_in_one_line(server: LiveServer) -> None:
    nothing = instar(server, "migrate")
    unknown = instar(server, "migrate", "no.such.crd")

    assert (nothing.returncode, unknown.returncode) == (2, 1)
    assert unknown.stderr == "instar migrate: there is no CustomResourceDefinition no.such.crd\n"
