"""What a CRD costs does not depend on how many others there are: counted, not timed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from instar.base.json_values import Object
from instar.server.lifecycle.embedded import Embedded, embedded
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.stored.entry import InMemoryEntry
from instar.wire.storage.memory import MemoryStore
from tests.support import crds

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MERGE = "application/merge-patch+json"


def crd(number: int, group: str = "many.example.com", **names: Any) -> Object:
    schema = crds.fields(name={"type": "string"})
    made = crds.crd(
        crds.version("v1", schema), group=group, plural=f"things{number}", kind=f"Thing{number}"
    )
    made["spec"]["names"] |= names
    return made


async def _create(server: Embedded, made: Object) -> None:
    assert (await server.ask("POST", CRDS, made)).status == 201


async def _patch(server: Embedded, number: int, patch: Object) -> None:
    path = f"{CRDS}/things{number}.many.example.com"
    assert (await server.ask("PATCH", path, patch, content_type=_MERGE)).status == 200


@contextmanager
def _counting(patch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each stored object is parsed, by its name."""
    parsed: Counter[str] = Counter()
    parse = InMemoryEntry._parsed

    def counted(entry: InMemoryEntry, data: bytes) -> Object:
        parsed[entry.suffix] += 1
        return parse(entry, data)

    with patch.context() as patched:
        patched.setattr(InMemoryEntry, "_parsed", counted)
        yield parsed


def _stored(counted: Counter[str]) -> set[str]:
    return {name for name in counted if name.endswith("many.example.com")}


def test_a_crd_write_reads_no_other_crd(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> tuple[set[str], set[str], set[str]]:
        async with embedded() as server:
            for number in range(20):
                await _create(server, crd(number))
            with _counting(monkeypatch) as created:
                await _create(server, crd(20))
            with _counting(monkeypatch) as annotated:
                await _patch(server, 3, {"metadata": {"annotations": {"a": "b"}}})
            with _counting(monkeypatch) as renamed:
                await _patch(server, 4, {"spec": {"names": {"shortNames": ["t4"]}}})
            return _stored(created), _stored(annotated), _stored(renamed)

    created, annotated, renamed = asyncio.run(run())

    assert created <= {"things20.many.example.com"}
    assert annotated <= {"things3.many.example.com"}
    assert renamed <= {"things4.many.example.com"}


def test_a_deleted_crd_wakes_only_those_that_wait_for_its_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> tuple[set[str], list[Any]]:
        async with embedded() as server:
            for number in range(10):
                await _create(server, crd(number))
            await _create(server, crd(10, kind="Thing3"))
            with _counting(monkeypatch) as read:
                path = f"{CRDS}/things3.many.example.com"
                assert (await server.ask("DELETE", path)).status == 200
                waiting = f"{CRDS}/things10.many.example.com"
                for _ in range(100):
                    reply = await server.ask("GET", waiting)
                    conditions = reply.document["status"]["conditions"]
                    if all(one["status"] == "True" for one in conditions):
                        break
                    await asyncio.sleep(0.05)
            return _stored(read), [one["status"] for one in conditions]

    read, conditions = asyncio.run(run())

    assert read <= {"things3.many.example.com", "things10.many.example.com"}
    assert conditions == ["True", "True"]


def test_a_start_parses_each_crd_once_and_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> tuple[Counter[str], int, int]:
        store = MemoryStore()
        async with embedded(store=store) as server:
            for number in range(10):
                await _create(server, crd(number))
            copied = await server.copied_store()
        before = await copied.barrier()
        with _counting(monkeypatch) as read:
            async with embedded(store=copied):
                await asyncio.sleep(0.2)
                after = await copied.barrier()
        return Counter({name: read[name] for name in _stored(read)}), before, after

    read, before, after = asyncio.run(run())

    assert set(read.values()) == {1}
    assert len(read) == 10
    assert before == after


def test_cached_routes_are_kept_while_crds_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    catalogs: list[Catalog] = []
    follow = Catalog.follow

    async def followed(catalog: Catalog, resource: Any) -> None:
        catalogs.append(catalog)
        await follow(catalog, resource)

    monkeypatch.setattr(Catalog, "follow", followed)

    async def run() -> list[int]:
        async with embedded() as server:
            await _create(server, crd(0))
            seen = [catalogs[0].retargeted]
            await _patch(server, 0, {"metadata": {"annotations": {"a": "b"}}})
            seen.append(catalogs[0].retargeted)
            await _patch(server, 0, {"spec": {"names": {"categories": ["all"]}}})
            seen.append(catalogs[0].retargeted)
            return seen

    created, annotated, changed = asyncio.run(run())

    assert created == annotated
    assert changed > annotated
