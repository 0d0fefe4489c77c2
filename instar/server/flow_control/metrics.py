"""Metrics of priority and fairness, by the names of kube-apiserver.

``flow_control.py`` notes events here; the numbers of levels and classes are read from them when the
metrics are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from instar.base.metrics import (
    Counter,
    Histogram,
    Labels,
    Measured,
    MeasuredCounter,
    MergeMode,
    Metric,
)
from instar.kube.flow_control.work import RequestWork
from instar.server.flow_control.configuration import Configuration
from instar.server.flow_control.request_class import RequestClass
from instar.server.flow_control.seat_queues import FlowRejection, SeatQueues

_PREFIX = "apiserver_flowcontrol_"
_CLASS = ("priority_level", "flow_schema")
_LEVEL = ("priority_level",)
_SECONDS = (0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)
_SEATS = (1, 2, 4, 10)
_CLASS_NUMBERS: tuple[tuple[str, str, Callable[[RequestClass], int]], ...] = (
    ("current_inqueue_requests", "Requests that wait in queues.", lambda kind: kind.queued),
    ("current_inqueue_seats", "Seats for which requests wait.", lambda kind: kind.queued_seats),
    ("current_executing_requests", "Requests that execute.", lambda kind: kind.executing),
    ("current_executing_seats", "Seats in use.", lambda kind: kind.executing_seats),
)
_LEVEL_NUMBERS: tuple[tuple[str, str, Callable[[SeatQueues], float]], ...] = (
    ("nominal_limit_seats", "Configured seats.", lambda seats: seats.limits.nominal),
    ("lower_limit_seats", "Seats that are not lent.", lambda seats: seats.limits.least),
    ("upper_limit_seats", "Seats with borrowed ones.", lambda seats: seats.limits.most),
    ("current_limit_seats", "Seats that may be used now.", lambda seats: seats.seats),
    ("demand_seats_high_watermark", "Highest demand.", lambda seats: seats.demand.highest),
    ("demand_seats_average", "Average demand.", lambda seats: seats.demand.average),
    ("demand_seats_stdev", "Standard deviation.", lambda seats: seats.demand.deviation),
    ("demand_seats_smoothed", "Smoothed demand.", lambda seats: seats.demand.smoothed),
)


class FlowMetrics:
    """Counters and histograms of events, and the numbers of a configuration."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self.in_flight = {True: 0, False: 0}
        """Requests that have seats: mutating ones, and others."""
        self._rejected = Counter(
            f"{_PREFIX}rejected_requests_total", "Requests rejected with 429.", (*_CLASS, "reason")
        )
        self._dropped = Counter(
            "apiserver_dropped_requests_total", "Requests refused with 429.", ("request_kind",)
        )
        self._waited = Histogram(
            f"{_PREFIX}request_wait_duration_seconds",
            "Time that a request waited in its queue.",
            (*_CLASS, "execute"),
            _SECONDS,
        )
        self._executed = Histogram(
            f"{_PREFIX}request_execution_seconds", "Time of execution.", _CLASS, _SECONDS
        )
        self._estimated = Histogram(
            f"{_PREFIX}work_estimated_seats", "Seats that requests need.", _CLASS, _SEATS
        )

    def rejected(self, kind: RequestClass, why: FlowRejection, *, mutating: bool) -> None:
        self._rejected.add((*kind.labels, why.value))
        self._dropped.add((_request_kind(mutating),))

    def waited(self, kind: RequestClass, seconds: float, *, executed: bool) -> None:
        self._waited.observe((*kind.labels, "true" if executed else "false"), seconds)

    def executed(self, kind: RequestClass, seconds: float) -> None:
        self._executed.observe(kind.labels, seconds)

    def estimated(self, kind: RequestClass, work: RequestWork) -> None:
        self._estimated.observe(kind.labels, work.seats)

    def all(self) -> Iterable[Metric]:
        yield from (self._rejected, self._dropped, self._waited, self._executed, self._estimated)
        dispatched = f"{_PREFIX}dispatched_requests_total"
        yield MeasuredCounter(
            dispatched, "Requests executed.", _CLASS, self._dispatched, MergeMode.SUM
        )
        yield Measured(
            "apiserver_current_inflight_requests",
            "Requests being worked on.",
            ("request_kind",),
            lambda: [((_request_kind(kind),), n) for kind, n in self.in_flight.items()],
            MergeMode.SUM,
        )
        yield Measured(
            "apiserver_current_inqueue_requests",
            "Requests waiting for their turn.",
            (),
            lambda: [((), sum(kind.queued for kind in self._classes()))],
            MergeMode.SUM,
        )
        for name, help, of_class in _CLASS_NUMBERS:
            yield Measured(_PREFIX + name, help, _CLASS, self._of_classes(of_class), MergeMode.SUM)
        for name, help, of_level in _LEVEL_NUMBERS:
            yield Measured(_PREFIX + name, help, _LEVEL, self._of_levels(of_level), MergeMode.SUM)
        yield Measured(f"{_PREFIX}target_seats", "Seats that are aimed at.", _LEVEL, self._targets)
        yield Measured(
            f"{_PREFIX}seat_fair_frac",
            "Part of its target that each level gets.",
            (),
            lambda: [((), self._configuration.fair_fraction)],
        )

    def _dispatched(self) -> Iterable[tuple[Labels, float]]:
        return [(kind.labels, kind.dispatched) for kind in self._classes()]

    def _targets(self) -> Iterable[tuple[Labels, float]]:
        return [((name,), target) for name, target in self._configuration.targets.items()]

    def _classes(self) -> Iterable[RequestClass]:
        self._configuration.refresh()
        return self._configuration.classes.values()

    def _of_classes(
        self, number: Callable[[RequestClass], float]
    ) -> Callable[[], Iterable[tuple[Labels, float]]]:
        return lambda: [(kind.labels, number(kind)) for kind in self._classes()]

    def _of_levels(
        self, number: Callable[[SeatQueues], float]
    ) -> Callable[[], Iterable[tuple[Labels, float]]]:
        def measure() -> Iterable[tuple[Labels, float]]:
            self._configuration.refresh()
            levels = self._configuration.levels
            return [((name,), number(seats)) for name, seats in levels.items()]

        return measure


def _request_kind(mutating: bool) -> str:
    return "mutating" if mutating else "readOnly"
