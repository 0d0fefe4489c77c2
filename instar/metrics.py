"""Numbers for Prometheus, in its text format. For the server, its registry and the webhooks.

Ours rather than a library's: importing one costs a quarter of the time the server has to start
in, the hot path adds two numbers, and the format is a few lines.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]


class Metric(Protocol):
    name: str
    help: str
    labels: Labels

    @property
    def kind(self) -> str:
        """As Prometheus calls it."""

    def lines(self) -> Iterator[str]: ...


class Counter:
    kind = "counter"

    def __init__(self, name: str, help: str, labels: Labels = ()) -> None:
        self.name, self.help, self.labels = name, help, labels
        self._values: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, labels: Labels = (), amount: float = 1) -> None:
        self._values[labels] = self._values.get(labels, 0) + amount

    def value(self, labels: Labels = ()) -> float:
        return self._values.get(labels, 0)

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.help, self.kind)
        for values, amount in sorted(self._values.items()):
            yield f"{self.name}{_label_text(self.labels, values)} {_number(amount)}"


class Gauge(Counter):
    """Goes down as well: ``add`` takes negative amounts."""

    kind = "gauge"


class Histogram:
    kind = "histogram"

    def __init__(self, name: str, help: str, labels: Labels, buckets: Sequence[float]) -> None:
        self.name, self.help, self.labels = name, help, labels
        self._bounds = tuple(buckets)
        self._series: dict[Labels, list[float]] = {}
        """A count for each bucket and for what is above them all, then the sum."""

    def observe(self, labels: Labels, value: float) -> None:
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = [0] * (len(self._bounds) + 1) + [0.0]
        series[bisect_left(self._bounds, value)] += 1
        series[-1] += value

    def count(self, labels: Labels) -> int:
        return int(sum(self._series.get(labels, ())[:-1]))

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.help, self.kind)
        for values, (*counts, spent) in sorted(self._series.items()):
            total = 0.0
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                total += count
                text = _label_text((*self.labels, "le"), (*values, _number(bound)))
                yield f"{self.name}_bucket{text} {_number(total)}"
            text = _label_text(self.labels, values)
            yield f"{self.name}_sum{text} {_number(spent)}"
            yield f"{self.name}_count{text} {_number(total)}"


class Measured:
    """A gauge that nobody keeps: it is measured when the page is asked for."""

    kind = "gauge"

    def __init__(
        self,
        name: str,
        help: str,
        labels: Labels,
        measure: Callable[[], Iterable[tuple[Labels, float]]],
    ) -> None:
        self.name, self.help, self.labels = name, help, labels
        self._measure = measure

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.help, self.kind)
        for values, amount in self._measure():
            yield f"{self.name}{_label_text(self.labels, values)} {_number(amount)}"


def page(metrics: Iterable[Metric]) -> bytes:
    return "".join(f"{line}\n" for metric in metrics for line in metric.lines()).encode()


def _head(name: str, help: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"


def _label_text(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(f"{value:.12g}"))
