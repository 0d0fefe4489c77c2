"""Prometheus metrics of admission webhooks, with upstream's names and labels.

Written by ``call.py``, shown on ``/metrics``.
"""

from __future__ import annotations

from instar.base.metrics import Counter, Histogram, Metric

_STEP_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
_CALL_BUCKETS = (*_STEP_BUCKETS, 10.0, 25.0)
_CONDITION_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25)
_MOST_CODE = 600
"""A larger HTTP code is counted as this one."""
_PREFIX = "apiserver_admission"


class AdmissionWebhookMetrics:
    def __init__(self) -> None:
        self.controller_seconds = Histogram(
            f"{_PREFIX}_controller_admission_duration_seconds",
            "Admission controller latency histogram in seconds, identified by name and broken out "
            "for each operation and API resource and type (validate or admit).",
            ("name", "type", "operation", "rejected"),
            _STEP_BUCKETS,
        )
        self.seconds = Histogram(
            f"{_PREFIX}_webhook_admission_duration_seconds",
            "Admission webhook latency histogram in seconds, identified by name and broken out for "
            "each operation and API resource and type (validating or admit).",
            ("name", "type", "operation", "rejected"),
            _CALL_BUCKETS,
        )
        self.rejections = Counter(
            f"{_PREFIX}_webhook_rejection_count",
            "Admission webhook rejection count, identified by name and broken out for each "
            "admission type (validating or admit), operation, error type and rejection code.",
            ("name", "type", "operation", "error_type", "rejection_code"),
        )
        self.failed_open = Counter(
            f"{_PREFIX}_webhook_fail_open_count",
            "Admission webhook fail open count, identified by name and broken out for each "
            "admission type (validating or admit).",
            ("name", "type"),
        )
        self.requests = Counter(
            f"{_PREFIX}_webhook_request_total",
            "Admission webhook request total, identified by name and broken out for each admission "
            "type (validating or admit), operation, rejection code and whether it was rejected.",
            ("name", "type", "operation", "code", "rejected"),
        )
        labels = ("name", "kind", "type", "operation")
        self.condition_errors = Counter(
            f"{_PREFIX}_match_condition_evaluation_errors_total",
            "Admission match condition evaluation errors count, identified by name of resource "
            "containing the match condition and broken out for each kind containing "
            "matchConditions (webhook or policy), operation and admission type (validate or "
            "admit).",
            labels,
        )
        self.condition_exclusions = Counter(
            f"{_PREFIX}_match_condition_exclusions_total",
            "Admission match condition evaluation exclusions count, identified by name of resource "
            "containing the match condition and broken out for each kind containing "
            "matchConditions (webhook or policy), operation and admission type (validate or "
            "admit).",
            labels,
        )
        self.condition_seconds = Histogram(
            f"{_PREFIX}_match_condition_evaluation_seconds",
            "Admission match condition evaluation time in seconds, identified by name and broken "
            "out for each kind containing matchConditions (webhook or policy), operation and type "
            "(validate or admit).",
            labels,
            _CONDITION_BUCKETS,
        )

    def called(
        self, name: str, phase: str, operation: str, seconds: float, code: int, *, rejected: bool
    ) -> None:
        told = "true" if rejected else "false"
        self.seconds.observe((name, phase, operation, told), seconds)
        shown = str(min(code, _MOST_CODE))
        self.requests.add((name, phase, operation, shown, told))

    def rejected(self, name: str, phase: str, operation: str, error_type: str, code: int) -> None:
        shown = str(min(code, _MOST_CODE))
        self.rejections.add((name, phase, operation, error_type, shown))

    def all(self) -> tuple[Metric, ...]:
        return (
            self.controller_seconds,
            self.seconds,
            self.rejections,
            self.failed_open,
            self.requests,
            self.condition_errors,
            self.condition_exclusions,
            self.condition_seconds,
        )
