"""A server that leaves objects in its file, or packs them, answers as one that holds them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from instar.base.errors import Expired
from instar.server.lifecycle.composition import ServerComponents
from instar.server.lifecycle.lifetime import running
from instar.server.registry.stored import codec, uniform_views
from instar.server.registry.stored.lazy_entry import LazyEntry
from instar.server.registry.stored.packing.packed_entry import PackedEntry
from instar.server.settings import Settings
from tests.support.inside import CRDS, asked, crd, named
from tests.support.packing import pack_small_collections

_THINGS = "/apis/example.com/v1/namespaces/default/things"
_OTHER = "/apis/example.com/v2/namespaces/default/things"
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_MERGE = "application/merge-patch+json"
_MANY = 30


@pytest.fixture(autouse=True)
def long_lists_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uniform_views, "_LONGEST_IN_MEMORY", 5)
    monkeypatch.setattr(codec, "_LAZY_CHUNK", 4)


def on_disk(tmp_path: Path, values: str = "disk", **more: Any) -> Settings:
    return Settings(port=0, storage=f"sqlite:{tmp_path}/s.db", values=values, **more)


async def fill(machinery: ServerComponents) -> None:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"size": {"type": "integer"}, "gone": {"type": "string"}},
            }
        },
    }
    assert (await asked(machinery, "POST", CRDS, crd("things", "Thing", schema, other=True)))[
        0
    ] == 201
    for number in range(_MANY):
        body = named("Thing", f"t{number:02d}")
        body["metadata"]["labels"] = {"odd": str(number % 2)}
        body["spec"] = {"size": number, "gone": "x" * number}
        assert (await asked(machinery, "POST", _THINGS, body))[0] == 201


async def narrow(machinery: ServerComponents) -> None:
    """Fill, and change the schema."""
    await fill(machinery)
    path = "/spec/versions/%d/schema/openAPIV3Schema/properties/spec/properties"
    new = {"size": {"type": "integer"}, "level": {"type": "string", "default": "low"}}
    patch = [{"op": "replace", "path": path % index, "value": new} for index in (0, 1)]
    kind = "application/json-patch+json"
    path = f"{CRDS}/things.example.com"
    assert (await asked(machinery, "PATCH", path, patch, content=kind))[0] == 200


async def everything(machinery: ServerComponents) -> list[Any]:
    """What clients ask of many objects, in every form."""
    return [
        await asked(machinery, "GET", f"{_THINGS}/t07"),
        await asked(machinery, "GET", f"{_OTHER}/t07"),
        await asked(machinery, "GET", _THINGS),
        await asked(machinery, "GET", _THINGS),
        await asked(machinery, "GET", _OTHER),
        await asked(machinery, "GET", _THINGS, limit="3"),
        await asked(machinery, "GET", _THINGS, limit="20"),
        await asked(machinery, "GET", _THINGS, labelSelector="odd=1"),
        await asked(machinery, "GET", _THINGS, labelSelector="odd!=1"),
        await asked(machinery, "GET", _THINGS, fieldSelector="metadata.name=t03"),
        (await asked(machinery, "GET", _THINGS, accept="application/yaml"))[1].splitlines()[:-1],
        (await asked(machinery, "GET", _THINGS, accept=_TABLE))[0],
    ]


def comparable(answers: list[Any]) -> list[Any]:
    """Without the revision a list was made at: servers write something when they start."""
    for answer in answers:
        document = answer[1] if isinstance(answer, tuple) else None
        if isinstance(document, dict) and "items" in document:
            document["metadata"] = document["metadata"].get("remainingItemCount")
    return answers


def played(settings: Settings, play: Callable[[ServerComponents], Awaitable[Any]]) -> Any:
    async def scenario() -> Any:
        async with running(settings) as server:
            return await play(server.machinery)

    return asyncio.run(scenario())


def packed(play: Callable[[ServerComponents], Awaitable[Any]]) -> Any:
    """Play once with objects packed when they were loaded, and once more after all was packed."""

    async def run(machinery: ServerComponents) -> Any:
        made = machinery.backend.packer
        assert made is not None
        first = comparable(await play(machinery))
        await made.sweep(machinery.backend.cache)
        entries = machinery.backend.collection("example.com/things/").entries.values()
        assert PackedEntry in set(map(type, entries))
        second = comparable(await play(machinery))
        assert first == second
        return second

    return run


def test_packed_objects_answer_as_those_that_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack_small_collections(monkeypatch)
    played(on_disk(tmp_path), fill)

    on = played(on_disk(tmp_path, "memory"), packed(everything))
    off = played(on_disk(tmp_path, "memory", pack_values="off"), everything)

    for one, other in zip(on, comparable(off), strict=True):
        assert one == other


def test_packed_objects_answer_as_those_that_are_held_where_the_schema_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack_small_collections(monkeypatch)
    played(on_disk(tmp_path), narrow)

    on = played(on_disk(tmp_path, "memory"), packed(everything))
    off = played(on_disk(tmp_path, "memory", pack_values="off"), everything)

    assert on == comparable(off)
    assert on[0][1]["spec"] == {"size": 7, "level": "low"}


def test_a_damaged_packed_object_is_a_named_error_and_the_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack_small_collections(monkeypatch)

    async def play(machinery: ServerComponents) -> None:
        await fill(machinery)
        assert machinery.backend.packer is not None
        await machinery.backend.packer.sweep(machinery.backend.cache)
        entry = machinery.backend.collection("example.com/things/").entries["default/t07"]
        assert isinstance(entry, PackedEntry)
        entry.packed = b"damaged"

        status, answer = await asked(machinery, "GET", f"{_THINGS}/t07")

        assert (status, answer["kind"]) == (500, "Status")
        assert "default/t07" in answer["message"]
        assert (await asked(machinery, "GET", f"{_THINGS}/t08"))[0] == 200

    played(on_disk(tmp_path, "memory"), play)


def test_both_modes_answer_alike_after_a_restart(tmp_path: Path) -> None:
    played(on_disk(tmp_path), fill)

    on = played(on_disk(tmp_path), everything)
    off = played(on_disk(tmp_path, "memory"), everything)

    for one, other in zip(comparable(on), comparable(off), strict=True):
        assert one == other


def test_both_modes_answer_alike_where_the_schema_has_changed(tmp_path: Path) -> None:
    played(on_disk(tmp_path), narrow)

    on = played(on_disk(tmp_path), everything)
    off = played(on_disk(tmp_path, "memory"), everything)

    assert comparable(on) == comparable(off)
    assert on[0][1]["spec"] == {"size": 7, "level": "low"}


def test_written_values_are_read_from_disk_and_not_held_in_memory(tmp_path: Path) -> None:
    async def play(machinery: ServerComponents) -> None:
        await fill(machinery)
        patch = {"spec": {"size": 99}}
        status, answer = await asked(machinery, "PATCH", f"{_THINGS}/t03", patch, content=_MERGE)
        assert (status, answer["spec"]["size"]) == (200, 99)
        assert (await asked(machinery, "GET", f"{_THINGS}/t03"))[1] == answer
        assert (await asked(machinery, "DELETE", f"{_THINGS}/t04"))[0] == 200
        listed = (await asked(machinery, "GET", _THINGS))[1]["items"]
        assert [item["spec"]["size"] for item in listed[2:5]] == [2, 99, 5]
        entries = machinery.backend.collection("example.com/things/").entries
        assert all(isinstance(entry, LazyEntry) for entry in entries.values())
        assert (await asked(machinery, "DELETE", _THINGS))[0] == 200
        assert not entries

    played(on_disk(tmp_path), play)


def test_a_list_of_the_past_is_there_until_it_is_compacted_and_then_expired(
    tmp_path: Path,
) -> None:
    async def play(machinery: ServerComponents) -> None:
        await fill(machinery)
        backend = machinery.backend
        then = str(backend.revision)
        past = {"resourceVersion": then, "resourceVersionMatch": "Exact"}
        before = (await asked(machinery, "GET", _THINGS))[1]["items"]
        for number in range(_MANY):
            path = f"{_THINGS}/t{number:02d}"
            assert (await asked(machinery, "PATCH", path, {"spec": {"size": 0}}, content=_MERGE))[
                0
            ] == 200
        listed = (await asked(machinery, "GET", _THINGS, **past))[1]["items"]
        assert listed == before

        await backend.store.compact(backend.revision)  # the cache has not heard of it yet

        status, answer = await asked(machinery, "GET", _THINGS, **past)
        assert (status, answer["reason"]) == (410, "Expired")
        backend.cache.compacted(backend.revision)
        status, answer = await asked(machinery, "GET", _THINGS, **past)
        assert (status, answer["reason"]) == (410, "Expired")
        assert (await asked(machinery, "GET", _THINGS))[0] == 200

    played(on_disk(tmp_path), play)


def test_a_list_whose_objects_are_compacted_while_it_is_sent_is_broken_off(tmp_path: Path) -> None:
    async def play(machinery: ServerComponents) -> None:
        await fill(machinery)
        resource = machinery.catalog.custom("things.example.com")
        assert resource is not None
        entries = await resource.objects.gather()
        views = await resource.codec.views(entries, resource.serving.storage)
        pieces = views.pieces(100)
        next(pieces)
        for number in range(_MANY):
            await asked(machinery, "DELETE", f"{_THINGS}/t{number:02d}")
        await machinery.backend.store.compact(machinery.backend.revision)
        with pytest.raises(Expired):
            list(pieces)

    played(on_disk(tmp_path), play)


@pytest.mark.parametrize("storage", ["memory:", "etcd://127.0.0.1:1"])
def test_other_stores_keep_no_values_on_disk(tmp_path: Path, storage: str) -> None:
    async def scenario() -> None:
        async with running(Settings(port=0, storage=storage, values="disk")):
            pass

    with pytest.raises(Exception, match="--values disk needs --storage sqlite:PATH"):
        asyncio.run(scenario())
