r"""Checks whether a pattern means the same in RE2, Python and pydantic's regex engine.

Called by ``bounds.py``. Other patterns are left out of the model, because a model must never reject
what the server accepts, and the generated module must be importable. An allowed pattern may still
accept a little more (``\\d`` of other scripts).
"""

from __future__ import annotations

import re

_ESCAPES = frozenset("dwsbtnrf.^$*+?()[]{}|/\\-_ :@#%&=,;!<>~'\"`")
_GROUPS = ("?:", "?P<")


def plain_pattern(pattern: str) -> bool:
    """Return whether the pattern means the same in all three engines."""
    if not _same_everywhere(pattern.removeprefix("(?i)")):
        return False
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _same_everywhere(pattern: str) -> bool:
    place, in_class = 0, False
    while place < len(pattern):
        letter, rest = pattern[place], pattern[place + 1 : place + 4]
        if letter == "\\":
            if rest[:1] not in _ESCAPES or not rest:
                return False
            place += 2
            continue
        if in_class:
            if letter == "[" or pattern[place : place + 2] in ("&&", "--", "~~"):
                return False
            in_class = letter != "]"
        elif letter == "[":
            in_class = True
            opened = pattern[place + 1 : place + 2] == "^"
            if pattern[place + 1 + opened : place + 2 + opened] == "]":
                return False
        elif _differs(letter, rest) or (letter == "{" and not _is_count(pattern, place)):
            return False
        place += 1
    return not in_class


def _differs(letter: str, rest: str) -> bool:
    """Return whether it is a group type that not all three engines have."""
    return letter == "(" and rest.startswith("?") and not rest.startswith(_GROUPS)


def _is_count(pattern: str, place: int) -> bool:
    """Return whether it is ``{2}``, ``{2,}`` or ``{2,5}``; RE2 takes any other brace literally."""
    end = pattern.find("}", place)
    low, comma, high = pattern[place + 1 : end].partition(",")
    return end > 0 and _digits(low) and (not comma or not high or _digits(high))


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit()
