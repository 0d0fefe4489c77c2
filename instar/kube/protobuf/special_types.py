"""Codecs of protobuf types with a custom JSON form: times, quantities, int-or-string, raw JSON.

Called by ``decoding.py`` and ``encoding.py``. Each type has a writer (JSON value → message bytes)
and a reader (bytes → JSON value, None for an empty value).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

import orjson

from instar.kube.api.encoding.go_text import GO_TEXT
from instar.kube.api.encoding.json_text import decode as decode_json
from instar.kube.protobuf.errors import ProtobufError
from instar.kube.protobuf.json_forms import TOO_DEEP
from instar.kube.protobuf.wire import (
    BYTES,
    VARINT,
    int32,
    int64,
    length_prefixed,
    read_size,
    read_varint,
    skip,
    tag,
    text_bytes,
    varint,
)
from instar.kube.quantities import QuantityError, canonical_quantity

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND, _MICROSECOND = timedelta(seconds=1), timedelta(microseconds=1)
_NO_TIME = datetime(1, 1, 1, tzinfo=UTC)
_SMALL = 64
_MANY_BRACKETS = 200
"""A text with more brackets may be too deep to be encoded again; most have fewer."""
_FIRST, _SECOND_FIELD = tag(1, VARINT), tag(2, VARINT)
_TEXT_1, _TEXT_3 = tag(1, BYTES), tag(3, BYTES)


def parts(data: bytes) -> dict[int, int | bytes]:
    """Return the fields of a small message by number; the last one if repeated."""
    found: dict[int, int | bytes] = {}
    at, end = 0, len(data)
    while at < end:
        key = data[at]
        at += 1
        if key > 0x7F:
            key, at = read_varint(data, at - 1)
        if key & 7 == BYTES:
            start, at = read_size(data, at, end)
            found[key >> 3] = data[start:at]
        elif key & 7 == VARINT:
            found[key >> 3], at = read_varint(data, at)
        else:
            at = skip(data, at, end, key)
    return found


def _number(value: int | bytes | None) -> int:
    return int64(value) if isinstance(value, int) else 0


def _text(value: int | bytes | None) -> str:
    return value.decode("utf-8", GO_TEXT) if isinstance(value, bytes) else ""


@lru_cache(maxsize=1024)
def write_time(text: str) -> bytes:
    """Encode whole seconds, as in upstream's JSON."""
    moment = _moment(text)
    if moment == _NO_TIME:
        return b""
    return _FIRST + varint((moment - _EPOCH) // _SECOND) + _SECOND_FIELD + b"\x00"


@lru_cache(maxsize=1024)
def write_micro_time(text: str) -> bytes:
    moment = _moment(text)
    if moment == _NO_TIME:
        return b""
    seconds, rest = divmod(moment - _EPOCH, _SECOND)
    return _FIRST + varint(seconds) + _SECOND_FIELD + varint(rest // _MICROSECOND * 1000)


def _moment(text: str) -> datetime:
    year, dash, rest = text.partition("-")
    # Older versions wrote years before 1000 without leading zeros; they are still stored.
    moment = datetime.fromisoformat(text if len(year) >= 4 else f"{year:0>4}{dash}{rest}")
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone: {text}")
    return moment


def _cached(read: Callable[[bytes], T]) -> Callable[[bytes, int, int, int], T]:
    """Cache a reader's results for small values, because the same few occur often."""
    known = lru_cache(maxsize=1024)(read)

    def reader(data: bytes, at: int, end: int, depth: int) -> T:
        return known(data[at:end]) if end - at <= _SMALL else read(data[at:end])

    return reader


@_cached
def read_time(data: bytes) -> str | None:
    if not data:
        return None
    return _seconds_text(_number(parts(data).get(1)))


def read_micro_time(data: bytes, at: int, end: int, depth: int) -> str | None:
    if at == end:
        return None
    found = parts(data[at:end])
    micros = int32(_number(found.get(2))) // 1000
    if not 0 <= micros < 1_000_000:
        raise ProtobufError("a time out of range")
    return f"{_seconds_text(_number(found.get(1)))[:-1]}.{micros:06}Z"


def _seconds_text(seconds: int) -> str:
    try:
        return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19] + "Z"
    except OverflowError as error:
        raise ProtobufError("a time out of range") from error


def write_quantity(value: Any) -> bytes:
    return _TEXT_1 + length_prefixed(canonical_quantity(value).encode())


@_cached
def read_quantity(data: bytes) -> str:
    try:
        return canonical_quantity(_text(parts(data).get(1)))
    except QuantityError as error:
        raise ProtobufError(str(error)) from error


def write_int_or_string(value: Any) -> bytes:
    """Encode type, number and text; all three are always present."""
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + _TEXT_3 + length_prefixed(text_bytes(value))
    return b"\x08\x00\x10" + varint(value) + b"\x1a\x00"


@_cached
def read_int_or_string(data: bytes) -> int | str:
    found = parts(data)
    return _text(found.get(3)) if found.get(1) == 1 else int32(_number(found.get(2)))


def write_raw(value: Any) -> bytes:
    """Encode JSON within a message: RawExtension, FieldsV1, and the values of a CRD's schemas."""
    return b"" if value is None else _TEXT_1 + length_prefixed(orjson.dumps(value))


def read_raw(data: bytes, at: int, end: int, depth: int) -> Any:
    raw = parts(data[at:end]).get(1)
    if not raw or isinstance(raw, int):
        return None
    try:
        value = decode_json(raw)
        if raw.count(b"{") + raw.count(b"[") > _MANY_BRACKETS:
            orjson.dumps(value)
    except ValueError as error:
        raise ProtobufError("json: error calling MarshalJSON: the raw value is no JSON") from error
    except (RecursionError, TypeError) as error:
        raise ProtobufError(TOO_DEEP) from error
    return value
