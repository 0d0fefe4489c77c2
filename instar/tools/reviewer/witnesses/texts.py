"""Generates strings that match a pattern or a format, from the pattern's parse tree; deterministic.

``samples.py`` and ``candidates.py`` call it. A pattern gives several strings: short and long, with
different characters of a class. RE2 is close enough to Python's syntax that a string made from
Python's parse tree nearly always matches; callers check it anyway.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_sre: Any = importlib.import_module("re._parser")

LONGEST = 5000
"""Maximum characters of a generated string."""
_PLAIN_CHARACTERS = ("a", "b", "A", "0", "1", "-", "_", ".", "/", ":", " ")

FORMAT_TEXTS: dict[str, tuple[str, ...]] = {
    "bsonobjectid": ("507f1f77bcf86cd799439011",),
    "uri": ("https://example.com/a", "/a"),
    "email": ("a@example.com",),
    "hostname": ("example.com", "a"),
    "ipv4": ("192.0.2.1",),
    "ipv6": ("2001:db8::1",),
    "cidr": ("192.0.2.0/24",),
    "mac": ("00:00:5e:00:53:01",),
    "uuid": ("123e4567-e89b-42d3-a456-426614174000",),
    "uuid3": ("123e4567-e89b-32d3-a456-426614174000",),
    "uuid4": ("123e4567-e89b-42d3-a456-426614174000",),
    "uuid5": ("123e4567-e89b-52d3-a456-426614174000",),
    "isbn": ("0306406152",),
    "isbn10": ("0306406152",),
    "isbn13": ("9780306406157",),
    "creditcard": ("4111111111111111",),
    "ssn": ("078-05-1120",),
    "hexcolor": ("#ffffff",),
    "rgbcolor": ("rgb(1,2,3)",),
    "byte": ("YQ==",),
    "password": ("a",),
    "date": ("2024-01-31",),
    "datetime": ("2024-01-31T12:00:00Z",),
    "duration": ("1h", "30s"),
    "k8sshortname": ("a",),
    "k8slongname": ("a.b",),
}
"""By name without dashes."""


class _Style(NamedTuple):
    branch: int
    character: int
    extra: int
    """Further rounds of every repetition that allows them."""


_STYLES = tuple(
    _Style(branch, character, extra)
    for extra in (0, 1, 2)
    for branch in (0, 1, 2, 3)
    for character in (0, 1, 2, 3)
)


def matching(pattern: str, *, least: int = 0) -> Iterator[str]:
    """Yield distinct texts that should match, short ones first; ``least`` is a minimum length."""
    try:
        tree = _sre.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return
    seen: set[str] = set()
    styles = (
        _STYLES
        if least == 0
        else tuple(
            _Style(branch, 0, least // parts + 1) for branch in range(4) for parts in (1, 2, 4)
        )
    )
    for style in styles:
        text = _text(tree, style, {})
        if text is not None and text not in seen and len(text) <= LONGEST:
            seen.add(text)
            if len(text) >= least:
                yield text


def _text(tree: Any, style: _Style, groups: dict[int, str]) -> str | None:
    out: list[str] = []
    for op, argument in tree:
        part = _part(str(op), argument, style, groups)
        if part is None:
            return None
        out.append(part)
    return "".join(out)


def _part(op: str, argument: Any, style: _Style, groups: dict[int, str]) -> str | None:
    if op == "LITERAL":
        return chr(argument)
    if op == "NOT_LITERAL":
        return next(char for char in _PLAIN_CHARACTERS if char != chr(argument))
    if op == "ANY":
        return _PLAIN_CHARACTERS[style.character]
    if op == "IN":
        return _class(argument, style)
    if op in ("AT", "ASSERT", "ASSERT_NOT"):
        return ""
    if op == "BRANCH":
        branches = argument[1]
        return _text(branches[style.branch % len(branches)], style, groups)
    if op == "SUBPATTERN":
        inner = _text(argument[3], style, groups)
        if inner is not None and argument[0] is not None:
            groups[argument[0]] = inner
        return inner
    if op in ("MAX_REPEAT", "MIN_REPEAT"):
        return _repeat(argument, style, groups)
    if op == "GROUPREF":
        return groups.get(argument)
    return None


def _repeat(argument: Any, style: _Style, groups: dict[int, str]) -> str | None:
    low, high, inner = argument
    times = min(int(low) + style.extra, int(high), LONGEST)
    once = _text(inner, style, groups) if times else ""
    return None if once is None else once * times


def _class(items: Any, style: _Style) -> str:
    negated = bool(items) and str(items[0][0]) == "NEGATE"
    members = [char for char in _PLAIN_CHARACTERS if _in_class(char, items) != negated]
    if not members and not negated:
        members = [_first(items)]
    return members[style.character % len(members)] if members else "~"


def _in_class(char: str, items: Any) -> bool:
    code = ord(char)
    for op, argument in items:
        word = str(op)
        if word == "LITERAL" and argument == code:
            return True
        if word == "RANGE" and argument[0] <= code <= argument[1]:
            return True
        if word == "CATEGORY" and _in_category(str(argument), char):
            return True
    return False


def _in_category(name: str, char: str) -> bool:
    kinds = {
        "DIGIT": char.isdigit(),
        "SPACE": char.isspace(),
        "WORD": char.isalnum() or char == "_",
    }
    word = name.rpartition("_")[2]
    return kinds.get(word, False) != ("_NOT_" in name)


def _first(items: Any) -> str:
    for op, argument in items:
        if str(op) == "LITERAL":
            return chr(argument)
        if str(op) == "RANGE":
            return chr(argument[0])
    return "a"


def text_of_length(length: int) -> str:
    return "a" * min(length, LONGEST)
