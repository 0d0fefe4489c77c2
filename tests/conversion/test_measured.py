"""What is counted, under which names, and how it is rendered."""

from __future__ import annotations

import subprocess
import sys

import pytest

from instar.base.errors import TooManyRequests
from instar.wire.conversion.metrics import PrometheusConversionMetrics
from instar.wire.webhooks.transport import TransportSettings
from tests.conversion.helpers import V2, convert, failure, widget
from tests.support.webhook import Webhook

CRD = "widgets.example.com"


def test_a_success_is_counted_under_upstreams_names_and_ours(hook: Webhook) -> None:
    metrics = PrometheusConversionMetrics()

    convert(hook.conversion(), [widget("a"), widget("b")], metrics=metrics)

    assert metrics.crd_seconds.count((CRD, "v1", "v2", "true")) == 1
    assert metrics.requests.value(("success", "")) == 1
    assert metrics.seconds.count(("success", "")) == 1
    assert metrics.webhook_seconds.count((hook.url, CRD)) == 1
    assert metrics.objects.value((hook.url, CRD, "v1", "v2")) == 2


def test_sources_at_different_versions_are_distinguished(hook: Webhook) -> None:
    metrics = PrometheusConversionMetrics()

    convert(hook.conversion(), [widget("a"), widget("b", "example.com/v3")], metrics=metrics)

    assert metrics.crd_seconds.count((CRD, "v1", "v2", "true")) == 1
    assert metrics.crd_seconds.count((CRD, "v3", "v2", "true")) == 1


def test_converting_nothing_is_not_counted(hook: Webhook) -> None:
    metrics = PrometheusConversionMetrics()

    convert(hook.conversion(), [widget("a", V2)], metrics=metrics)

    assert metrics.requests.value(("success", "")) == 0


@pytest.mark.parametrize(
    ("fault", "failure_type"),
    [
        ("http_500", "conversion_webhook_call_failure"),
        ("failed", "conversion_webhook_malformed_response_failure"),
        ("no_objects", "conversion_webhook_partial_response_failure"),
        ("wrong_name", "conversion_webhook_invalid_converted_object_failure"),
    ],
)
def test_a_failure_is_counted_by_its_type(hook: Webhook, fault: str, failure_type: str) -> None:
    metrics = PrometheusConversionMetrics()
    hook.fault = fault

    failure(hook, metrics=metrics)

    assert metrics.requests.value(("failure", failure_type)) == 1
    assert metrics.failures.value((hook.url, CRD, failure_type)) == 1
    assert metrics.crd_seconds.count((CRD, "v1", "v2", "false")) == 1
    assert metrics.timeouts.value((hook.url, CRD)) == 0


def test_a_time_out_is_counted_by_webhook_and_crd(hook: Webhook) -> None:
    metrics = PrometheusConversionMetrics()
    hook.pause()

    failure(hook, metrics=metrics, timeout=0.1)

    assert metrics.timeouts.value((hook.url, CRD)) == 1


def test_a_rejected_conversion_is_counted(hook: Webhook) -> None:
    metrics = PrometheusConversionMetrics()
    full = TransportSettings(calls_at_once=0, calls_waiting=0)

    with pytest.raises(TooManyRequests):
        convert(hook.conversion(), [widget()], metrics=metrics, transport=full)

    assert metrics.rejected.value((hook.url, CRD)) == 1


def test_a_server_without_webhooks_does_not_import_the_http_library() -> None:
    program = "import sys, instar.wire.conversion.factory\nprint('aiohttp' in sys.modules)"

    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert shown.strip() == "False"
