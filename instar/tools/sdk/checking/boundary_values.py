"""Values at which converters break, by type and format of a schema.

``directed_objects.py`` puts them into objects and drops a value that the schema refuses, so this
module considers only the bounds of the schema.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from instar.kube.schema.structure.structural import Structural

Raw = Mapping[str, Any]

INT32, INT64, EXACT = 2**31, 2**63, 2**53
"""Above ``EXACT`` a float no longer holds every whole number."""

_SMALL_INTEGERS = (0, 1, -1, 2, 3, 7, 10, 29, 57, 59, 60, 61, 90, 99, 100, 101, 255, 256)
"""29 and 57 are not whole after ``/ 100 * 100`` in floats."""
_LARGE_INTEGERS = (
    *(999, 1000, 1001, 1024, 1500, 3599, 3601, 65535, 65536, 86399, 86401, 1_000_001),
    *(INT32 - 1, -INT32),
)
_WIDE_INTEGERS = (EXACT + 1, INT64 - 1, -INT64, INT32, -INT32 - 1, -EXACT - 1)

_FRACTIONS = (
    *(0.1, 0.29, 0.57, 1.15, 0.1 + 0.2, 1 / 3, 0.5, 1.5, 2.675, 0.001, 0.000001, 1e-9),
    *(-0.001, -1.5, 99.99, 123456.789, 1e15 + 0.5, 0.12345678901234567),
)

_SHORT_TEXTS = ("", "a", "A", "aB", "Ab-C", "0", "a-b", "a_b", "a.b", "a b", "a/b", "a:b", "a,b")
_SPACES = (" a", "a ", " ", "a\n", "\ta", "a  b")
_NUMBER_TEXTS = (
    *("1", "-1", "+1", "007", "1.0", "1.50", ".5", "1e3", "0x1f", "1_000", "8080", "٣", "²"),
    *("50%", "33.3%", "100m", "1500m", "0.1", "1Gi", "1.5Gi", "1k", "18446744073709551616"),
)
_WORDS = ("true", "True", "false", "yes", "no", "on", "null", "None", "~", "nan", "inf")
_SEPARATED = (
    *("a/b/c", "/a", "a/", "//", "a:b:c", ":a", "a:", "a=b", "a=b=c", "=a", "a;b", "a|b"),
    *("a,b,c", ",", "a, b", "a.b.c", ".a", "a.", "a@b", "a@b@c", "a#b", "a?b=c&d=e", "a+b"),
    *("a%20b", "a%2Fb", "a--b", "-a", "a-", "a->b", "a..b", "*", "{}", "[]", "{a}", "$(A)"),
)
_QUOTED = ("'", '"', "\\", "a\\nb", '{"a": 1}', "- a", "a: b", "line\nline", "# a")
_UNICODE = ("é", "e\u0301", "日本", "😀", "ß", "İ", "ﬁ", "\u200b", "a\u00a0b", "Ω")
_ADDRESSES = (
    *("host:80", "host", ":80", "[::1]:80", "::1", "10.0.0.1:80", "http://h:80/p?q=1#f"),
    *(
        "https://user:pw@h/p",
        "s3://a/b/c",
        "registry:5000/a/b:tag@sha256:00",
        "a:tag",
        "a@sha256:0",
    ),
)
_DURATIONS = ("0s", "90s", "1m30s", "1h0m0s", "1.5h", "100ms", "1us", "-1s", "36h", "1h1m1.5s")
_TIMES = (
    *("2024-02-29T23:59:59Z", "2024-01-31T12:00:00+02:00", "2024-01-31T12:00:00.123456789Z"),
    *("2024-01-31T12:00:00.5Z", "1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z"),
    *("9999-12-31T23:59:59Z", "2024-01-31t12:00:00z", "2024-12-31T23:30:00-01:00"),
)
_LENGTHS = (9, 16, 33, 64, 254, 1025)

_FORMAT_TEXTS: dict[str, tuple[str, ...]] = {
    "byte": ("", "AA==", "+/+/", "////", "aGVsbG8gd29ybGQ=", "gICA"),
    "date": ("2024-02-29", "1969-12-31", "0001-01-01", "9999-12-31", "2024-12-31"),
    "date-time": _TIMES,
    "datetime": _TIMES,
    "duration": _DURATIONS,
    "email": ("a@example.com", "A.B+c@Example.COM"),
    "hostname": ("a", "Example.COM", "x-1.example.org"),
    "ipv4": ("0.0.0.0", "255.255.255.255", "10.0.0.1"),
    "ipv6": ("::", "::1", "2001:DB8::1", "2001:db8:0:0:0:0:0:1", "::ffff:10.0.0.1"),
    "ip": ("10.0.0.1", "::1", "2001:DB8::1"),
    "cidr": ("0.0.0.0/0", "10.0.0.1/24", "2001:db8::/32"),
    "mac": ("00:00:5e:00:53:01", "02-00-00-00-00-0A"),
    "uri": ("https://example.com", "http://a/b?c=d#e", "urn:x:y", "https://A.example/%2F"),
    "uuid": ("123e4567-e89b-42d3-a456-426614174000", "123E4567-E89B-42D3-A456-426614174000"),
}

MAP_KEYS = (
    *("a", "A", "aB", "key", "Key", "KEY", "a.b", "a/b", "example.com/Name", "a-b", "a_b", "0"),
    *("1", "a b", " a", "a ", "é", "", "a:b", "a=b", "x" * 64, "true", "apiVersion", "name"),
)
"""Keys of free maps: the schema cannot restrict them, so any text may come."""

SIZES = (2, 0, 1, 4, 3, 12)
"""Lengths of lists and maps, one after the other."""
LARGE = 120


def boundary_values(node: Structural) -> Iterator[Any]:
    """Return scalar candidates for a schema node, the most effective ones first."""
    raw = node.raw
    if node.nullable:
        yield None
    if raw.get("enum"):
        yield from raw["enum"]
        return
    if node.default is not None:
        yield node.default
    if node.int_or_string:
        yield from _int_or_string()
    elif node.type == "boolean":
        yield from (True, False)
    elif node.type == "integer":
        yield from _integers(raw)
    elif node.type == "number":
        yield from _numbers(raw)
    elif node.type == "string":
        yield from _texts(raw)


def _int_or_string() -> Iterator[Any]:
    yield from (8080, "8080", "http", "50%", 0, "0", "007", 1, "1", "", " 1", "1.5", "-1", -1)
    yield from (INT32 - 1, str(INT32), "a-b", "A")


def _integers(raw: Raw) -> Iterator[int]:
    yield from _near_bounds(raw)
    yield from _SMALL_INTEGERS
    if raw.get("format") != "int32":
        yield from _WIDE_INTEGERS
    yield from _LARGE_INTEGERS


def _near_bounds(raw: Raw) -> Iterator[int]:
    for name, inward in (("minimum", 1), ("maximum", -1)):
        bound = raw.get(name)
        if isinstance(bound, int | float) and math.isfinite(bound):
            yield from (int(bound), int(bound) + inward)
    step = raw.get("multipleOf")
    if isinstance(step, int) and step > 0:
        yield from (step, step * 3, -step)


def _numbers(raw: Raw) -> Iterator[int | float]:
    for name in ("minimum", "maximum"):
        bound = raw.get(name)
        if isinstance(bound, int | float):
            yield from (bound, bound + 0.001, bound - 0.001)
    yield from _FRACTIONS
    yield from _SMALL_INTEGERS[:8]
    yield from (EXACT + 1, 1000)


def _texts(raw: Raw) -> Iterator[str]:
    yield from _FORMAT_TEXTS.get(str(raw.get("format") or ""), ())
    for name in ("minLength", "maxLength"):
        bound = raw.get(name)
        if isinstance(bound, int) and 0 <= bound <= 4096:
            yield from ("a" * bound, "é" * bound)
    yield from _SHORT_TEXTS
    yield from _NUMBER_TEXTS
    yield from _SPACES
    yield from _SEPARATED
    yield from _UNICODE
    yield from _ADDRESSES
    yield from _WORDS
    yield from _QUOTED
    yield from _DURATIONS[:6]
    yield from _TIMES[:3]
    yield from (_long(length) for length in _LENGTHS)


def _long(length: int) -> str:
    """Return a text of different characters, so that a truncation is noticed."""
    return "".join("abcdefghijklmnopqrstuvwxyz0123456789"[place % 36] for place in range(length))
