"""Objects that the API server cannot read, and objects whose key and name differ."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.json_values import Object
from instar.tools.migrator.outcomes import Fate
from instar.tools.migrator.undecodable import find_undecodable, start_of, token_at
from instar.wire.storage.open import StorageOptions, open_store
from instar.wire.storage.store import Write
from tests.migrator.running import instar, migrated
from tests.migrator.support import group_of, name_of, stale_crd, stored_versions
from tests.migrator.upstream import Upstream, upstream
from tests.storage.etcd_server import EtcdCluster
from tests.support.server import live_server

names = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=12).filter(
    lambda text: text.strip("-") == text
)


@given(good=st.sets(names, min_size=1, max_size=12), bad=names)
def test_the_key_of_an_undecodable_object_is_found_by_lists_of_one(
    good: set[str], bad: str
) -> None:
    stored = sorted({f"default/{name}" for name in good} | {f"default/{bad}"})
    position = stored.index(f"default/{bad}")
    start = f"{stored[position - 1]}\0" if position else ""

    async def probe(key: str) -> bool:
        first = next((name for name in stored if name >= key), "")
        return first != f"default/{bad}"

    found = asyncio.run(find_undecodable(start, probe))

    if len(stored) > 1:
        assert found is not None
        assert found.key == f"default/{bad}"
        assert start_of(found.token) == f"default/{bad}\0"


def test_lists_that_fail_everywhere_are_an_outage() -> None:
    async def down(key: str) -> bool:
        return False

    async def nothing_converts(key: str) -> bool:
        return key == "~"

    assert asyncio.run(find_undecodable("default/a\0", down)) is None
    assert asyncio.run(find_undecodable("default/a\0", nothing_converts)) is None


def test_a_token_of_another_form_is_left_alone() -> None:
    assert start_of("not a token") is None
    assert start_of(token_at("default/a\0")) == "default/a\0"


class Stored:
    """A server on etcd whose bytes a test can write."""

    def __init__(self, api: Upstream, storage: str) -> None:
        self.api, self.storage = api, storage

    def write(self, key: str, value: bytes) -> None:
        async def work() -> None:
            store = await open_store(self.storage, StorageOptions())
            try:
                known = await store.get(key)
                await store.commit(Write(key, value, 0 if known is None else known.revision))
            finally:
                await store.close()

        asyncio.run(work())

    def read(self, key: str) -> Object:
        async def work() -> Object:
            store = await open_store(self.storage, StorageOptions())
            try:
                page = await store.range(key)
                found: Object = json.loads(page.records[0].value)
                return found
            finally:
                await store.close()

        return asyncio.run(work())


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Stored]:
    with EtcdCluster(tmp_path, members=1) as etcd:
        storage = f"etcd://{etcd.members[0].address}/bytes"
        with live_server(storage=storage) as server, upstream(server, tmp_path) as api:
            yield Stored(api, storage)


@pytest.mark.parametrize("number", [0, 1, 45])
@pytest.mark.parametrize("kind", ["version", "bytes"])
def test_one_undecodable_object_is_named_and_the_rest_continues(
    stored: Stored, kind: str, number: int
) -> None:
    definition = stale_crd(stored.api, 46)
    key = f"{group_of(definition)}/widgets/default/w{number:05d}"
    value = b"no json at all"
    if kind == "version":
        obj = stored.read(key)
        value = json.dumps({**obj, "apiVersion": f"{group_of(definition)}/v0"}).encode()
    stored.write(key, value)

    report = migrated(stored.api, definition, page=10)

    assert report.counts == {Fate.REWRITTEN: 45, Fate.FAILED: 1}, report.lines()
    (bad,) = report.quarantine
    assert bad.key == f"default/w{number:05d}"
    assert bad.reason == "Undecodable"
    assert "put the version that it is stored in back" in bad.fix
    assert stored_versions(stored.api, definition) == ["v1beta1", "v1"]


def test_a_plan_with_an_object_that_cannot_be_tried_is_no_success(stored: Stored) -> None:
    definition = stale_crd(stored.api, 12)
    stored.write(f"{group_of(definition)}/widgets/default/w00003", b"no json at all")

    planned = instar(stored.api, "migrate", name_of(definition), "--plan")

    assert planned.returncode == 1
    assert "unknown, because the rewrite cannot be tried: default/w00003" in planned.stdout
    assert "so its objects are read one by one, which takes longer" in planned.stdout


def test_an_object_whose_key_and_name_differ_is_not_gone(stored: Stored) -> None:
    definition = stale_crd(stored.api, 5)
    prefix = f"{group_of(definition)}/widgets/default"
    obj = stored.read(f"{prefix}/w00001")
    obj["metadata"]["name"] = "other"
    stored.write(f"{prefix}/w00001", json.dumps(obj).encode())

    run = instar(stored.api, "migrate", name_of(definition), "--settle", "0")

    assert run.returncode == 1, run.stdout
    assert "default/other: ListedNotFound" in run.stdout
    assert stored_versions(stored.api, definition) == ["v1beta1", "v1"]


def test_two_objects_of_one_name_are_not_taken_for_one(stored: Stored) -> None:
    definition = stale_crd(stored.api, 5)
    prefix = f"{group_of(definition)}/widgets/default"
    obj = stored.read(f"{prefix}/w00001")
    obj["metadata"]["name"] = "w00003"
    stored.write(f"{prefix}/w00001", json.dumps(obj).encode())

    run = instar(stored.api, "migrate", name_of(definition), "--settle", "0")

    assert run.returncode == 1, run.stdout
    assert "ListedNotFound" in run.stdout
    assert stored_versions(stored.api, definition) == ["v1beta1", "v1"]


def test_an_object_without_uid_raises_no_traceback(stored: Stored) -> None:
    definition = stale_crd(stored.api, 5)
    key = f"{group_of(definition)}/widgets/default/w00001"
    obj = stored.read(key)
    del obj["metadata"]["uid"]
    stored.write(key, json.dumps(obj).encode())

    run = instar(stored.api, "migrate", name_of(definition), "--settle", "0")

    assert "Traceback" not in run.stderr
    assert run.returncode in (0, 1)
