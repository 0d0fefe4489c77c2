"""Formats times: the only module that writes a time into an object, a response or a file.

The codecs of metadata and managedFields, the leader election and the reports of the tools call
these functions. The format is RFC 3339 in UTC, as Go writes it. Every year is written with four
digits. (``strftime`` omits the leading zeros of years before 1000, and other programs cannot read
the result.)
"""

from __future__ import annotations

from datetime import UTC, datetime


def time_text(moment: datetime) -> str:
    """Format to the second. A time without a zone is in UTC."""
    return _in_utc(moment).isoformat(timespec="seconds")[:19] + "Z"


def micro_time_text(moment: datetime) -> str:
    """Format with six decimals, as in Leases and Events."""
    return _in_utc(moment).isoformat(timespec="microseconds")[:26] + "Z"


def _in_utc(moment: datetime) -> datetime:
    """Raises ``OverflowError`` if the time is out of range in UTC."""
    return moment if moment.tzinfo in (None, UTC) else moment.astimezone(UTC)
