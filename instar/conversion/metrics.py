"""Conversion metrics in Prometheus' text format, with upstream's names beside our own.

Our own counters rather than a library's: importing one costs a quarter of the time the server
has to start in, and the format is a few lines.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from instar.conversion.failure import FailureType
from instar.conversion.measured import Measurement

_CRD_BUCKETS = tuple(0.001 * 2**power for power in range(15))
_WEBHOOK_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60)

Labels = tuple[str, ...]


class Counter:
    def __init__(self, name: str, help: str, labels: Labels) -> None:
        self.name, self.help, self.labels = name, help, labels
        self._values: dict[Labels, float] = {}

    def add(self, labels: Labels, amount: float = 1) -> None:
        self._values[labels] = self._values.get(labels, 0) + amount

    def value(self, labels: Labels) -> float:
        return self._values.get(labels, 0)

    def render(self) -> Iterator[str]:
        yield from _header(self.name, self.help, "counter")
        for values, amount in sorted(self._values.items()):
            yield f"{self.name}{_label_text(self.labels, values)} {_number(amount)}"


class Histogram:
    def __init__(self, name: str, help: str, labels: Labels, buckets: Sequence[float]) -> None:
        self.name, self.help, self.labels = name, help, labels
        self._bounds = tuple(buckets)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, labels: Labels, value: float) -> None:
        counts = self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + value

    def count(self, labels: Labels) -> int:
        return sum(self._counts.get(labels, ()))

    def render(self) -> Iterator[str]:
        yield from _header(self.name, self.help, "histogram")
        for values, counts in sorted(self._counts.items()):
            total = 0
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                total += count
                text = _label_text((*self.labels, "le"), (*values, _number(bound)))
                yield f"{self.name}_bucket{text} {total}"
            text = _label_text(self.labels, values)
            yield f"{self.name}_sum{text} {_number(self._sums[values])}"
            yield f"{self.name}_count{text} {total}"


class PrometheusConversionMetrics:
    """``ConversionMetrics`` that renders itself for ``/metrics``."""

    def __init__(self) -> None:
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

    def looked_up(self, crd: str, *, hits: int, misses: int, shared: int) -> None:
        for outcome, count in (("hit", hits), ("miss", misses), ("shared", shared)):
            if count:
                self.cache.add((crd, outcome), count)

    def request_waited(self, crd: str, seconds: float) -> None:
        self.request_seconds.observe((crd,), seconds)

    def turned_away(self, crd: str, webhook: str) -> None:
        self.rejected.add((webhook, crd))

    def render(self) -> str:
        """Text format 0.0.4, ending in a newline."""
        metrics: tuple[Counter | Histogram, ...] = (
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
        return "".join(f"{line}\n" for metric in metrics for line in metric.render())


def _header(name: str, help: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"


def _label_text(names: Labels, values: Labels) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(f"{value:.12g}"))
