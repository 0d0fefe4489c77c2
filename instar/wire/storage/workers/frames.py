"""Frame protocol between the store's process and its workers: a JSON head, then raw values.

Used by ``store_server.py`` and ``worker_store.py``. Both ends run the same release on the same
machine, so the protocol has no version. Values follow the head and are neither parsed nor copied
into it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any, cast

import orjson

from instar.wire.storage.store import (
    Ahead,
    Compacted,
    Event,
    Record,
    Stale,
    StoreError,
    Unavailable,
    ValueTooLarge,
)
from instar.wire.storage.workers.arena_reclaim import ArenaReference, Move

_LENGTHS = Struct("<II")
_DELETED = -1
_LENT = -2
"""Lengths at and below this encode the location of a value in shared memory."""
Head = list[Any]


class FrameReader(asyncio.Protocol):
    """One connection, either end: splits the stream into frames and writes frames."""

    def __init__(
        self, received: Callable[[Head, bytes], None], lost: Callable[[Exception | None], None]
    ) -> None:
        self._received = received
        self._lost = lost
        self._buffer = bytearray()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have another base class
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self._lost(error)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= _LENGTHS.size:
            head, body = _LENGTHS.unpack_from(buffer, start)
            middle = start + _LENGTHS.size + head
            end = middle + body
            if len(buffer) < end:
                break
            with memoryview(buffer) as view:
                document = _read_head(view[start + _LENGTHS.size : middle])
                values = bytes(view[middle:end])
            self._received(document, values)
            start = end
        del buffer[:start]

    def send(self, frame: bytes) -> None:
        if self.transport is not None:
            self.transport.write(frame)

    def backlog(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def finish(self) -> None:
        """Close after everything sent has been delivered."""
        if self.transport is not None:
            self.transport.close()


def frame(head: Head, values: Iterable[bytes] = ()) -> bytes:
    """Return a message between processes: two lengths, a JSON head, the values."""
    document, body = _head(head), b"".join(values)
    return b"".join((_LENGTHS.pack(len(document), len(body)), document, body))


def _head(head: Head) -> bytes:
    try:
        return orjson.dumps(head)
    # keys written by other clients of a cluster may not be UTF-8 and hold lone surrogates
    except TypeError:
        return json.dumps(head).encode()


def _read_head(document: memoryview) -> Head:
    try:
        return cast(Head, orjson.loads(document))
    except ValueError:
        return cast(Head, json.loads(bytes(document)))


def events_frame(number: int, events: Sequence[Event], revision: int) -> bytes:
    """Return the message that carries events to a worker, up to ``revision``."""
    told, values = encode_events(events)
    return frame([0, "events", number, revision, told], values)


def encode_events(
    events: Iterable[Event | Record],
) -> tuple[list[tuple[str, int, int]], list[bytes]]:
    """Encode events as head entries, and return the values that follow the head."""
    told, values = [], []
    for key, value, revision, _ in events:
        if value is None:
            told.append((key, revision, _DELETED))
        elif isinstance(value, ArenaReference):
            told.append((key, revision, _LENT - value.place))
        else:
            told.append((key, revision, len(value)))
            values.append(value)
    return told, values


def read_events(told: Sequence[Sequence[Any]], body: bytes) -> list[Event]:
    events, start = [], 0
    for key, revision, length in told:
        value: bytes | None
        if length >= 0:
            value = body[start : start + length]
            start += length
        else:
            value = None if length == _DELETED else ArenaReference.at(_LENT - length)
        events.append(Event(key, value, revision))
    return events


def read_records(told: Sequence[Sequence[Any]], body: bytes) -> list[Record]:
    found = read_events(told, body)
    return [Record(key, b"" if value is None else value, at) for key, value, at, _ in found]


def moves_head(moves: Iterable[Move]) -> list[tuple[str, int, int]]:
    return [(key, revision, place) for key, revision, place in moves]


def error_head(error: Exception) -> Head:
    """Return a store error as the head of a message; the worker raises it again."""
    match error:
        case Stale():
            return ["Stale", error.key, error.expected, error.actual]
        case Compacted():
            return ["Compacted", error.oldest]
        case Ahead():
            return ["Ahead", error.revision, error.current]
        case Unavailable() | ValueTooLarge():
            return [type(error).__name__, str(error)]
        case _:
            return ["StoreError", str(error)]


def read_error(head: Head) -> StoreError:
    kinds: dict[str, Callable[..., StoreError]] = {
        "Stale": Stale,
        "Compacted": Compacted,
        "Ahead": Ahead,
        "Unavailable": Unavailable,
        "TooLarge": ValueTooLarge,
    }
    return kinds.get(head[0], StoreError)(*head[1:])
