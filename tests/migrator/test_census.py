"""How many objects are stored where: exact on instar and in a store, bounded elsewhere."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from instar.base.json_values import Object
from instar.tools.migrator.census.version_census import Bounds, StoredVersionCensus, estimate
from instar.tools.migrator.live_crd import read_live_crd
from instar.tools.migrator.rewrite_checks.pass_record import PassRecord
from instar.wire.client.paths import crd_path
from tests.migrator.running import instar, migrated
from tests.migrator.support import (
    census,
    client,
    crd,
    fill,
    group_of,
    name_of,
    objects_path,
    store_at,
)
from tests.storage.etcd_server import EtcdCluster
from tests.support.server import LiveServer, live_server


def _mixed(server: LiveServer, old: int, new: int) -> Object:
    definition = crd()
    server.create_crd(definition)
    fill(server, definition, old)
    store_at(server, definition, "v1")
    fill(server, definition, new, "v1", start=old)
    return definition


def test_the_servers_count_follows_every_write(server: LiveServer) -> None:
    definition = _mixed(server, 4, 2)
    assert census(server, definition) == {"v1": 2, "v1beta1": 4}

    server.request("DELETE", objects_path(definition, "v1", "w00000"))
    patch = {"metadata": {"labels": {"touched": "yes"}}}
    kind = "application/merge-patch+json"
    server.request("PATCH", objects_path(definition, "v1", "w00001"), patch, content_type=kind)

    assert census(server, definition) == {"v1": 3, "v1beta1": 2}


def test_the_metric_shows_the_same(server: LiveServer) -> None:
    definition = _mixed(server, 3, 1)

    page = server.request("GET", "/metrics").text

    name = name_of(definition)
    assert f'instar_stored_objects{{crd="{name}",version="v1beta1"}} 3' in page
    assert f'instar_stored_objects{{crd="{name}",version="v1"}} 1' in page


def test_a_wide_table_of_crds_shows_it_and_a_narrow_one_does_not(server: LiveServer) -> None:
    definition = _mixed(server, 3, 1)
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    table = server.request("GET", crd_path(name_of(definition)), headers=accept).json

    *usual, stored = table["columnDefinitions"]
    assert (stored["name"], stored["priority"]) == ("Stored", 1)
    assert [column["name"] for column in usual] == ["Name", "Created At"]
    assert table["rows"][0]["cells"][-1] == "v1=1,v1beta1=3"


def test_the_command_counts_exactly_on_instar(server: LiveServer) -> None:
    definition = _mixed(server, 3, 1)

    shown = instar(server, "census", name_of(definition))
    told = json.loads(instar(server, "census", name_of(definition), "--output", "json").stdout)

    assert "4 objects (counted by instar's store)" in shown.stdout
    assert told[name_of(definition)]["objects"] == {"v1": 1, "v1beta1": 3}
    assert told[name_of(definition)]["exact"]


def _estimated(
    server: LiveServer, definition: Object, record: PassRecord | None = None
) -> StoredVersionCensus:
    async def work() -> StoredVersionCensus:
        async with client(server) as api:
            live = read_live_crd(await api.get(crd_path(name_of(definition))))
            return await estimate(api, live, limit=3, record=record)

    return asyncio.run(work())


def test_an_estimate_bounds_the_truth_and_says_that_it_is_one(server: LiveServer) -> None:
    definition = _mixed(server, 7, 4)

    found = _estimated(server, definition)

    assert not found.exact
    assert "an estimate" in found.how
    assert found.counts == {"v1": 0}, "a server may go on writing the old version for a while"
    assert found.unknown == 11
    assert found.at_most("v1beta1") == 11
    assert found.shown("v1") == "0 to 11"


def test_an_object_counts_as_late_only_a_while_after_the_change() -> None:
    changed = datetime(2026, 1, 1, tzinfo=UTC)
    bounds = Bounds(changed)
    bounds.add("5", changed - timedelta(hours=1))
    bounds.add("7", changed + timedelta(seconds=3))
    bounds.add("9", changed + timedelta(seconds=11))

    assert (bounds.total, bounds.late()) == (3, 1)


def test_an_object_written_after_a_late_one_counts_as_late() -> None:
    changed = datetime(2026, 1, 1, tzinfo=UTC)
    bounds = Bounds(changed)
    bounds.add("12", None)
    bounds.add("8", None)
    bounds.add("10", changed + timedelta(minutes=1))

    assert bounds.late() == 2


def test_without_the_time_of_the_change_nothing_is_certain() -> None:
    bounds = Bounds(None)
    bounds.add("12", datetime(2026, 1, 1, tzinfo=UTC))

    assert bounds.late() == 0


def test_one_stored_version_is_an_assumption_and_is_called_one(server: LiveServer) -> None:
    definition = _mixed(server, 5, 1)
    migrated(server, definition)

    found = _estimated(server, definition)

    assert (found.counts, found.unknown) == ({"v1": 0}, 6)
    assert found.assumed
    assert "assumed from storedVersions" in found.how
    assert found.at_most("v1beta1") == 6


def test_the_record_of_a_pass_proves_what_stored_versions_only_say(server: LiveServer) -> None:
    definition = _mixed(server, 5, 1)
    record = migrated(server, definition).pass_record()

    found = _estimated(server, definition, record)

    assert (found.counts, found.unknown, found.assumed) == ({"v1": 6}, 0, False)
    assert "instar migrate rewrote every object" in found.how


def test_the_record_of_a_pass_ends_with_the_next_edit_of_the_crd(server: LiveServer) -> None:
    definition = _mixed(server, 5, 1)
    record = migrated(server, definition).pass_record()
    store_at(server, definition, "v1beta1")
    store_at(server, definition, "v1")

    assert _estimated(server, definition, record).at_most("v1beta1") == 6


def test_a_store_is_counted_without_its_server(tmp_path: Path) -> None:
    storage = f"sqlite:{tmp_path / 'instar.db'}"
    with live_server(storage=storage) as server:
        definition = _mixed(server, 3, 2)

        def count() -> Any:
            return instar(server, "census", "--storage", storage, "--output", "json")

    told = json.loads(count().stdout)[name_of(definition)]

    assert told["objects"] == {"v1": 2, "v1beta1": 3}
    assert told["exact"]


def test_etcd_is_counted_while_its_server_runs(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path, members=1) as cluster:
        storage = f"etcd://{cluster.members[0].address}/counted"
        with live_server(storage=storage) as server:
            definition = _mixed(server, 3, 2)

            named = instar(server, "census", name_of(definition), "--storage", storage)
            every = instar(server, "census", "--storage", storage, "--output", "json")

    assert f"{name_of(definition)}: 5 objects (counted in {storage})" in named.stdout
    assert json.loads(every.stdout)[name_of(definition)]["objects"] == {"v1": 2, "v1beta1": 3}


def test_no_crd_of_that_name_is_one_line(server: LiveServer) -> None:
    finished = instar(server, "census", f"gadgets.{group_of(crd())}")

    assert finished.returncode == 1
    assert finished.stderr.startswith("instar census: CustomResourceDefinition")
