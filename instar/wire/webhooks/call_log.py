"""Call log of webhooks: a bounded record per webhook for the console and insight pages.

The log holds latency histograms, the last hour by minute and the last failures with their texts,
which Prometheus metrics do not have. Written by admission and conversion, served by
``server/endpoints/insight.py``.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
MOST_WEBHOOKS = 2_000
MOST_DIRECTIONS = 64
MOST_FAILURES = 20
MOST_MINUTES = 60
_LONGEST_TEXT = 1_000


class WebhookCall(NamedTuple):
    """Key of one webhook in the call log."""

    type: str
    """``conversion``, ``mutating`` or ``validating``."""
    configuration: str
    """The configuration object of an admission webhook; empty for conversion."""
    name: str
    """The webhook's name; for conversion the CRD."""


class Failure(NamedTuple):
    """A failed call of a webhook."""

    kind: str
    text: str


class CallLog:
    """Remembers the latest calls and failures of each webhook, for the console."""

    def __init__(self, clock: Callable[[], float] = time.time, most: int = MOST_WEBHOOKS) -> None:
        self._clock = clock
        self._most = most
        self._since = clock()
        self._records: OrderedDict[WebhookCall, _Record] = OrderedDict()

    def note(
        self,
        called: WebhookCall,
        where: str,
        seconds: float,
        failure: Failure | None = None,
        direction: tuple[str, str] = ("", ""),
    ) -> None:
        """Record one call. ``direction`` is (from version, to version)."""
        self._record(called).note(self._clock(), where, seconds, failure, direction)

    def turned_away(self, called: WebhookCall, where: str) -> None:
        """Record a call that was rejected because too many were waiting."""
        record = self._record(called)
        record.where = where
        record.rejected += 1

    def document(self) -> dict[str, Any]:
        return {
            "since": _moment(self._since),
            "webhooks": [
                {**called._asdict(), **record.document()}
                for called, record in sorted(self._records.items())
            ],
        }

    def _record(self, called: WebhookCall) -> _Record:
        record = self._records.get(called)
        if record is None:
            if len(self._records) >= self._most:
                self._records.popitem(last=False)
            record = self._records[called] = _Record()
        else:
            self._records.move_to_end(called)
        return record


class _Times:
    """A latency histogram with a count of failures."""

    __slots__ = ("counts", "failures", "last_failure", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.sum = 0.0
        self.failures = 0
        self.last_failure: dict[str, Any] | None = None

    def add(self, seconds: float, failed: dict[str, Any] | None) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.sum += seconds
        if failed is not None:
            self.failures += 1
            self.last_failure = failed

    def document(self) -> dict[str, Any]:
        return {
            "calls": sum(self.counts),
            "failures": self.failures,
            "latency": {"bounds": BOUNDS, "counts": self.counts, "sum": round(self.sum, 6)},
            "lastFailure": self.last_failure,
        }


class _Record:
    def __init__(self) -> None:
        self.where = ""
        self.rejected = 0
        self._last = 0.0
        self._last_failed = False
        self._all = _Times()
        self._directions: dict[tuple[str, str], _Times] = {}
        self._minutes: deque[list[int]] = deque(maxlen=MOST_MINUTES)
        """(minute, calls, failures)."""
        self._failures: deque[dict[str, Any]] = deque(maxlen=MOST_FAILURES)

    def note(
        self,
        now: float,
        where: str,
        seconds: float,
        failure: Failure | None,
        direction: tuple[str, str],
    ) -> None:
        self.where = where
        self._last, self._last_failed = now, failure is not None
        told = None if failure is None else _failure_document(now, failure, direction)
        self._all.add(seconds, told)
        if any(direction):
            self._times(direction).add(seconds, told)
        minute = int(now // 60)
        if not self._minutes or self._minutes[-1][0] != minute:
            self._minutes.append([minute, 0, 0])
        self._minutes[-1][1] += 1
        if told is not None:
            self._minutes[-1][2] += 1
            self._failures.appendleft(told)

    def _times(self, direction: tuple[str, str]) -> _Times:
        times = self._directions.get(direction)
        if times is None:
            if len(self._directions) >= MOST_DIRECTIONS:
                self._directions.pop(next(iter(self._directions)))
            times = self._directions[direction] = _Times()
        return times

    def document(self) -> dict[str, Any]:
        return {
            "where": self.where,
            "rejected": self.rejected,
            "lastCall": _moment(self._last) if self._last else None,
            "lastFailed": self._last_failed,
            **self._all.document(),
            "minutes": [
                {"at": _moment(minute * 60), "calls": calls, "failures": failures}
                for minute, calls, failures in self._minutes
            ],
            "recentFailures": list(self._failures),
            "directions": [
                {"from": source, "to": target, **times.document()}
                for (source, target), times in self._directions.items()
            ],
        }


def _failure_document(now: float, failure: Failure, direction: tuple[str, str]) -> dict[str, Any]:
    source, target = direction
    told = {"at": _moment(now), "kind": failure.kind, "text": failure.text[:_LONGEST_TEXT]}
    return {**told, "from": source, "to": target} if any(direction) else told


def _moment(seconds: float) -> str:
    shown = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return shown.replace("+00:00", "Z")
