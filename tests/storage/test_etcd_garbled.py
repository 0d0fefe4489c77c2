"""An etcd, or something in front of it, whose answers cannot be read, or contradict themselves.

What it was asked to write it may have written: that is found out, or told as unknown.
"""

from __future__ import annotations

import pytest

from instar.wire.storage.etcd.client import EtcdOptions
from instar.wire.storage.etcd.store import EtcdStore
from instar.wire.storage.protobuf_fields import always_bytes, bytes_field, int_field
from instar.wire.storage.store import Stale, Unavailable, Write
from tests.rpc.raw_server import Peer, serving

pytestmark = pytest.mark.anyio


CREATION = Write("g/things/ns/a", b"new", 0)
UPDATE = Write("g/things/ns/a", b"new", 5)
AT_9 = always_bytes(1, int_field(1, 77) + int_field(3, 9))
NOTHING = AT_9


def found(value: bytes, created: int, modified: int) -> bytes:
    kv = bytes_field(1, b"/registry/g/things/ns/a") + int_field(2, created)
    return AT_9 + bytes_field(2, kv + int_field(3, modified) + bytes_field(5, value))


def at(revision: int) -> bytes:
    return always_bytes(1, int_field(3, revision))


GARBLED = {
    "a field without end": b"\x0a\x7f" + b"x",
    "a number without end": b"\x08" + b"\xff" * 11,
    "a number that is cut off": AT_9 + b"\x10\xff",
    "no protobuf": b"<html>",
    "nothing": b"",
    "no revision": int_field(2, 1),
    "a number for the header": int_field(1, 5),
}
CONTRADICTIONS = {
    **GARBLED,
    "done before what it builds upon": at(5) + int_field(2, 1),
    "not done although nothing is in the way": AT_9
    + bytes_field(3, always_bytes(1, found(b"old", 3, 5))),
}


async def outcome(write: Write, *answers: bytes) -> int:
    """Of a write to an etcd that answers call by call, the last for all others."""

    async def etcd(peer: Peer) -> None:
        left = list(answers)
        await peer.greeted()
        while True:
            call = await peer.asked()
            peer.answer(call, left.pop(0) if len(left) > 1 else left[0])

    async with serving(etcd) as address:
        store = EtcdStore([address], options=EtcdOptions(timeout=0.5))
        try:
            return await store.commit(write)
        finally:
            await store.close()


@pytest.mark.parametrize("garbled", GARBLED.values(), ids=GARBLED)
async def test_a_creation_with_an_unreadable_response_is_looked_up(garbled: bytes) -> None:
    assert await outcome(CREATION, garbled, found(b"new", 8, 8)) == 8


@pytest.mark.parametrize("answer", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
async def test_an_update_with_an_implausible_response_is_unknown(answer: bytes) -> None:
    with pytest.raises(Unavailable, match="unknown whether"):
        await outcome(UPDATE, answer, found(b"old", 3, 5))


async def test_an_update_that_lost_is_stale_though_the_answer_could_not_be_read() -> None:
    with pytest.raises(Stale):
        await outcome(UPDATE, b"<html>", found(b"other", 3, 8), found(b"old", 3, 5))


async def test_without_a_readable_response_the_store_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="unreadable answer"):
        await outcome(CREATION, b"<html>")


async def test_a_read_is_retried() -> None:
    answers = [*GARBLED.values(), at(12)]

    async def etcd(peer: Peer) -> None:
        await peer.greeted()
        while True:
            peer.answer(await peer.asked(), answers.pop(0))

    async with serving(etcd) as address:
        store = EtcdStore([address], options=EtcdOptions(timeout=20))
        assert await store.barrier() == 12
        await store.close()
    assert answers == []


async def test_a_compaction_does_not_depend_on_the_response() -> None:
    async def etcd(peer: Peer) -> None:
        await peer.greeted()
        peer.answer(await peer.asked(), b"<html>")
        await peer.next()

    async with serving(etcd) as address:
        store = EtcdStore([address], options=EtcdOptions(timeout=5))
        await store.compact(3)
        await store.close()
