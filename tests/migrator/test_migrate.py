"""``instar migrate`` against a live server: what is rewritten, what is told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.tools.migrator.outcomes import Fate
from instar.tools.migrator.report import MigrationReport
from tests.migrator.running import Silent, instar, migrate_now, migrated
from tests.migrator.support import (
    census,
    client,
    crd,
    edit_crd,
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


def test_every_stale_object_is_rewritten_and_stored_versions_pruned(server: LiveServer) -> None:
    definition = stale_crd(server, 30)
    fill(server, definition, 5, "v1", start=30)

    report = migrated(server, definition, page=7)

    assert report.counts == {Fate.REWRITTEN: 30, Fate.CURRENT: 5}
    assert report.verification is not None
    assert (report.verification.same, report.verification.differing) == (35, 0)
    assert report.ok
    assert census(server, definition) == {"v1": 35}
    assert stored_versions(server, definition) == ["v1"]
    assert migrating_condition(server, definition)["status"] == "False"


def test_a_second_run_finds_nothing_to_do(server: LiveServer) -> None:
    definition = stale_crd(server, 5)
    migrated(server, definition)

    again = instar(server, "migrate", name_of(definition))

    assert again.returncode == 0
    assert "nothing to do" in again.stdout


def test_rewriting_current_objects_writes_nothing(server: LiveServer) -> None:
    definition = stale_crd(server, 5)
    migrated(server, definition)
    before = server.request("GET", objects_path(definition, "v1")).json["items"]

    report = migrated(server, definition, forced=True)

    assert report.counts == {Fate.CURRENT: 5}
    assert server.request("GET", objects_path(definition, "v1")).json["items"] == before


def test_a_dry_run_writes_nothing_and_names_what_would_fail(server: LiveServer) -> None:
    definition = stale_crd(server, 12)
    forbid_size(server, definition, 7)

    report = migrated(server, definition, dry_run=True)

    assert report.counts == {Fate.WOULD_PASS: 11, Fate.FAILED: 1}
    assert report.quarantine[0].key == "default/w00007"
    assert census(server, definition) == {"v1": 0, "v1beta1": 12}
    assert stored_versions(server, definition) == ["v1beta1", "v1"]


def test_writers_and_readers_notice_nothing_but_conflicts_of_their_own(server: LiveServer) -> None:
    definition = stale_crd(server, 300)
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
        stop = asyncio.Event()
        others = [asyncio.create_task(busy(stop)) for _ in range(3)]
        report = await migrate_now(server, definition, page=50)
        stop.set()
        return report, sum(await asyncio.gather(*others))

    report, written = asyncio.run(work())

    assert written > 10
    assert failures == []
    assert report.ok, report.lines()
    assert census(server, definition) == {"v1": 300}


def test_two_runs_side_by_side_do_no_harm(server: LiveServer) -> None:
    definition = stale_crd(server, 200)

    async def work() -> list[MigrationReport]:
        runs = (migrate_now(server, definition, page=25) for _ in range(2))
        return await asyncio.gather(*runs)

    reports = asyncio.run(work())

    assert all(report.ok for report in reports), [report.lines() for report in reports]
    assert census(server, definition) == {"v1": 200}


def test_an_expired_position_is_replaced_by_the_servers_own() -> None:
    with live_server() as server:
        definition = stale_crd(server, 60)

        class Compacting(Silent):
            def advance(self, count: int) -> None:
                super().advance(count)
                backend = server.running.machinery.backend
                if self.advanced in (15, 35):
                    asyncio.run_coroutine_threadsafe(_compact(backend), server.loop).result(5)

        report = migrated(server, definition, progress=Compacting(), page=10, concurrency=1)

        assert report.ok, report.lines()
        assert census(server, definition) == {"v1": 60}


async def _compact(backend: Any) -> None:
    revision = backend.revision
    await backend.store.compact(revision)
    backend.cache.compacted(revision)


def test_ownership_of_versions_that_are_gone_is_dropped(server: LiveServer) -> None:
    definition = stale_crd(server, 3)

    def unserve(current: Object) -> None:
        current["spec"]["versions"][0]["served"] = False

    edit_crd(server, definition, unserve)

    report = migrated(server, definition, clean_managed_fields=True)

    assert report.ok, report.lines()
    for item in server.request("GET", objects_path(definition, "v1")).json["items"]:
        entries = item["metadata"]["managedFields"]
        assert {entry["apiVersion"] for entry in entries} == {f"{group_of(definition)}/v1"}


def test_the_status_subresource_can_carry_the_write(server: LiveServer) -> None:
    definition = stale_crd(server, 8)

    report = migrated(server, definition, via_status=True)

    assert report.counts == {Fate.REWRITTEN: 8}
    assert census(server, definition) == {"v1": 8}


def test_an_unserved_storage_version_is_written_through_another(server: LiveServer) -> None:
    definition = stale_crd(server, 8)

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
    definition = stale_crd(server, 4)
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
        definition = stale_crd(server, 3)
        untouched = crd()
        server.create_crd(untouched)

        finished = instar(server, "migrate", "--all")

        assert finished.returncode == 0, finished.stderr
        assert name_of(definition) in finished.stdout
        assert name_of(untouched) not in finished.stdout


def test_wrong_arguments_are_reported_in_one_line(server: LiveServer) -> None:
    nothing = instar(server, "migrate")
    unknown = instar(server, "migrate", "no.such.crd")

    assert (nothing.returncode, unknown.returncode) == (2, 1)
    assert unknown.stderr == "instar migrate: CustomResourceDefinition no.such.crd not found\n"
