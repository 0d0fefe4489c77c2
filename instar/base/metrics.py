"""Prometheus metrics: counters, gauges and histograms, and their text format.

Used by the server, its registry and the webhook client; ``server/endpoints/metrics.py`` serves
them. The module is hand-written, because importing a client library costs a quarter of the server's
start time, the hot path only adds two numbers, and the format is short. Worker processes send each
other ``Family`` values, which ``merge_families`` adds up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from operator import add
from typing import Any, NamedTuple, Protocol

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]


class MergeMode(Enum):
    """How to combine the values of several processes."""

    SUM = "sum"
    GREATEST = "greatest"
    """All processes measure the same thing, or only the worst value matters."""


class Family(NamedTuple):
    """A metric at one moment: its description and its values."""

    name: str
    help: str
    kind: str
    """The metric type as Prometheus names it."""
    labels: Labels
    across: MergeMode
    series: dict[Labels, Sequence[float]]
    """One value each; for a histogram the count of each bucket and of the values above all
    buckets, then the sum."""
    bounds: tuple[float, ...] = ()

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        written = self._buckets if self.bounds else self._numbers
        for labels, numbers in sorted(self.series.items()):
            yield from written(labels, numbers)

    def _numbers(self, labels: Labels, numbers: Sequence[float]) -> Iterator[str]:
        yield f"{self.name}{_label_text(self.labels, labels)} {_number(numbers[0])}"

    def _buckets(self, labels: Labels, numbers: Sequence[float]) -> Iterator[str]:
        *counts, spent = numbers
        total = 0.0
        for bound, count in zip((*self.bounds, float("inf")), counts, strict=True):
            total += count
            text = _label_text((*self.labels, "le"), (*labels, _number(bound)))
            yield f"{self.name}_bucket{text} {_number(total)}"
        text = _label_text(self.labels, labels)
        yield f"{self.name}_sum{text} {_number(spent)}"
        yield f"{self.name}_count{text} {_number(total)}"

    def plain(self) -> list[Any]:
        """Return JSON values, to send to another process."""
        series = [[labels, numbers] for labels, numbers in self.series.items()]
        return [*self[:4], self.across.value, series, self.bounds]

    @classmethod
    def of_plain(cls, values: Sequence[Any]) -> Family:
        """Return the family that ``plain`` encoded."""
        name, help, kind, labels, across, series, bounds = values
        numbers = {tuple(values): found for values, found in series}
        return cls(name, help, kind, tuple(labels), MergeMode(across), numbers, tuple(bounds))


class Metric(Protocol):
    """What ``/metrics`` can show: a name, a help text and values by label."""

    name: str
    help: str
    labels: Labels

    @property
    def kind(self) -> str:
        """The metric type as Prometheus names it."""

    def family(self) -> Family: ...


class Counter:
    """Counter by label values; without labels it starts at zero."""

    kind = "counter"

    def __init__(self, name: str, help: str, labels: Labels = ()) -> None:
        self.name, self.help, self.labels = name, help, labels
        self._values: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, labels: Labels = (), amount: float = 1) -> None:
        self._values[labels] = self._values.get(labels, 0) + amount

    def value(self, labels: Labels = ()) -> float:
        return self._values.get(labels, 0)

    def family(self) -> Family:
        series: dict[Labels, Sequence[float]] = {
            labels: (amount,) for labels, amount in self._values.items()
        }
        return Family(self.name, self.help, self.kind, self.labels, MergeMode.SUM, series)


class Gauge(Counter):
    """A value that can also go down: ``add`` takes negative amounts."""

    kind = "gauge"


class Histogram:
    """Histogram by label values, with fixed upper bounds of its buckets."""

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

    def family(self) -> Family:
        series: dict[Labels, Sequence[float]] = {
            labels: tuple(numbers) for labels, numbers in self._series.items()
        }
        words = self.name, self.help, self.kind, self.labels
        return Family(*words, MergeMode.SUM, series, self._bounds)


class Measured:
    """A gauge that is measured when the page is requested."""

    kind = "gauge"

    def __init__(
        self,
        name: str,
        help: str,
        labels: Labels,
        measure: Callable[[], Iterable[tuple[Labels, float]]],
        across: MergeMode = MergeMode.GREATEST,
    ) -> None:
        self.name, self.help, self.labels = name, help, labels
        self._measure = measure
        self._across = across

    def family(self) -> Family:
        series: dict[Labels, Sequence[float]] = {
            labels: (amount,) for labels, amount in self._measure()
        }
        return Family(self.name, self.help, self.kind, self.labels, self._across, series)


class MeasuredCounter(Measured):
    """A count that another component keeps, read when the page is requested."""

    kind = "counter"


def page(metrics: Iterable[Metric]) -> bytes:
    """Return the body of /metrics."""
    return prometheus_text(metric.family() for metric in metrics)


def prometheus_text(families: Iterable[Family]) -> bytes:
    """Return families in the Prometheus text format."""
    return "".join(f"{line}\n" for family in families for line in family.lines()).encode()


def merge_families(several: Iterable[Iterable[Family]]) -> list[Family]:
    """Combine the families of several processes into one list."""
    total: dict[str, Family] = {}
    for families in several:
        for family in families:
            known = total.get(family.name)
            total[family.name] = family if known is None else _merge_two(known, family)
    return list(total.values())


def _merge_two(one: Family, other: Family) -> Family:
    join = _sum_values if one.across is MergeMode.SUM else _max_values
    series = dict(one.series)
    for labels, numbers in other.series.items():
        known = series.get(labels)
        series[labels] = numbers if known is None else join(known, numbers)
    return one._replace(series=series)


def _sum_values(one: Sequence[float], other: Sequence[float]) -> Sequence[float]:
    return tuple(map(add, one, other))


def _max_values(one: Sequence[float], other: Sequence[float]) -> Sequence[float]:
    return tuple(map(max, one, other))


def without_gauges(families: Iterable[Family]) -> list[Family]:
    """Return the counters and histograms of an ended process, without its gauges."""
    return [family for family in families if family.kind != Gauge.kind]


def _label_text(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escape_label(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escape_label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(f"{value:.12g}"))
