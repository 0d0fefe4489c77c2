"""Literal arguments that can be judged while compiling: durations, timestamps, patterns."""

from __future__ import annotations

from typing import Any

import re2

from instar.cel.times import parse_duration, parse_timestamp


def literal_issue(function: str, value: Any, *, member: bool) -> str | None:
    """What the compiler says about a literal argument, or None."""
    if type(value) is not str:
        return None
    if function == "duration" and not member and parse_duration(value) is None:
        return "invalid duration argument"
    if function == "timestamp" and not member and parse_timestamp(value) is None:
        return "invalid timestamp argument"
    if function == "matches" and not _compiles(value):
        return "invalid matches argument"
    return None


def _compiles(pattern: str) -> bool:
    return pattern_problem(pattern) is None


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern is none; ``find`` and ``findAll`` ask when the program is built."""
    try:
        re2.compile(pattern, _QUIET)
    except re2.error as error:
        text = error.args[0] if error.args else ""
        return text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    return None


_QUIET = re2.Options()
_QUIET.log_errors = False
