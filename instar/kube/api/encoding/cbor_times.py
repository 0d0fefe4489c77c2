"""Times that CBOR marks with a tag, as the RFC 3339 text that stands for them in an object.

``cbor_reading.py`` calls it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from instar.base.field_errors import go_quote

_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:[.,](\d+))?(Z|[+-]\d{2}:\d{2})", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS = 9


class TimeError(ValueError):
    """The value is no time, or one that RFC 3339 cannot write."""


def rfc3339_text(value: str) -> str:
    """Return a text with its fraction as Go writes it, in its own zone."""
    match = _RFC3339.fullmatch(value)
    try:
        if match is None:
            raise ValueError
        datetime.fromisoformat(match[1] + match[3])
    except ValueError:
        text = f"cannot set {value} for time.Time: parsing time {go_quote(value)} as RFC 3339"
        raise TimeError(text) from None
    zone = "Z" if match[3] in ("+00:00", "-00:00") else match[3]
    return match[1] + _fraction((match[2] or "")[:_NANOSECONDS]) + zone


def epoch_text(seconds: float) -> str:
    """Return the text of a number of seconds since 1970."""
    whole = int(seconds)
    nanoseconds = int((seconds - whole) * 10**_NANOSECONDS)
    if nanoseconds < 0:
        whole, nanoseconds = whole - 1, nanoseconds + 10**_NANOSECONDS
    try:
        moment = _EPOCH + timedelta(seconds=whole)
    except OverflowError:
        raise TimeError(
            "decoded time cannot be represented in RFC3339 format with sub-second precision: "
            "Time.MarshalText: year outside of range [0,9999]"
        ) from None
    return moment.isoformat()[:19] + _fraction(f"{nanoseconds:09d}") + "Z"


def _fraction(digits: str) -> str:
    digits = digits.rstrip("0")
    return f".{digits}" if digits else ""
