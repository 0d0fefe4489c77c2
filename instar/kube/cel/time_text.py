"""Parses and formats durations and timestamps as Go does.

Called by CEL's time functions and conversions, schema formats and CLI flags.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

SECOND = 1_000_000_000
_UNITS = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000,
    "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND,
}  # fmt: skip
_PART = re.compile(r"(?=\.?[0-9])([0-9]*+)(?:\.([0-9]*+))?+(ns|us|µs|μs|ms|s|m|h)")
_LOOSE_PART = re.compile(r"(?<![0-9])([0-9]++)[\t\n\f\r ]*+([A-Za-zµ]++)")
_LOOSE_UNITS: tuple[tuple[tuple[str, ...], str, int], ...] = (
    (("ns",), "nano", 1),
    (("us", "µs"), "micro", 1_000),
    (("ms",), "milli", 1_000_000),
    (("s",), "sec", SECOND),
    (("m",), "min", 60 * SECOND),
    (("h", "hr"), "hour", 3600 * SECOND),
    (("d",), "day", 86_400 * SECOND),
    (("w", "wk"), "week", 7 * 86_400 * SECOND),
)
"""Full names of a unit, the prefix of longer names, and nanoseconds."""
_MOST_DIGITS = 19
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_SECOND, LAST_SECOND = -62135596800, 253402300799
"""The years 1 to 9999."""
_DURATION_LIMIT = 1 << 63


def parse_duration(text: str) -> int | None:
    """Return the nanoseconds of ``1h2m3.5s``; None if it is invalid."""
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return 0
    nanos = at = 0
    while at < len(body):
        match = _PART.match(body, at)
        if match is None:
            return None
        whole, fraction, unit = match.groups(default="")
        digits = whole.lstrip("0")
        if len(digits) > _MOST_DIGITS:
            return None
        nanos += int(digits or "0") * _UNITS[unit] + _fraction(fraction, _UNITS[unit])
        at = match.end()
    negative = text.startswith("-")
    if not body or nanos > _DURATION_LIMIT - (not negative):
        return None
    return -nanos if negative else nanos


def _fraction(digits: str, unit: int) -> int:
    """Compute a fraction as Go does: digits beyond 63 bits are dropped, the rest is floating
    point."""
    value, scale = 0, 1.0
    for digit in digits[:_MOST_DIGITS]:
        longer = value * 10 + int(digit)
        if longer >= _DURATION_LIMIT:
            break
        value, scale = longer, scale * 10
    return int(value * (unit / scale)) if value else 0


def parse_loose_duration(text: str) -> int:
    """Parse the schema format ``duration``, which also accepts ``2 weeks`` and ``1 day 3
    hours``. Words that are not units are skipped. Raises ValueError."""
    exact = parse_duration(text)
    if exact is not None:
        return exact
    total, found = 0, False
    for digits, word in _LOOSE_PART.findall(text):
        bare = digits.lstrip("0") or "0"
        if len(bare) > _MOST_DIGITS or int(bare) >= _DURATION_LIMIT:
            raise ValueError(f'strconv.Atoi: parsing "{digits}": value out of range')
        name = word.lower()
        for names, start, nanos in _LOOSE_UNITS:
            if name in names or name.startswith(start):
                total, found = total + int(bare) * nanos, True
    if not found:
        raise ValueError(f"unable to parse {text} as duration")
    # Go's durations wrap around.
    return (total + _DURATION_LIMIT) % (2 * _DURATION_LIMIT) - _DURATION_LIMIT


def parse_timestamp(text: str) -> tuple[int, int] | None:
    """Return nanoseconds since 1970 and the offset in seconds; None if it is not RFC 3339."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        shift = _offset(match.group(8))
    except (ValueError, OverflowError):
        return None
    since = moment - _EPOCH
    seconds = since.days * 86400 + since.seconds - shift
    return seconds * SECOND + int((match.group(7) or "").ljust(9, "0")[:9]), shift


def _offset(zone: str) -> int:
    if zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError(zone)
    return (-1 if zone[0] == "-" else 1) * (hours * 3600 + minutes * 60)


def format_duration(nanos: int) -> str:
    """Return seconds with as many decimals as needed, as CEL's ``string(duration)``."""
    sign = "-" if nanos < 0 else ""
    whole, rest = divmod(abs(nanos), SECOND)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{sign}{whole}{fraction}s"


def format_timestamp(nanos: int, offset: int = 0) -> str:
    seconds, rest = divmod(nanos, SECOND)
    moment = _EPOCH + timedelta(seconds=seconds + offset)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    sign, distance = ("-", -offset) if offset < 0 else ("+", offset)
    zone = f"{sign}{distance // 3600:02d}:{distance // 60 % 60:02d}" if offset else "Z"
    return f"{moment.year:04d}{moment.strftime('-%m-%dT%H:%M:%S')}{fraction}{zone}"


def to_datetime(nanos: int) -> datetime:
    return _EPOCH + timedelta(seconds=nanos // SECOND)
