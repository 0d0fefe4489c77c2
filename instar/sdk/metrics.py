"""What a conversion webhook counts. One registry per app, so two apps in one process agree."""

from __future__ import annotations

from instar.sdk.conversion_reviews import ConversionAnswer

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_LABELS = ("kind", "from_version", "to_version")


class WebhookMetrics:
    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._registry = CollectorRegistry()
        self._reviews = Counter(
            "instar_webhook_reviews",
            "Conversion reviews answered.",
            (*_LABELS, "result"),
            registry=self._registry,
        )
        self._objects = Counter(
            "instar_webhook_objects",
            "Objects in successful conversion reviews.",
            _LABELS,
            registry=self._registry,
        )
        self._duration = Histogram(
            "instar_webhook_duration_seconds",
            "Time to answer a conversion review.",
            _LABELS,
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._refused = Counter(
            "instar_webhook_refused_requests",
            "Requests that were no conversion review.",
            ("code",),
            registry=self._registry,
        )
        self._in_flight = Gauge(
            "instar_webhook_in_flight", "Reviews being answered now.", registry=self._registry
        )

    def started(self) -> None:
        self._in_flight.inc()

    def ended(self) -> None:
        self._in_flight.dec()

    def answered(self, answer: ConversionAnswer, seconds: float) -> None:
        labels = (answer.kind, answer.source, answer.target)
        result = "success" if answer.succeeded else "failure"
        self._reviews.labels(*labels, result).inc()
        self._duration.labels(*labels).observe(seconds)
        if answer.succeeded:
            self._objects.labels(*labels).inc(answer.objects)

    def refused(self, code: int) -> None:
        self._refused.labels(str(code)).inc()

    def render(self) -> bytes:
        from prometheus_client import generate_latest

        return generate_latest(self._registry)
