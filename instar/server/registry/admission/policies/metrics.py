"""Prometheus metrics of admission policies, under upstream's names.

Written by ``validating.py`` and ``mutating.py``, shown on ``/metrics``.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.metrics import Counter, Histogram, Metric

_LABELS = ("policy", "policy_binding", "error_type", "enforcement_action")
_BUCKETS = (0.0000005, 0.001, 0.01, 0.1, 1.0)


class _Checks:
    """Metrics of one kind of policy."""

    def __init__(self, kind: str, what: str) -> None:
        name = f"apiserver_{kind}_admission_policy_check"
        self.total = Counter(f"{name}_total", f"{what} that were not simply passed.", _LABELS)
        self.duration = Histogram(
            f"{name}_duration_seconds", f"Seconds such {what.lower()} took.", _LABELS, _BUCKETS
        )

    def observe(self, policy: str, binding: str, error: str, action: str, seconds: float) -> None:
        labels = (policy, binding, error, action)
        self.total.add(labels)
        self.duration.observe(labels, seconds)


class PolicyMetrics:
    def __init__(self) -> None:
        self.validating = _Checks("validating", "Validations")
        self.mutating = _Checks("mutating", "Mutations")

    def all(self) -> Iterator[Metric]:
        for checks in (self.validating, self.mutating):
            yield checks.total
            yield checks.duration
