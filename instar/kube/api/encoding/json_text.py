"""JSON encoding and decoding as in kube-apiserver: sorted keys, Go's numbers and escapes.

Used for stored objects, responses, request bodies and webhooks. orjson does the work; this module
corrects what Go does differently and finds duplicate keys, which orjson does not report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import orjson
import re2

from instar.base.field_errors import go_float
from instar.base.limits import MAX_DEPTH
from instar.kube.api.encoding.go_json_errors import TOO_DEEP

_FLOAT = re.compile(rb"\.0[,\]}]|e[+-]?[0-9]{1,3}[,\]}]")
_DIGITS_TO_ZERO = bytes.maketrans(b"0123456789", b"0" * 10)
_BIG_INT = b"0" * 19
_COLONS = (b"\\u003a", b"\\u003A")
_INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)
_ESCAPES = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
)
_WRITERS_DEPTH = 254
"""orjson's own limit. Input is limited to less, because it may be wrapped in a few more levels
(a list, a Table, a review) when written again."""


class TooDeep(ValueError):
    """Well-formed, but nested deeper than ``MAX_DEPTH``; ``str()`` is upstream's message."""

    def __init__(self) -> None:
        super().__init__(TOO_DEEP)


def _unlike_go() -> Callable[[bytes], list[int]]:
    """Return a function that finds bytes which Go would write differently, in one pass.

    Nearly always there are none. A RE2 set of one expression is used, because it only reports
    whether it matches, while an expression creates a match object.
    """
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    escaped = b"|".join(plain for plain, _ in _ESCAPES)
    found = re2.Set.SearchSet(options)
    found.Add(_FLOAT.pattern + b"|" + escaped)
    found.Compile()
    search: Callable[[bytes], list[int]] = found.Match
    return search


_UNLIKE_GO = _unlike_go()


def encode_sorted(value: Any) -> bytes:
    """Encode compactly with keys sorted at every level and Go's escapes: the stored form of
    objects."""
    option = orjson.OPT_SORT_KEYS
    return _adjust_to_go(orjson.dumps(value, option=option), value, option)


def encode(value: Any) -> bytes:
    """Encode compactly, keys in their given order: for typed answers such as ``Status``."""
    return _adjust_to_go(orjson.dumps(value), value)


def encode_pretty(value: Any) -> bytes:
    return _escape_as_go(orjson.dumps(_go_numbers(value), option=orjson.OPT_INDENT_2))


def decode(data: bytes) -> Any:
    """Parse JSON with Go's numbers: an integer beyond int64 becomes a float.

    Raises ``TooDeep`` or ``orjson.JSONDecodeError``, both of them ``ValueError``.
    """
    value = orjson.loads(data)
    if len(data) > 2 * MAX_DEPTH and _count_openings(data) > MAX_DEPTH and _is_deep(value):
        raise TooDeep
    may_be_big = _BIG_INT in data.translate(_DIGITS_TO_ZERO)
    return _narrow_ints(value) if may_be_big else value


_SHORT = 8 << 10


def _count_openings(data: bytes) -> int:
    return _count(data, b"[") + _count(data, b"{")


def _count(data: bytes, character: bytes) -> int:
    """Count a character. ``bytes.replace`` takes a third of the time of ``bytes.count``, but each
    occurrence costs as much as fifty bytes, so ``count`` is used for long texts, which could
    consist of that character alone.
    """
    if len(data) > _SHORT:
        return data.count(character)
    return len(data) - len(data.replace(character, b""))


def _is_deep(value: Any) -> bool:
    """Return whether a value is too deep, by encoding it with the reserved levels around it."""
    for _ in range(_WRITERS_DEPTH - MAX_DEPTH):
        value = [value]
    try:
        orjson.dumps(value)
    except TypeError:
        return True
    return False


def duplicate_keys(data: bytes, parsed: Any, most: int = 100) -> list[str]:
    """Return the paths (``spec.a``, ``spec.l[0].b``) of repeated keys, in document order.

    A dropped key also drops its colon, so the re-encoded value has fewer colons. A text that
    escapes a colon seems to have one more and is then read key by key.
    """
    if _count(data, b":") == _count(orjson.dumps(parsed), b":") and not (
        b"\\" in data and (_COLONS[0] in data or _COLONS[1] in data)
    ):
        return []
    return _duplicates_slowly(data)[:most]


class _Pairs(list[tuple[str, Any]]):
    """An object's members as written, repeats included."""


def _duplicates_slowly(data: bytes) -> list[str]:
    found: list[str] = []
    try:
        document = json.loads(data, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return found
    _collect_duplicates(document, "", found)
    return found


def _collect_duplicates(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, item in value:
            where = f"{path}.{name}" if path else name
            if name in seen:
                found.append(where)
            seen.add(name)
            _collect_duplicates(item, where, found)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _collect_duplicates(item, f"{path}[{position}]", found)


def _adjust_to_go(data: bytes, value: Any, option: int = 0) -> bytes:
    if not _UNLIKE_GO(data):
        return data
    if _FLOAT.search(data):
        data = orjson.dumps(_go_numbers(value), option=option)
    return _escape_as_go(data)


def _escape_as_go(data: bytes) -> bytes:
    for plain, escaped in _ESCAPES:
        if plain in data:
            data = data.replace(plain, escaped)
    return data


def _go_numbers(value: Any) -> Any:
    if isinstance(value, float):
        return orjson.Fragment(go_float(value))
    if isinstance(value, dict):
        return {key: _go_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_go_numbers(item) for item in value]
    return value


def _narrow_ints(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if _INT64_MIN <= value <= _INT64_MAX else float(value)
    if isinstance(value, dict):
        return {key: _narrow_ints(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_narrow_ints(item) for item in value]
    return value
