"""What the server counts, in Prometheus' text form."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from instar.server.responses import Response

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_TYPE = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class Metrics:
    """Plain counters: the hot path adds two numbers and walks no registry."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, int], list[float]] = {}
        self._buckets: dict[str, list[int]] = {}
        self._sources: list[Callable[[], Iterable[str]]] = []

    def add_source(self, render: Callable[[], Iterable[str]]) -> None:
        """More lines for the page, rendered when it is asked for."""
        self._sources.append(render)

    def served(self, method: str, status: int, seconds: float) -> None:
        entry = self._requests.get((method, status))
        if entry is None:
            entry = self._requests[(method, status)] = [0, 0.0]
        entry[0] += 1
        entry[1] += seconds
        buckets = self._buckets.get(method)
        if buckets is None:
            buckets = self._buckets[method] = [0] * (len(_BUCKETS) + 1)
        for position, limit in enumerate(_BUCKETS):
            if seconds <= limit:
                buckets[position] += 1
                return
        buckets[-1] += 1

    def respond(self) -> Response:
        lines = list(self._render())
        for source in self._sources:
            lines += source()
        return Response(200, (("\n".join(lines) + "\n").encode(),), [_TYPE])

    def _render(self) -> Iterable[str]:
        name = "apiserver_request_total"
        yield f"# HELP {name} Requests answered, by method and code."
        yield f"# TYPE {name} counter"
        for (method, status), (count, _) in sorted(self._requests.items()):
            yield f'{name}{{method="{method}",code="{status}"}} {int(count)}'
        name = "apiserver_request_duration_seconds"
        yield f"# HELP {name} Time to an answer (to the start of it, for watches)."
        yield f"# TYPE {name} histogram"
        for method, buckets in sorted(self._buckets.items()):
            total = 0
            for limit, count in zip((*map(str, _BUCKETS), "+Inf"), buckets, strict=True):
                total += count
                yield f'{name}_bucket{{method="{method}",le="{limit}"}} {total}'
            spent = sum(s for (m, _), (_, s) in self._requests.items() if m == method)
            yield f'{name}_sum{{method="{method}"}} {spent:.6f}'
            yield f'{name}_count{{method="{method}"}} {total}'
