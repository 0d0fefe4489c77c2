"""Validates cron schedules with the messages of upstream's parser.

Called by ``jobs.py``.
"""

from __future__ import annotations

import re

_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES: tuple[dict[str, int], ...] = (
    {},
    {},
    {},
    {name: position for position, name in enumerate(_MONTHS, 1)},
    {name: position for position, name in enumerate(_DAYS)},
)
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_DURATION = re.compile(r"([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+", re.ASCII)


def schedule_problem(text: str) -> str:
    """Return the error message; empty when the schedule is valid."""
    if text.startswith("@"):
        return _descriptor_problem(text)
    fields = text.split()
    if len(fields) != 5:
        listed = " ".join(fields)
        return f"expected exactly 5 fields, found {len(fields)}: [{listed}]"
    for number, field in enumerate(fields):
        for part in field.split(","):
            problem = _range_problem(part, number) if part else ""
            if problem:
                return problem
    return ""


def _descriptor_problem(text: str) -> str:
    if text in _DESCRIPTORS:
        return ""
    if text.startswith("@every "):
        rest = text.removeprefix("@every ")
        if _DURATION.fullmatch(rest):
            return ""
        return f'failed to parse duration {text}: time: invalid duration "{rest}"'
    return f"unrecognized descriptor: {text}"


def _range_problem(text: str, number: int) -> str:
    least, most = _BOUNDS[number]
    parts, steps = text.split("/"), text.split("/")[0].split("-")
    if len(steps) > 2:
        return f"too many hyphens: {text}"
    if len(parts) > 2:
        return f"too many slashes: {text}"
    if steps[0] in ("*", "?"):
        start, end = least, most
    else:
        values = [_number(part, number) for part in steps]
        wrong = next((value for value in values if isinstance(value, str)), "")
        if wrong:
            return wrong
        start, end = int(values[0]), int(values[-1])
        if len(parts) == 2 and len(steps) == 1:
            end = most
    step = 1
    if len(parts) == 2:
        found = _number(parts[1], -1)
        if isinstance(found, str):
            return found
        step = found
    return _bounds_problem(text, start, end, step, number)


def _bounds_problem(text: str, start: int, end: int, step: int, number: int) -> str:
    least, most = _BOUNDS[number]
    if start < least:
        return f"beginning of range ({start}) below minimum ({least}): {text}"
    if end > most:
        return f"end of range ({end}) above maximum ({most}): {text}"
    if start > end:
        return f"beginning of range ({start}) beyond end of range ({end}): {text}"
    if step == 0:
        return f"step of range should be a positive number: {text}"
    return ""


def _number(text: str, number: int) -> int | str:
    """Return the number, or the error message as a text."""
    named = _NAMES[number].get(text.lower()) if number >= 0 else None
    if named is not None:
        return named
    if _INTEGER.fullmatch(text) is None:
        return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
    value = int(text)
    return f"negative number ({value}) not allowed: {text}" if value < 0 else value
