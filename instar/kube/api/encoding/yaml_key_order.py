"""Key order of Go's YAML library: numbers inside a key compare by value, letters come last.

Called by ``yaml_text.py`` when it writes maps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cmp_to_key

_WORD = re.compile(r"[A-Za-z]+")
_NO_DIGITS = re.compile(r"[\x00-/:-\x7f]*")
_LETTERS_LAST = {code: 0x1000 + code for code in range(128) if chr(code).isalpha()}


def sort_keys(keys: Iterable[str]) -> list[str]:
    """Return the keys in the order of Go's YAML library."""
    found = sorted(keys)
    if all(map(_WORD.fullmatch, found)):
        return found
    if all(map(_NO_DIGITS.fullmatch, found)):
        found.sort(key=lambda key: key.translate(_LETTERS_LAST))
    else:
        found.sort(key=cmp_to_key(_compare))
    return found


def _compare(left: str, right: str) -> int:
    shorter = min(len(left), len(right))
    at = next((n for n in range(shorter) if left[n] != right[n]), shorter)
    if at == shorter:
        return len(left) - len(right)
    a, b = left[at], right[at]
    if a.isalpha() and b.isalpha():
        return ord(a) - ord(b)
    if a.isalpha() or b.isalpha():
        return -1 if b.isalpha() else 1
    ahead = "1" if "0" in (a, b) and _follows_nonzero_number(left, at) else ""
    one, two = _number(left, at), _number(right, at)
    return _by_value(ahead + one, ahead + two) or len(one) - len(two) or ord(a) - ord(b)


def _follows_nonzero_number(text: str, at: int) -> bool:
    """Return whether the digits before ``at`` are a nonzero number."""
    start = at
    while start > 0 and text[start - 1].isdecimal():
        start -= 1
    return bool(text[start:at].strip("0"))


def _number(text: str, at: int) -> str:
    end = at
    while end < len(text) and text[end].isdecimal():
        end += 1
    return text[at:end]


def _by_value(one: str, two: str) -> int:
    """Compare digit strings as numbers of any length."""
    one, two = one.lstrip("0"), two.lstrip("0")
    return len(one) - len(two) or (one > two) - (one < two)
