"""Hypothesis strategies for strings and numbers: bounds, patterns and formats.

Called by ``objects.py``, which makes test objects for ``instar check``.
"""

from __future__ import annotations

import base64
import datetime
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

Overlays = Sequence[Mapping[str, Any]]

_ALPHABET = st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp"))
TEXT = st.text(_ALPHABET, max_size=8)
KEYS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=4)
ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers(-1000, 1000) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=4,
)

_HOSTS = ["a", "example.com", "x-1.example.org"]
_DIGITS = st.integers(0, 255)
_IPV4 = st.tuples(_DIGITS, _DIGITS, _DIGITS, _DIGITS).map(lambda parts: ".".join(map(str, parts)))
_UUIDS = st.uuids(version=4).map(str)
_DATES = st.dates(datetime.date(1900, 1, 1)).map(str)
_TIMES = st.datetimes(datetime.datetime(1900, 1, 1)).map(
    lambda moment: moment.replace(microsecond=0).isoformat() + "Z"
)
_DURATIONS = st.tuples(st.integers(0, 999), st.sampled_from(["ms", "s", "m", "h"])).map(
    lambda parts: f"{parts[0]}{parts[1]}"
)
_FORMATS: dict[str, st.SearchStrategy[str]] = {
    "byte": st.binary(min_size=1, max_size=6).map(lambda data: base64.b64encode(data).decode()),
    "cidr": _IPV4.map(lambda address: f"{address}/24"),
    "date": _DATES,
    "date-time": _TIMES,
    "datetime": _TIMES,
    "duration": _DURATIONS,
    "email": st.sampled_from(["a@example.com", "b.c@example.org"]),
    "hostname": st.sampled_from(_HOSTS),
    "ip": _IPV4,
    "ipv4": _IPV4,
    "ipv6": st.sampled_from(["::1", "2001:db8::1"]),
    "mac": st.sampled_from(["00:00:5e:00:53:01", "02:00:00:00:00:01"]),
    "uri": st.sampled_from(["https://example.com", "http://a/b?c=d", "urn:x:y"]),
    "uuid": _UUIDS,
    "uuid3": st.just("a3bb189e-8bf9-3888-9912-ace4e6543002"),
    "uuid4": _UUIDS,
    "uuid5": st.just("886313e1-3b8a-5372-9b90-0c9aee199e5d"),
}


def text_strategy(overlays: Overlays) -> st.SearchStrategy[str]:
    """Return a hypothesis strategy of texts that satisfy all of the schemas."""
    least = max((_whole(raw.get("minLength"), 0) for raw in overlays), default=0)
    most = min((_whole(raw.get("maxLength"), 10**6) for raw in overlays), default=10**6)
    patterns = tuple(dict.fromkeys(raw["pattern"] for raw in overlays if raw.get("pattern")))
    formats = [raw["format"] for raw in overlays if raw.get("format") in _FORMATS]
    if patterns:
        return _patterned(patterns, least, most)
    if formats:
        return _FORMATS[formats[0]]
    return st.text(_ALPHABET, min_size=least, max_size=max(least, min(most, least + 8)))


@lru_cache(maxsize=1024)
def _patterned(patterns: tuple[str, ...], least: int, most: int) -> st.SearchStrategy[str]:
    try:
        compiled = [re.compile(_python_pattern(pattern), re.ASCII) for pattern in patterns]
    except re.error:
        return st.text(_ALPHABET, min_size=least, max_size=max(least, min(most, least + 8)))
    # Match the full text: a search pattern would add random text around it.
    first = st.from_regex(compiled[0], fullmatch=True)
    return first.filter(
        lambda text: (
            least <= len(text) <= most and all(pattern.search(text) for pattern in compiled[1:])
        )
    )


def _python_pattern(pattern: str) -> str:
    """Translate RE2 syntax to Python's where they differ."""
    for theirs, ours in _CLASSES.items():
        pattern = pattern.replace(f"[:{theirs}:]", ours)
    body = pattern.replace(r"\z", r"\Z")
    if body.endswith("$") and not body.endswith(r"\$"):
        body = body[:-1] + r"\Z"
    return body


_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "space": r"\s",
    "word": r"\w",
    "xdigit": "0-9a-fA-F",
}


def number_strategy(kind: str, overlays: Overlays) -> st.SearchStrategy[Any]:
    """Return a hypothesis strategy of numbers that satisfy all of the schemas."""
    low, high = -math.inf, math.inf
    low_open = high_open = False
    for raw in overlays:
        minimum, maximum = raw.get("minimum"), raw.get("maximum")
        if minimum is not None and minimum >= low:
            low, low_open = minimum, bool(raw.get("exclusiveMinimum"))
        if maximum is not None and maximum <= high:
            high, high_open = maximum, bool(raw.get("exclusiveMaximum"))
    step = next((raw["multipleOf"] for raw in overlays if raw.get("multipleOf")), None)
    wide = any(raw.get("format") == "int64" for raw in overlays)
    limit = 2**53 if wide else 2**31 - 1
    bottom = _ceil(low, low_open) if low > -math.inf else max(-limit, _lower_bound(high, limit))
    top = _floor(high, high_open) if high < math.inf else max(limit, bottom)
    if bottom > top and kind == "number":
        return st.floats(low, high, exclude_min=low_open, exclude_max=high_open)
    if isinstance(step, int) and step > 0:
        return st.integers(-(-bottom // step), top // step).map(lambda n: n * step)
    whole = st.integers(bottom, max(top, bottom))
    if kind == "integer":
        return whole
    return whole | st.integers(bottom * 4, max(top, bottom) * 4).map(_quarter)


def _quarter(number: int) -> int | float:
    """Return a number with a fraction that Go and Python print alike; whole ones stay integers."""
    return number // 4 if number % 4 == 0 else number / 4


def _lower_bound(high: float, limit: int) -> int:
    return -limit if high == math.inf else math.floor(high) - limit


def _ceil(value: float, is_open: bool) -> int:
    whole = math.ceil(value)
    return whole + 1 if is_open and whole == value else whole


def _floor(value: float, is_open: bool) -> int:
    whole = math.floor(value)
    return whole - 1 if is_open and whole == value else whole


def _whole(value: Any, default: int) -> int:
    return int(value) if isinstance(value, int | float) else default
