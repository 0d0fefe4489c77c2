"""Prometheus metrics of a conversion webhook. ``asgi.py`` counts requests and conversions in
them.

Each application has its own set, so that two in one process do not mix.
"""

from __future__ import annotations

from instar.base.metrics import Counter, Gauge, Histogram, Metric, page
from instar.tools.sdk.conversion_reviews import ConversionAnswer

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_LABELS = ("kind", "from_version", "to_version")


class ConversionWebhookMetrics:
    """Metrics of a conversion webhook."""

    def __init__(self) -> None:
        self._reviews = Counter(
            "instar_webhook_reviews_total", "Conversion reviews answered.", (*_LABELS, "result")
        )
        self._objects = Counter(
            "instar_webhook_objects_total", "Objects in successful conversion reviews.", _LABELS
        )
        self._duration = Histogram(
            "instar_webhook_duration_seconds",
            "Time to answer a conversion review.",
            _LABELS,
            _BUCKETS,
        )
        self._refused = Counter(
            "instar_webhook_refused_requests_total",
            "Requests that were no conversion review.",
            ("code",),
        )
        self._in_flight = Gauge("instar_webhook_in_flight", "Reviews being answered now.")

    def started(self) -> None:
        """Count a review that is in progress."""
        self._in_flight.add()

    def ended(self) -> None:
        self._in_flight.add(amount=-1)

    def answered(self, answer: ConversionAnswer, seconds: float) -> None:
        labels = (answer.kind, answer.source, answer.target)
        self._reviews.add((*labels, "success" if answer.succeeded else "failure"))
        self._duration.observe(labels, seconds)
        if answer.succeeded:
            self._objects.add(labels, answer.objects)

    def refused(self, code: int) -> None:
        self._refused.add((str(code),))

    def all(self) -> tuple[Metric, ...]:
        return (self._reviews, self._objects, self._duration, self._refused, self._in_flight)

    def page(self) -> bytes:
        return page(self.all())
