"""What the server counts, and its page of metrics."""

from __future__ import annotations

from instar.metrics import CONTENT_TYPE, Counter, Histogram, Labels, Metric, page
from instar.server.rest.responses import Response

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    def __init__(self) -> None:
        self._requests = Counter(
            "apiserver_request_total", "Requests answered, by method and code.", ("method", "code")
        )
        self._seconds = Histogram(
            "apiserver_request_duration_seconds",
            "Time to an answer (to the start of it, for watches).",
            ("method",),
            _BUCKETS,
        )
        self._labels: dict[tuple[str, int], tuple[Labels, Labels]] = {}
        self.all: list[Metric] = [self._requests, self._seconds]

    def add(self, *metrics: Metric) -> None:
        """More for the page, counted elsewhere."""
        self.all += metrics

    def served(self, method: str, status: int, seconds: float) -> None:
        labels = self._labels.get((method, status))
        if labels is None:
            labels = self._labels[method, status] = (method, str(status)), (method,)
        self._requests.add(labels[0])
        self._seconds.observe(labels[1], seconds)

    def respond(self) -> Response:
        return Response(200, (page(self.all),), [(b"content-type", CONTENT_TYPE.encode())])
