"""Whether a pattern means the same to RE2, to Python and to pydantic's engine.

One that does not stays with the server: a model must never refuse what the server takes, and a
module must import. What is allowed here may still accept a little more (``\\d`` of other scripts).
"""

from __future__ import annotations

import re

_ESCAPES = frozenset("dwsbtnrf.^$*+?()[]{}|/\\-_ :@#%&=,;!<>~'\"`")
_GROUPS = ("?:", "?P<")


def plain_pattern(pattern: str) -> bool:
    """Only what all three read alike."""
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
    """A group of another kind than all three know."""
    return letter == "(" and rest.startswith("?") and not rest.startswith(_GROUPS)


def _is_count(pattern: str, place: int) -> bool:
    """``{2}``, ``{2,}`` or ``{2,5}``; RE2 takes any other brace literally."""
    end = pattern.find("}", place)
    low, comma, high = pattern[place + 1 : end].partition(",")
    return end > 0 and _digits(low) and (not comma or not high or _digits(high))


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit()
