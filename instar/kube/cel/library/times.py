"""CEL accessors of timestamps and durations (``getHours()``, ``getFullYear()`` …).

Collected by ``library/__init__.py``; called by the checker (types), the cost estimate and the
interpreter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from instar.kube.cel.functions import Overload, method
from instar.kube.cel.time_text import SECOND, to_datetime
from instar.kube.cel.types import DURATION, INT, STRING, TIMESTAMP
from instar.kube.cel.values import CelError, Duration, Timestamp

_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)


def _zone(name: str) -> tzinfo:
    match = _OFFSET.fullmatch(name)
    if match is not None:
        minutes = int(match.group(2)) * 60 + int(match.group(3))
        return timezone(timedelta(minutes=-minutes if match.group(1) == "-" else minutes))
    try:
        return UTC if name in ("", "UTC") else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CelError(f"unknown time zone {name}") from None


_PARTS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda t: t.year,
    "getMonth": lambda t: t.month - 1,
    "getDate": lambda t: t.day,
    "getDayOfMonth": lambda t: t.day - 1,
    "getDayOfWeek": lambda t: t.isoweekday() % 7,
    "getDayOfYear": lambda t: t.timetuple().tm_yday - 1,
    "getHours": lambda t: t.hour,
    "getMinutes": lambda t: t.minute,
    "getSeconds": lambda t: t.second,
}

_DURATION_UNITS = {
    "getHours": 3600 * SECOND,
    "getMinutes": 60 * SECOND,
    "getSeconds": SECOND,
    "getMilliseconds": SECOND // 1000,
}


def _of_timestamp(name: str, part: Callable[[datetime], int]) -> list[Overload]:
    def utc(moment: Timestamp) -> int:
        return part(to_datetime(moment.nanos))

    def local(moment: Timestamp, zone: str) -> int:
        return part(to_datetime(moment.nanos).astimezone(_zone(zone)))

    return [
        method(name, (TIMESTAMP,), INT, utc),
        method(name, (TIMESTAMP, STRING), INT, local),
    ]


def _of_duration(name: str, unit: int) -> Overload:
    def whole(length: Duration) -> int:
        count = abs(length.nanos) // unit
        return -count if length.nanos < 0 else count

    return method(name, (DURATION,), INT, whole)


def _milliseconds(moment: Timestamp, _zone: str = "") -> int:
    return moment.nanos % SECOND // 1_000_000


def overloads() -> list[Overload]:
    return [
        *(each for name, part in _PARTS.items() for each in _of_timestamp(name, part)),
        method("getMilliseconds", (TIMESTAMP,), INT, _milliseconds),
        method("getMilliseconds", (TIMESTAMP, STRING), INT, _milliseconds),
        *(_of_duration(name, unit) for name, unit in _DURATION_UNITS.items()),
    ]
