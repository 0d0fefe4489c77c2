"""The few messages of etcd's v3 API we speak, as bytes: our requests, and readers of its answers.

Written by hand because five calls need neither generated modules nor the protobuf runtime and
its version pins, and because a range of a hundred thousand values is read faster this way.
It knows the wire format and field numbers, nothing of connections or of the ``Store`` contract.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from instar.protobuf.wire import read_varint, varint

_VARINT, _I64, _BYTES, _I32 = 0, 1, 2, 5
_MOD, _EQUAL = 2, 0
Field = tuple[int, "int | bytes"]


class KeyValue(NamedTuple):
    key: bytes
    value: bytes
    create_revision: int
    mod_revision: int


class RangeAnswer(NamedTuple):
    revision: int
    kvs: list[KeyValue]
    more: bool


class TxnAnswer(NamedTuple):
    """``found`` is what the range of the branch taken returned."""

    revision: int
    succeeded: bool
    found: list[KeyValue]


class WatchEvent(NamedTuple):
    kv: KeyValue
    deleted: bool


class WatchAnswer(NamedTuple):
    revision: int
    watch_id: int
    created: bool
    cancelled: bool
    compact_revision: int
    cancel_reason: str
    fragment: bool
    events: list[WatchEvent]


# -- requests


def range_request(
    key: bytes,
    range_end: bytes = b"",
    *,
    limit: int = 0,
    revision: int = 0,
    count_only: bool = False,
) -> bytes:
    return b"".join(
        (
            _bytes(1, key),
            _bytes(2, range_end),
            _int(3, limit),
            _int(4, revision),
            _int(9, int(count_only)),
        )
    )


def swap_request(key: bytes, value: bytes | None, expected: int) -> bytes:
    """Put (``None``: delete) if the key's mod revision is ``expected``, else read the key."""
    compare = _int(1, _EQUAL) + _int(2, _MOD) + _bytes(3, key) + _always_int(6, expected)
    if value is None:
        success = _bytes(3, _bytes(1, key))
    else:
        success = _bytes(2, _bytes(1, key) + _bytes(2, value))
    failure = _bytes(1, range_request(key))
    return _bytes(1, compare) + _bytes(2, success) + _bytes(3, failure)


def put_request(key: bytes, value: bytes) -> bytes:
    return _bytes(1, key) + _bytes(2, value)


def compaction_request(revision: int) -> bytes:
    return _int(1, revision)


def watch_request(key: bytes, range_end: bytes, start_revision: int) -> bytes:
    create = (
        _bytes(1, key)
        + _bytes(2, range_end)
        + _int(3, start_revision)
        + _int(4, 1)  # progress_notify
        + _int(8, 1)  # fragment: an answer above the message limit comes in parts
    )
    return _bytes(1, create)


def progress_request() -> bytes:
    return _always_bytes(3, b"")


def authenticate_request(name: str, password: str) -> bytes:
    return _bytes(1, name.encode()) + _bytes(2, password.encode())


# -- answers


def read_range(data: bytes) -> RangeAnswer:
    revision, more, kvs = 0, False, list[KeyValue]()
    for number, value in _fields(data):
        if number == 2:
            kvs.append(_key_value(value))
        elif number == 1:
            revision = _header_revision(value)
        elif number == 3:
            more = bool(value)
    return RangeAnswer(revision, kvs, more)


def read_txn(data: bytes) -> TxnAnswer:
    revision, succeeded, found = 0, False, list[KeyValue]()
    for number, value in _fields(data):
        if number == 1:
            revision = _header_revision(value)
        elif number == 2:
            succeeded = bool(value)
        elif number == 3:
            for kind, answer in _fields(_as_bytes(value)):
                if kind == 1:
                    found = read_range(_as_bytes(answer)).kvs
    return TxnAnswer(revision, succeeded, found)


def read_watch(data: bytes) -> WatchAnswer:
    revision = watch_id = compact_revision = 0
    created = cancelled = fragment = False
    reason, events = "", list[WatchEvent]()
    for number, value in _fields(data):
        if number == 11:
            events.append(_event(_as_bytes(value)))
        elif number == 1:
            revision = _header_revision(value)
        elif number == 2:
            watch_id = _as_int(value)
        elif number == 3:
            created = bool(value)
        elif number == 4:
            cancelled = bool(value)
        elif number == 5:
            compact_revision = _as_int(value)
        elif number == 6:
            reason = _as_bytes(value).decode(errors="replace")
        elif number == 7:
            fragment = bool(value)
    return WatchAnswer(
        revision, watch_id, created, cancelled, compact_revision, reason, fragment, events
    )


def read_token(data: bytes) -> str:
    return _second_text(data)


def read_version(data: bytes) -> str:
    """The server's version, from the answer to ``Maintenance.Status``."""
    return _second_text(data)


def _second_text(data: bytes) -> str:
    for number, value in _fields(data):
        if number == 2:
            return _as_bytes(value).decode()
    return ""


def _header_revision(data: int | bytes) -> int:
    for number, value in _fields(_as_bytes(data)):
        if number == 3:
            return _as_int(value)
    return 0


def _event(data: bytes) -> WatchEvent:
    deleted, kv = False, KeyValue(b"", b"", 0, 0)
    for number, value in _fields(data):
        if number == 1:
            deleted = value == 1
        elif number == 2:
            kv = _key_value(value)
    return WatchEvent(kv, deleted)


def _key_value(data: int | bytes) -> KeyValue:
    key = content = b""
    created = revision = 0
    for number, value in _fields(_as_bytes(data)):
        if number == 1:
            key = _as_bytes(value)
        elif number == 5:
            content = _as_bytes(value)
        elif number == 3:
            revision = _as_int(value)
        elif number == 2:
            created = _as_int(value)
    return KeyValue(key, content, created, revision)


# -- the wire format


def _always_int(number: int, value: int) -> bytes:
    return varint(number << 3 | _VARINT) + varint(value)


def _int(number: int, value: int) -> bytes:
    return _always_int(number, value) if value else b""


def _always_bytes(number: int, value: bytes) -> bytes:
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


def _bytes(number: int, value: bytes) -> bytes:
    return _always_bytes(number, value) if value else b""


def _fields(data: bytes) -> Iterator[Field]:
    """Each field's number and its value: an integer, or the bytes of anything longer."""
    at, end = 0, len(data)
    while at < end:
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == _BYTES:
            size, at = read_varint(data, at)
            yield tag >> 3, data[at : at + size]
            at += size
        elif kind == _VARINT:
            value, at = read_varint(data, at)
            yield tag >> 3, value
        elif kind in (_I64, _I32):
            at += 8 if kind == _I64 else 4
        else:
            raise ValueError(f"wire type {kind} in an answer of etcd")


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where etcd's API has a message")
    return value


def _as_int(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ValueError("a message where etcd's API has a number")
    return value
