"""ConversionReview on the wire, as both sides write and read it."""

from __future__ import annotations

import json

import pytest

from instar.kube.api import conversion_review as wire
from tests.conversion.helpers import V2, convert, widget
from tests.support.webhook import Webhook


def test_the_request_is_upstreams_text_with_the_empty_response() -> None:
    body = wire.encode_request("v1", "u-1", V2, [b'{"a":1}', b'{"b":2}'])

    assert body == (
        b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",'
        b'"request":{"uid":"u-1","desiredAPIVersion":"example.com/v2",'
        b'"objects":[{"a":1},{"b":2}]},'
        b'"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}\n'
    )


@pytest.mark.parametrize("version", wire.KNOWN_VERSIONS)
def test_a_request_is_read_as_it_was_written(version: str) -> None:
    body = wire.encode_request(version, "u", V2, [json.dumps(widget()).encode()])

    parsed = wire.parse_request(body)

    assert parsed == wire.ConversionRequest(version, "u", V2, [widget()])


@pytest.mark.parametrize("version", wire.KNOWN_VERSIONS)
def test_answers_are_read_as_they_were_written(version: str) -> None:
    success = wire.parse_response(wire.encode_success(version, "u", [widget()]))
    failure = wire.parse_response(wire.encode_failure(version, "u", "why"))

    assert (success.status, success.uid, success.objects) == ("Success", "u", [widget()])
    assert (failure.status, failure.message, failure.objects) == ("Failure", "why", [])
    assert success.api_version == f"apiextensions.k8s.io/{version}"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"{}", "expected a ConversionReview of apiextensions.k8s.io/v1 or"),
        (b"", "unexpected end of JSON input"),
        (
            b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}',
            "no request provided",
        ),
        (
            b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":1}',
            "cannot unmarshal number into Go struct field ConversionReview.request",
        ),
    ],
)
def test_a_body_that_is_not_a_conversion_request_is_reported(body: bytes, text: str) -> None:
    with pytest.raises(wire.InvalidConversionReview, match=text):
        wire.parse_request(body)


@pytest.mark.parametrize(
    ("listed", "chosen"),
    [
        (["v1", "v1beta1"], "v1"),
        (["v1beta1", "v1"], "v1beta1"),
        (["v9", "v1"], "v1"),
        (["v9"], None),
        ([], None),
    ],
)
def test_the_first_known_version_of_the_crd_is_spoken(
    listed: list[str], chosen: str | None
) -> None:
    assert wire.preferred_version(listed) == chosen


def test_the_request_on_the_wire_has_upstreams_headers(hook: Webhook) -> None:
    convert(hook.conversion(), [widget()])

    [call] = hook.calls
    assert call.path == "/convert?timeout=30s"
    assert call.headers["User-Agent"] == "kube-apiserver-admission"
    assert call.headers["Accept"] == "application/json, */*"
    assert call.headers["Content-Type"] == "application/json"
    assert call.headers["Host"] == f"127.0.0.1:{hook.port}"
    assert call.body.endswith(b"}\n")
