"""A new CRD is stored with the states it comes to: one transaction, one decision at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from instar.base.json_values import Object
from instar.server.lifecycle.embedded import Embedded, embedded
from instar.server.registry.controllers.crds import CrdController
from instar.server.registry.stored.backend import Backend
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Event, Write
from tests.support import crds

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def crd(plural: str, kind: str) -> Object:
    schema = crds.fields(name={"type": "string"})
    return crds.crd(crds.version("v1", schema), group="new.example.com", plural=plural, kind=kind)


async def _conditions(server: Embedded, plural: str) -> dict[str, str]:
    reply = await server.ask("GET", f"{CRDS}/{plural}.new.example.com")
    return {one["type"]: one["status"] for one in reply.document["status"]["conditions"]}


async def _make(server: Embedded, plural: str, kind: str) -> Any:
    reply = await server.ask("POST", CRDS, crd(plural, kind))
    assert reply.status == 201
    return reply.document


def test_a_new_crd_waits_for_the_disk_once(tmp_path: Path) -> None:
    async def run() -> tuple[int, Any]:
        store = SqliteStore(str(tmp_path / "s.db"))
        async with embedded(store=store) as server:
            before = store.commits
            await _make(server, "as", "A")
            used = await server.ask("GET", "/apis/new.example.com/v1/as")
            return store.commits - before, used

    commits, used = asyncio.run(run())

    assert used.status == 200
    assert commits == 1


def test_its_creation_is_answered_with_the_first_of_its_states() -> None:
    async def run() -> tuple[Any, list[Event]]:
        store = MemoryStore()
        told: list[Event] = []
        async with embedded(store=store) as server:
            after = await store.barrier()
            store.subscribe(after, lambda events, _: told.extend(events), lambda error: None)
            made = await _make(server, "as", "A")
        return made, [one for one in told if one.key.endswith("as.new.example.com")]

    made, told = asyncio.run(run())

    assert made["status"]["conditions"] is None
    assert int(made["metadata"]["resourceVersion"]) == told[0].revision
    assert [event.revision - told[0].revision for event in told] == [0, 1, 2]


def test_of_two_that_come_at_once_one_gets_the_name() -> None:
    async def run() -> list[dict[str, str]]:
        async with embedded() as server:
            await asyncio.gather(_make(server, "as", "Same"), _make(server, "bs", "Same"))
            return [await _conditions(server, plural) for plural in ("as", "bs")]

    first, second = asyncio.run(run())

    assert sorted([first["NamesAccepted"], second["NamesAccepted"]]) == ["False", "True"]


def test_where_the_store_commits_one_write_at_a_time_the_states_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Backend, "chains", False)

    async def run() -> dict[str, str]:
        async with embedded() as server:
            await _make(server, "as", "A")
            return await _conditions(server, "as")

    assert asyncio.run(run()) == {"NamesAccepted": "True", "Established": "True"}


def test_the_first_crd_gets_a_name_also_from_another_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That process decides upon what came before: this one must not have decided without it."""
    told: list[Event] = []
    drafted = CrdController._draft_status

    async def run() -> list[dict[str, str]]:
        store = MemoryStore()
        after = await store.barrier()
        store.subscribe(after, lambda events, _: told.extend(events), lambda error: None)
        async with embedded(store=store) as server:
            await _make(server, "bs", "Same")
            (first, *_) = [one for one in told if one.key.endswith("bs.new.example.com")]
            assert (await server.ask("DELETE", f"{CRDS}/bs.new.example.com")).status == 200
            assert (await server.ask("GET", f"{CRDS}/bs.new.example.com")).status == 404

            async def overtaken(self: CrdController, *args: Any) -> Any:
                monkeypatch.undo()
                await store.commit(Write(first.key, first.value, 0))
                return await drafted(self, *args)

            monkeypatch.setattr(CrdController, "_draft_status", overtaken)
            await _make(server, "as", "Same")
            return [await _conditions(server, plural) for plural in ("as", "bs")]

    late, early = asyncio.run(run())

    assert (early["NamesAccepted"], late["NamesAccepted"]) == ("True", "False")
