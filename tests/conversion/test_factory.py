"""From a CRD to its converter, and converters that run in the server."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from instar.base.json_values import Object
from instar.wire.conversion.factory import ConversionServices, converter_for
from instar.wire.conversion.failure import ConversionFailed, FailureType
from instar.wire.conversion.metrics import PrometheusConversionMetrics
from tests.conversion.helpers import V2, causes, convert, crd_with, widget, widgets

CRD = "widgets.example.com"
WEBHOOK: dict[str, Any] = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://never.invalid/"},
    },
}


def in_process(function: Any, objects: Sequence[Object], **parts: Any) -> list[Object]:
    return convert(WEBHOOK, objects, in_process={CRD: function}, **parts)


def test_strategy_none_changes_the_version_alone() -> None:
    [converted] = convert({"strategy": "None"}, [widget()])

    assert converted == {**widget(), "apiVersion": V2}


@pytest.mark.parametrize(
    ("conversion", "text"),
    [
        ({"strategy": "Magic"}, f'unknown conversion strategy "Magic" for CRD {CRD}'),
        ({"strategy": "Webhook"}, "webhook configuration must have either service or URL"),
        (
            {"strategy": "Webhook", "webhook": {"clientConfig": {}}},
            "webhook configuration must have either service or URL",
        ),
    ],
)
def test_a_crd_no_converter_can_be_built_for(conversion: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        converter_for(crd_with(conversion), ConversionServices())


def test_an_in_process_converter_replaces_the_webhook_and_is_measured() -> None:
    metrics = PrometheusConversionMetrics()

    def function(objects: list[Object], api_version: str) -> list[Object]:
        for obj in objects:
            obj["apiVersion"] = api_version
            obj["metadata"]["finalizers"] = ["ignored"]
        return objects

    sent = [widget("a"), widget("b", V2), widget("c")]

    converted = in_process(function, sent, metrics=metrics)

    assert converted == [widget("a", V2), widget("b", V2), widget("c", V2)]
    assert sent[0] == widget("a")
    assert metrics.requests.value(("success", "")) == 1


def test_an_in_process_converter_that_raises_is_reported_as_a_refusing_webhook() -> None:
    def function(objects: list[Object], api_version: str) -> list[Object]:
        raise KeyError("spec")

    with pytest.raises(ConversionFailed) as caught:
        in_process(function, [widget()])

    assert caught.value.message == (
        "conversion webhook for example.com/v1, Kind=Widget failed: KeyError: 'spec'"
    )
    assert caught.value.failure_type is FailureType.MALFORMED
    assert causes(caught.value)["Webhook"] == [f"in-process converter of {CRD}"]


def test_a_custom_exception_of_the_converter_is_reported_with_its_message() -> None:
    class Refused(Exception):
        pass

    def function(objects: list[Object], api_version: str) -> list[Object]:
        raise Refused("size is too large for v2")

    with pytest.raises(ConversionFailed, match=r"Widget failed: size is too large for v2$"):
        in_process(function, [widget()])


def test_an_in_process_converter_that_returns_nothing_is_a_failure_and_no_crash() -> None:
    with pytest.raises(ConversionFailed, match="'NoneType' object is not iterable"):
        in_process(lambda objects, api_version: None, [widget()])


def test_an_in_process_converter_is_held_to_the_contract() -> None:
    def function(objects: list[Object], api_version: str) -> list[Object]:
        return [{**obj, "apiVersion": api_version} for obj in objects[::-1]]

    with pytest.raises(ConversionFailed, match="must have the same name: w0 != w1") as caught:
        in_process(function, widgets(2))

    assert caught.value.failure_type is FailureType.INVALID_OBJECT


def test_an_in_process_converter_that_hangs_runs_into_the_deadline() -> None:
    done = threading.Event()

    def function(objects: list[Object], api_version: str) -> list[Object]:
        done.wait(5)
        return objects

    with pytest.raises(ConversionFailed, match="no answer within 50ms") as caught:
        in_process(function, [widget()], timeout=0.05)

    done.set()
    assert caught.value.timed_out
