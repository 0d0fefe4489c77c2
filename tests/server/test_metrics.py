"""Prometheus' text format; its own parser is the judge."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from instar.base.metrics import Counter, Gauge, Histogram, Measured, page
from instar.server.endpoints.metrics import Metrics
from instar.tools.sdk.conversion_reviews import ConversionAnswer
from instar.tools.sdk.metrics import ConversionWebhookMetrics
from instar.wire.conversion.metrics import PrometheusConversionMetrics
from tests.support.server import LiveServer, live_server


def _samples(text: bytes) -> dict[str, float]:
    """Each sample as ``name{labels}``; the parser refuses what Prometheus would."""
    return {
        f"{sample.name}{sorted(sample.labels.items())}": sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_counters_and_histograms_are_written_as_prometheus_reads_them() -> None:
    counter = Counter("things_total", "Things", ("kind",))
    counter.add(('say "hi"\n',), 2)
    histogram = Histogram("time_seconds", "Time", ("who",), (0.1, 1))
    for value in (0.05, 0.1, 0.5, 7):
        histogram.observe(("me",), value)

    assert list(counter.family().lines()) == [
        "# HELP things_total Things",
        "# TYPE things_total counter",
        'things_total{kind="say \\"hi\\"\\n"} 2',
    ]
    assert list(histogram.family().lines())[2:] == [
        'time_seconds_bucket{who="me",le="0.1"} 2',
        'time_seconds_bucket{who="me",le="1"} 3',
        'time_seconds_bucket{who="me",le="+Inf"} 4',
        'time_seconds_sum{who="me"} 7.65',
        'time_seconds_count{who="me"} 4',
    ]
    assert (histogram.count(("me",)), histogram.count(("nobody",))) == (4, 0)


def test_numbers_without_labels_are_there_from_the_start() -> None:
    gauge = Gauge("running", "Running now")
    assert list(gauge.family().lines())[1:] == ["# TYPE running gauge", "running 0"]

    gauge.add()
    gauge.add(amount=-3)

    assert gauge.value() == -2


def test_gauges_are_measured_when_the_page_is_requested() -> None:
    found = [1]
    metric = Measured("size", "Size", ("of",), lambda: [(("list",), len(found))])

    before = page([metric])
    found.append(2)

    assert (before, page([metric])) != (before, before)
    assert _samples(page([metric])) == {"size[('of', 'list')]": 2}


def test_a_webhook_counts_reviews_objects_and_refusals() -> None:
    metrics = ConversionWebhookMetrics()
    metrics.started()
    metrics.answered(ConversionAnswer(b"", True, 3, "Widget", "v1", "v2"), 0.2)
    metrics.answered(ConversionAnswer(b"", False, 1, "Widget", "v1", "v2"), 0.2)
    metrics.refused(415)

    found = _samples(metrics.page())

    kind = "('from_version', 'v1'), ('kind', 'Widget')"
    assert found[f"instar_webhook_objects_total[{kind}, ('to_version', 'v2')]"] == 3
    assert found[f"instar_webhook_duration_seconds_count[{kind}, ('to_version', 'v2')]"] == 2
    assert found["instar_webhook_refused_requests_total[('code', '415')]"] == 1
    assert found["instar_webhook_in_flight[]"] == 1


def test_the_page_of_conversions_has_upstreams_names_and_ours() -> None:
    metrics = PrometheusConversionMetrics()
    metrics.count_lookups("widgets.example.com", hits=3, misses=1, shared=0)
    metrics.request_waited("widgets.example.com", 0.25)

    text = page(metrics.all()).decode()

    families = {family.name for family in text_string_to_metric_families(text)}
    assert "apiserver_crd_conversion_webhook_duration_seconds" in families
    assert "apiserver_conversion_webhook_request" in families
    assert "instar_conversion_request_seconds" in families


def test_requests_are_counted_by_method_and_code() -> None:
    metrics = Metrics()
    for status, seconds in ((200, 0.002), (200, 30.0), (404, 0.002)):
        metrics.served("GET", status, seconds)

    found = _samples(b"".join(asyncio.run(metrics.respond("/metrics")).chunks))

    assert found["apiserver_request_total[('code', '200'), ('method', 'GET')]"] == 2
    assert found["apiserver_request_duration_seconds_count[('method', 'GET')]"] == 3
    assert found["apiserver_request_duration_seconds_sum[('method', 'GET')]"] == 30.004
    least = "apiserver_request_duration_seconds_bucket[('le', '0.0025'), ('method', 'GET')]"
    assert found[least] == 2


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as running:
        yield running


def test_the_page_of_a_server_tells_what_lies_in_its_store(server: LiveServer) -> None:
    found = _samples(server.request("GET", "/metrics").body)

    assert found["apiserver_storage_objects[('resource', 'core/namespaces')]"] >= 4
