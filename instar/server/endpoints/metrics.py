"""Metrics of the server, and its endpoints /metrics and /metrics/slis.

``server/app.py`` counts requests in it; other components add metrics of their own. Where several
processes serve a port, ``lifecycle/metrics_merge.py`` merges the metrics of all processes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from instar.base import offload
from instar.base.metrics import (
    CONTENT_TYPE,
    Counter,
    Family,
    Histogram,
    Labels,
    Measured,
    MergeMode,
    Metric,
    prometheus_text,
)
from instar.server.endpoints.health import SLIS
from instar.server.http.messages import Response

_SLIS_PATH = "/metrics/slis"
METRICS_PATHS = ("/metrics", _SLIS_PATH)
_LINE_BYTES = 100
"""Approximate length of a line, for the size of the text."""
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Request metrics, and the metrics of other components."""

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
        help = "Processes that serve the port and whose numbers these are."
        processes = Measured("instar_processes", help, (), lambda: [((), 1)], MergeMode.SUM)
        self.all: list[Metric] = [self._requests, self._seconds, processes]
        self.of_all: Callable[[], Awaitable[list[Family]]] | None = None
        """Merges the metrics of all processes behind the port; None for a single process."""
        self.preparations: list[Callable[[], Awaitable[None]]] = []
        """Awaited before metrics are read."""

    def add(self, *metrics: Metric) -> None:
        """Show metrics of another component."""
        self.all += metrics

    def served(self, method: str, status: int, seconds: float) -> None:
        labels = self._labels.get((method, status))
        if labels is None:
            labels = self._labels[method, status] = (method, str(status)), (method,)
        self._requests.add(labels[0])
        self._seconds.observe(labels[1], seconds)

    def own(self) -> list[Family]:
        return [metric.family() for metric in self.all]

    async def counted(self) -> list[Family]:
        """Metrics of this process; long counts yield to the event loop."""
        for prepare in self.preparations:
            await prepare()
        breaks, found = offload.Breaks(), []
        for metric in self.all:
            found.append(metric.family())
            await breaks.between()
        return found

    async def respond(self, path: str) -> Response:
        """Return the page of one of ``METRICS_PATHS``."""
        merged = await (self.counted() if self.of_all is None else self.of_all())
        families = [each for each in merged if (each.name in SLIS) is (path == _SLIS_PATH)]
        size = _LINE_BYTES * sum(len(family.series) for family in families)
        text = await offload.run(size, lambda: prometheus_text(families))
        return Response(200, (text,), [(b"content-type", CONTENT_TYPE.encode())])
