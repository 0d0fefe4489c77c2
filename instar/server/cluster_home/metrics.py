"""Metrics of the questions that a server behind an aggregation layer asks its main cluster.

``home.py`` makes them; the names are those of upstream's generic API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from instar.base.metrics import Counter, Histogram, Measured, Metric
from instar.wire.client.review_client import Measure

_BUCKETS = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)


class ReviewMetrics:
    """Calls for one kind of review."""

    def __init__(self, short: str, long: str) -> None:
        """``short``: authn or authz, in names; ``long``: the word in help texts."""
        self.requests = Counter(
            f"apiserver_delegated_{short}_request_total",
            f"Number of {long} requests to the main cluster, by status code.",
            ("code",),
        )
        self.seconds = Histogram(
            f"apiserver_delegated_{short}_request_duration_seconds",
            f"Latency of {long} requests to the main cluster in seconds, by status code.",
            ("code",),
            _BUCKETS,
        )

    def measure(self) -> Measure:
        def measured(code: str, seconds: float) -> None:
            self.requests.add((code,))
            self.seconds.observe((code,), seconds)

        return measured

    def all(self) -> Iterable[Metric]:
        return (self.requests, self.seconds)


def reachable_gauge(trouble: Callable[[], str | None]) -> Metric:
    """1 while every followed collection of the main cluster is current."""
    return Measured(
        "instar_main_cluster_followed",
        "Whether every followed collection of the main cluster is current (1) or not (0).",
        (),
        lambda: [((), 0 if trouble() else 1)],
    )
