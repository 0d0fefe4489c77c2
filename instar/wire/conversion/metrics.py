"""Prometheus metrics of conversions: upstream's names and our own.

Implements ``ConversionMetrics`` of ``instrumented.py``; shown on ``/metrics``.
"""

from __future__ import annotations

from instar.base.metrics import Counter, Histogram, Metric
from instar.wire.conversion.failure import FailureType
from instar.wire.conversion.instrumented import Measurement
from instar.wire.webhooks.call_log import CallLog, Failure, WebhookCall

_CRD_BUCKETS = tuple(0.001 * 2**power for power in range(15))
_WEBHOOK_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60)


class PrometheusConversionMetrics:
    """``ConversionMetrics`` for the metrics page and the call log."""

    def __init__(self, calls: CallLog | None = None) -> None:
        self._calls = calls or CallLog()
        self.crd_seconds = Histogram(
            "apiserver_crd_conversion_webhook_duration_seconds",
            "CRD webhook conversion duration in seconds",
            ("crd_name", "from_version", "to_version", "succeeded"),
            _CRD_BUCKETS,
        )
        self.requests = Counter(
            "apiserver_conversion_webhook_request_total",
            "Counter for conversion webhook requests with success/failure and failure error type",
            ("result", "failure_type"),
        )
        self.seconds = Histogram(
            "apiserver_conversion_webhook_duration_seconds",
            "Conversion webhook request latency",
            ("result", "failure_type"),
            _WEBHOOK_BUCKETS,
        )
        self.webhook_seconds = Histogram(
            "instar_conversion_webhook_seconds",
            "Time of conversions by webhook and CRD",
            ("webhook", "crd"),
            _WEBHOOK_BUCKETS,
        )
        self.request_seconds = Histogram(
            "instar_conversion_request_seconds",
            "Time an API request waited for all of its conversions together",
            ("crd",),
            _WEBHOOK_BUCKETS,
        )
        self.failures = Counter(
            "instar_conversion_failures_total",
            "Failed conversions by webhook and CRD",
            ("webhook", "crd", "failure_type"),
        )
        self.timeouts = Counter(
            "instar_conversion_timeouts_total",
            "Conversions that ran out of time by webhook and CRD",
            ("webhook", "crd"),
        )
        self.objects = Counter(
            "instar_conversion_objects_total",
            "Objects converted",
            ("webhook", "crd", "from_version", "to_version"),
        )
        self.rejected = Counter(
            "instar_conversion_rejected_total",
            "Conversions turned away because too many waited for the webhook already",
            ("webhook", "crd"),
        )
        self.cache = Counter(
            "instar_conversion_cache_total",
            "Objects looked up in the conversion cache: hit, miss, or shared with a running call",
            ("crd", "outcome"),
        )

    def converted(self, measurement: Measurement) -> None:
        m = measurement
        failed = m.failure_type is not None
        kind = str(m.failure_type or "")
        result = ("failure" if failed else "success", kind)
        succeeded = "false" if failed else "true"
        self.crd_seconds.observe((m.crd, m.from_version, m.to_version, succeeded), m.seconds)
        self.webhook_seconds.observe((m.webhook, m.crd), m.seconds)
        if m.failure_type is not FailureType.NONE:
            self.requests.add(result)
            self.seconds.observe(result, m.seconds)
        if failed:
            self.failures.add((m.webhook, m.crd, kind))
        else:
            self.objects.add((m.webhook, m.crd, m.from_version, m.to_version), m.objects)
        if m.timed_out:
            self.timeouts.add((m.webhook, m.crd))
        self._calls.note(
            WebhookCall("conversion", "", m.crd),
            m.webhook,
            m.seconds,
            Failure("timeout" if m.timed_out else kind, m.failure_text) if failed else None,
            (m.from_version, m.to_version),
        )

    def count_lookups(self, crd: str, *, hits: int, misses: int, shared: int) -> None:
        for outcome, count in (("hit", hits), ("miss", misses), ("shared", shared)):
            if count:
                self.cache.add((crd, outcome), count)

    def request_waited(self, crd: str, seconds: float) -> None:
        self.request_seconds.observe((crd,), seconds)

    def turned_away(self, crd: str, webhook: str) -> None:
        self.rejected.add((webhook, crd))
        self._calls.turned_away(WebhookCall("conversion", "", crd), webhook)

    def all(self) -> tuple[Metric, ...]:
        """Return the metrics in the order of the page."""
        return (
            self.crd_seconds,
            self.requests,
            self.seconds,
            self.webhook_seconds,
            self.request_seconds,
            self.failures,
            self.timeouts,
            self.objects,
            self.rejected,
            self.cache,
        )
