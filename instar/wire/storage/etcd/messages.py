"""etcd v3 messages as bytes: encoders of our requests and decoders of the answers.

Used by the other modules of this package. The code is hand-written, because five calls need neither
generated modules nor the protobuf runtime with its version pins, and because a range of a hundred
thousand values decodes faster this way.
"""

from __future__ import annotations

from typing import NamedTuple

from instar.kube.protobuf.wire import read_varint
from instar.wire.storage.protobuf_fields import (
    always_bytes,
    always_int,
    as_bytes,
    as_int,
    bytes_field,
    fields,
    int_field,
)

_BY_REVISION = int_field(2, 2)
"""Compare target "mod revision"; the operator "equal" is the default and omitted."""
_REVISION_TAG = 3 << 3
_HEADER_TAG, _EVENTS_TAG = bytes((1 << 3 | 2,)), bytes((11 << 3 | 2,))


class KeyValue(NamedTuple):
    """etcd's ``mvccpb.KeyValue``, without lease and version."""

    key: bytes
    value: bytes
    create_revision: int
    mod_revision: int


class RangeAnswer(NamedTuple):
    revision: int
    kvs: list[KeyValue]
    more: bool


class SwapAnswer(NamedTuple):
    """Answer to a swap; on a mismatch ``actual`` is the key's revision (0: no such key)."""

    revision: int
    succeeded: bool
    actual: int


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
            bytes_field(1, key),
            bytes_field(2, range_end),
            int_field(3, limit),
            int_field(4, revision),
            int_field(9, int(count_only)),
        )
    )


def swap_request(key: bytes, value: bytes | None, expected: int) -> bytes:
    """Put (``None``: delete) if the key's mod revision is ``expected``, else read the key."""
    named = always_bytes(1, key)  # the key field, which begins a put, a delete and a range alike
    compare = _BY_REVISION + always_bytes(3, key) + always_int(6, expected)
    if value is None:
        success = always_bytes(3, named)
    else:
        success = always_bytes(2, named + bytes_field(2, value))
    failure = always_bytes(1, named)
    return always_bytes(1, compare) + always_bytes(2, success) + always_bytes(3, failure)


def put_request(key: bytes, value: bytes) -> bytes:
    return bytes_field(1, key) + bytes_field(2, value)


def compaction_request(revision: int) -> bytes:
    return int_field(1, revision)


def watch_request(key: bytes, range_end: bytes, start_revision: int) -> bytes:
    create = (
        bytes_field(1, key)
        + bytes_field(2, range_end)
        + int_field(3, start_revision)
        + int_field(4, 1)  # progress_notify
        + int_field(8, 1)  # fragment: an answer above the message limit comes in parts
    )
    return bytes_field(1, create)


def progress_request() -> bytes:
    return always_bytes(3, b"")


def authenticate_request(name: str, password: str) -> bytes:
    return bytes_field(1, name.encode()) + bytes_field(2, password.encode())


# -- answers


def read_range(data: bytes) -> RangeAnswer:
    answer = _range_within(data)
    if not answer.revision:
        raise ValueError("an answer without a revision")
    return answer


def _range_within(data: bytes) -> RangeAnswer:
    """Decode a range answer nested in another, which may omit the revision."""
    revision, more, kvs = 0, False, list[KeyValue]()
    for number, value in fields(data):
        if number == 2:
            kvs.append(_key_value(value))
        elif number == 1:
            revision = _header_revision(value)
        elif number == 3:
            more = bool(value)
    return RangeAnswer(revision, kvs, more)


def read_swap(expected: int, data: bytes) -> SwapAnswer:
    """Decode the answer to a ``swap_request``; an inconsistent one counts as unreadable."""
    revision, succeeded, parts = 0, False, list[bytes]()
    for number, value in fields(data):
        if number == 1:
            revision = _header_revision(value)
        elif number == 2:
            succeeded = bool(value)
        elif number == 3:
            parts.append(as_bytes(value))
    if revision <= (expected if succeeded else 0):
        raise ValueError(f"done at revision {revision}")
    if succeeded:
        return SwapAnswer(revision, True, revision)
    actual = max((kv.mod_revision for kv in _read_values(parts)), default=0)
    if actual == expected:
        raise ValueError(f"not done although the key is at revision {expected}")
    return SwapAnswer(revision, False, actual)


def _read_values(parts: list[bytes]) -> list[KeyValue]:
    """Return the key-values that the executed branch has read."""
    return [
        kv
        for part in parts
        for kind, answer in fields(part)
        if kind == 1
        for kv in _range_within(as_bytes(answer)).kvs
    ]


def read_watch(data: bytes) -> WatchAnswer:
    revision = watch_id = compact_revision = 0
    created = cancelled = fragment = False
    reason, events = "", list[WatchEvent]()
    for number, value in fields(data):
        if number == 11:
            events.append(_event(as_bytes(value)))
        elif number == 1:
            revision = _header_revision(value)
        elif number == 2:
            watch_id = as_int(value)
        elif number == 3:
            created = bool(value)
        elif number == 4:
            cancelled = bool(value)
        elif number == 5:
            compact_revision = as_int(value)
        elif number == 6:
            reason = as_bytes(value).decode(errors="replace")
        elif number == 7:
            fragment = bool(value)
    return WatchAnswer(
        revision, watch_id, created, cancelled, compact_revision, reason, fragment, events
    )


def events_up_to(data: bytes) -> int:
    """Return the revision of a watch answer that holds only events, without decoding them; 0 for
    every other answer."""
    if data[:1] != _HEADER_TAG:
        return 0
    size, at = read_varint(data, 1)
    if data[at + size : at + size + 1] != _EVENTS_TAG:
        return 0
    return _header_revision(data[at : at + size])


def read_token(data: bytes) -> str:
    return _second_text(data)


def read_version(data: bytes) -> str:
    """Return the server's version from the answer to ``Maintenance.Status``."""
    return _second_text(data)


def read_snapshot(data: bytes) -> bytes:
    """Return the piece of the file in a message of ``Maintenance.Snapshot``."""
    return next((as_bytes(value) for number, value in fields(data) if number == 3), b"")


def _second_text(data: bytes) -> str:
    for number, value in fields(data):
        if number == 2:
            return as_bytes(value).decode()
    return ""


def _header_revision(data: int | bytes) -> int:
    """Return the revision of a header; skips the ten-byte cluster and member ids before it."""
    data = as_bytes(data)
    at, end = 0, len(data)
    while at < end:
        tag = data[at]
        at += 1
        if tag == _REVISION_TAG:
            return read_varint(data, at)[0]
        if tag & 0x87:  # not a varint field of number 1 to 15, as in etcd's headers
            return _revision_among(data)
        while data[at] > 0x7F:
            at += 1
        at += 1
    return 0


def _revision_among(data: bytes) -> int:
    for number, value in fields(data):
        if number == 3:
            return as_int(value)
    return 0


def _event(data: bytes) -> WatchEvent:
    deleted, kv = False, KeyValue(b"", b"", 0, 0)
    for number, value in fields(data):
        if number == 1:
            deleted = value == 1
        elif number == 2:
            kv = _key_value(value)
    return WatchEvent(kv, deleted)


def _key_value(data: int | bytes) -> KeyValue:
    found = dict(fields(as_bytes(data)))
    key, value = found.get(1, b""), found.get(5, b"")
    created, revision = found.get(2, 0), found.get(3, 0)
    return KeyValue(as_bytes(key), as_bytes(value), as_int(created), as_int(revision))
