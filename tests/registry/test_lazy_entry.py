"""Entries that leave their bytes elsewhere answer as those that hold them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import orjson
import pytest

from instar.base.errors import Expired
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import InMemoryEntry, ingest
from instar.server.registry.stored.lazy_entry import LazyEntry, LazyEntryFactory
from instar.server.registry.stored.object_bytes import offset_by_uid
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import Record, Write
from instar.wire.storage.value_reader import ValueGone

_OBJECT = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "metadata": {"labels": {"app": "a"}, "name": "a", "namespace": "d", "uid": "u1"},
    "spec": {"replicas": 3},
}


class Drawer:
    """Values by place, in a dict; each read is counted."""

    def __init__(self) -> None:
        self.values: dict[int, bytes] = {}
        self.reads = 0

    def keep(self, record: Record) -> int:
        self.values[record.revision] = record.value
        return record.revision

    def read(self, place: int) -> bytes:
        self.reads += 1
        try:
            return self.values[place]
        except KeyError:
            raise ValueGone(place) from None

    def read_many(self, places: Sequence[int]) -> list[bytes]:
        return [self.read(place) for place in places]


def stored(obj: object = _OBJECT) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS) + b"\n"


def far_and_held(value: bytes) -> tuple[LazyEntry, InMemoryEntry]:
    record = Record("example.com/things/d/a", value, 7)
    return LazyEntryFactory(Drawer()).of_record(record, "d/a"), ingest(record, "d/a")


@pytest.mark.parametrize(
    "value",
    [stored(), stored({**_OBJECT, "metadata": {"name": "a"}}), b'{"kind":"T","metadata":{}}'],
    ids=["ours", "without a uid", "foreign"],
)
def test_a_far_entry_answers_what_a_held_one_does(value: bytes) -> None:
    far, held = far_and_held(value)

    assert far.content() == held.content()
    assert far.stored() == held.stored()
    assert far.view == held.view
    assert far.decode() == held.decode()
    assert far.labels == held.labels
    assert far.api_version == held.api_version
    assert (far.revision, far.suffix, far.seal) == (held.revision, held.suffix, held.seal)


def test_a_far_entry_keeps_labels_and_no_bytes() -> None:
    drawer = Drawer()
    far = LazyEntryFactory(drawer).of_record(Record("k", stored(), 7), "d/a")

    assert far.labels == far.labels == {"app": "a"}
    assert drawer.reads == 0
    assert far.view == far.view
    assert drawer.reads == 2


def test_a_far_entry_whose_value_was_compacted_has_expired() -> None:
    drawer = Drawer()
    far = LazyEntryFactory(drawer).of_record(Record("k", stored(), 7), "d/a")
    drawer.values.clear()

    with pytest.raises(Expired):
        far.decode()


def test_a_backend_with_values_shows_far_entries_and_gives_writers_their_own_bytes() -> None:
    async def scenario() -> None:
        store, drawer = MemoryStore(), Drawer()
        await store.commit(Write("example.com/things/d/old", stored(), 0))
        backend = Backend(store, values=drawer)
        await backend.start()
        things = backend.collection("example.com/things/")
        raw = stored().removesuffix(b"\n")
        draft = InMemoryEntry(raw, 0, "d/a", offset_by_uid(raw, _OBJECT))
        draft.know(api_version="example.com/v1", labels={"app": "a"})
        draft.token = mark = object()

        written = await backend.put(things, draft, 0)

        reads = drawer.reads
        assert isinstance(written, InMemoryEntry)
        shown = things.entries["d/a"]
        assert isinstance(shown, LazyEntry)
        assert (shown.labels, shown.token) == ({"app": "a"}, mark)
        assert drawer.reads == reads
        assert shown.view == written.view
        assert isinstance(things.entries["d/old"], LazyEntry)
        await backend.stop()

    asyncio.run(scenario())
