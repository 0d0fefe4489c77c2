"""Grace period of a deletion: sets deletionTimestamp and deletionGracePeriodSeconds.

``delete.py`` calls ``begin`` for kinds that have a grace period, such as pods. The functions do no
I/O and change metadata in place.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum

from instar.base.json_values import Object
from instar.server.registry.resources.context import timestamp


class Grace(Enum):
    """State of an object's grace period."""

    PENDING = "pending"
    """An earlier delete began it, and this one does not shorten it."""
    RUNNING = "running"
    """It runs from now on."""
    OVER = "over"
    """There is none left."""


def begin(metadata: Object, wanted: int | None, period: int, now: datetime) -> Grace:
    """Begin the grace period, or shorten a running one. ``wanted`` is the request's value,
    ``period`` what the kind makes of it."""
    if "deletionTimestamp" in metadata:
        return _shorten(metadata, wanted)
    metadata["deletionTimestamp"] = timestamp(now + _span(period))
    metadata["deletionGracePeriodSeconds"] = period
    if "generation" in metadata:
        metadata["generation"] += 1
    return Grace.RUNNING if period else Grace.OVER


def _shorten(metadata: Object, wanted: int | None) -> Grace:
    present = metadata.get("deletionGracePeriodSeconds")
    if present is None:
        return Grace.OVER
    if wanted is None or wanted >= present:
        return Grace.PENDING
    ends = datetime.fromisoformat(metadata["deletionTimestamp"])
    metadata["deletionTimestamp"] = timestamp(ends - _span(present) + _span(wanted))
    metadata["deletionGracePeriodSeconds"] = wanted
    return Grace.RUNNING if wanted else Grace.OVER


def _span(seconds: int) -> timedelta:
    """Multiply as Go does: nanoseconds in 64 bits, which wrap around after 292 years."""
    nanoseconds = (seconds * 10**9 + 2**63) % 2**64 - 2**63
    return timedelta(microseconds=nanoseconds // 1000)
