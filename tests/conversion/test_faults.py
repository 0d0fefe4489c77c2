"""Fault by fault: what a client is told when a webhook misbehaves."""

from __future__ import annotations

from typing import Any

import pytest

from instar.wire.conversion.failure import FailureType
from instar.wire.webhooks.transport import TransportSettings
from tests.conversion.helpers import V2, causes, convert, crd_with, failure, widget, widgets
from tests.support.faults import ANSWER_FAULTS, HTTP_FAULTS
from tests.support.webhook import Webhook

SOURCE = "example.com/v1, Kind=Widget"
HTTP_TEXTS = {
    "http_400": "the server rejected our request for an unknown reason",
    "http_401": "the server has asked for the client to provide credentials",
    "http_403": "keep out",
    "http_404": "the server could not find the requested resource",
    "http_418": "the server responded with the status code 418 but did not return more information",
    "http_500": 'an error on the server ("boom") has prevented the request from succeeding',
    "http_500_json": 'an error on the server ("unknown") has prevented the request from succeeding',
    "http_503": "the server is currently unable to handle the request",
    "http_504": "the server was unable to return a response in the time allotted, "
    "but may still be processing the request",
    "status_object": "told by a Status",
    "redirect": "the server responded with the status code 307 but did not return more information",
    "empty": "0-length response with status code: 200 and content type: application/json",
    "not_json": "couldn't get version/kind; json parse error: json: cannot unmarshal string into "
    'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }',
    "half_json": "couldn't get version/kind; json parse error: unexpected end of JSON input",
    "json_array": "couldn't get version/kind; json parse error: json: cannot unmarshal array into "
    'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }',
    "truncated": "unexpected error when reading response body. Please retry. "
    "Original error: unexpected EOF",
    "endless": "the response body is larger than 1000000 bytes",
    "bomb": "the response body is larger than 1000000 bytes",
    "stalled": 'Post "<url>?timeout=1s": context deadline exceeded',
    "closed": 'Post "<url>?timeout=30s": EOF',
    "reset": 'Post "<url>?timeout=30s": read tcp <address>: read: connection reset by peer',
    "not_http": 'Post "<url>?timeout=30s": net/http: HTTP/1.x transport connection broken: '
    "malformed HTTP response",
}
REVIEW_TEXTS = {
    "no_review_kind": "expected webhook response of apiextensions.k8s.io/v1, "
    "Kind=ConversionReview, got /, Kind=",
    "no_response": "no response provided",
    "failed": "cannot be done",
    "failed_silently": "response.result.status was 'Failure', not 'Success'",
    "no_status": "response.result.status was '', not 'Success'",
}
OBJECT_TEXTS = {
    "no_objects": "returned 0 objects, expected 1",
    "one_object_more": "returned 2 objects, expected 1",
    "wrong_api_version": "returned invalid object at index 0: "
    "invalid groupVersion (expected example.com/v2, received example.com/v9)",
    "no_api_version": "returned invalid object at index 0: "
    "invalid groupVersion (expected example.com/v2, received )",
    "wrong_object_kind": "returned invalid object at index 0: "
    "invalid kind (expected Widget, received Gadget)",
    "wrong_name": "returned invalid object: must have the same name: a != other",
    "wrong_namespace": "returned invalid object: must have the same namespace: ns != other",
    "wrong_object_uid": "returned invalid object: must have the same UID: uid-a != other",
    "no_metadata": "returned invalid object: must have the same name: a != ",
    "metadata_is_list": "returned invalid object: must have the same name: a != ",
    "labels_are_list": "returned invalid metadata: "
    "invalid metadata.labels of type []interface {} in converted object",
    "label_is_number": "returned invalid metadata: "
    "metadata.labels[a] must be a string, but is int64 in converted object",
    "annotations_too_long": "returned invalid metadata: "
    "metadata.annotation: Too long: may not be more than 262144 bytes",
}


@pytest.mark.parametrize("fault", HTTP_FAULTS)
def test_an_http_fault_is_a_failed_call_in_upstreams_words(hook: Webhook, fault: str) -> None:
    hook.fault = fault

    failed = failure(
        hook,
        transport=TransportSettings(most_answer_bytes=1_000_000),
        timeout=1 if fault == "stalled" else 30,
    )

    address = f"127.0.0.1:{hook.port}"
    text = HTTP_TEXTS[fault].replace("<url>", hook.url).replace("<address>", address)
    assert failed.message == f"conversion webhook for {SOURCE} failed: {text}"
    assert failed.failure_type is FailureType.CALL


@pytest.mark.parametrize("fault", REVIEW_TEXTS)
def test_a_review_without_a_response_is_malformed(hook: Webhook, fault: str) -> None:
    hook.fault = fault

    failed = failure(hook)

    assert failed.message == f"conversion webhook for {SOURCE} failed: {REVIEW_TEXTS[fault]}"
    assert failed.failure_type is FailureType.MALFORMED


def test_an_answer_of_another_kind_cannot_be_read(hook: Webhook) -> None:
    hook.fault = "wrong_review_kind"

    failed = failure(hook)

    assert failed.message == (
        f'conversion webhook for {SOURCE} failed: no kind "Other" is registered for version '
        '"apiextensions.k8s.io/v1" in scheme "k8s.io/apiserver/pkg/util/webhook/client.go:71"'
    )
    assert failed.failure_type is FailureType.CALL


def test_an_answer_to_another_question_is_refused(hook: Webhook) -> None:
    hook.fault = "wrong_uid"

    failed = failure(hook)

    sent = hook.calls[0].review["request"]["uid"]
    text = f'expected response.uid="{sent}", got "other"'
    assert failed.message == f"conversion webhook for {SOURCE} failed: {text}"


def test_a_response_of_the_wrong_type_cannot_be_decoded(hook: Webhook) -> None:
    hook.fault = "response_is_text"

    failed = failure(hook)

    assert "json: cannot unmarshal string into Go struct field ConversionReview" in failed.message
    assert failed.failure_type is FailureType.CALL


@pytest.mark.parametrize("fault", OBJECT_TEXTS)
def test_a_wrong_object_is_refused_in_upstreams_words(hook: Webhook, fault: str) -> None:
    hook.fault = fault

    failed = failure(hook)

    assert failed.message == f"conversion webhook for {SOURCE} {OBJECT_TEXTS[fault]}"
    partial = fault in ("no_objects", "one_object_more")
    expected = FailureType.PARTIAL if partial else FailureType.INVALID_OBJECT
    assert failed.failure_type is expected


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("object_is_null", "unexpected end of JSON input"),
        (
            "object_is_text",
            "json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
    ],
)
def test_an_object_that_is_none_fails_with_the_bare_decoder_text(
    hook: Webhook, fault: str, text: str
) -> None:
    hook.fault = fault

    assert failure(hook).message == text


def test_an_object_without_kind_is_shown(hook: Webhook) -> None:
    hook.fault = "no_object_kind"

    assert failure(hook).message.startswith("Object 'Kind' is missing in '{")


@pytest.mark.parametrize(
    ("fault", "path"),
    [("label_is_invalid", "metadata.labels"), ("annotation_is_invalid", "metadata.annotation")],
)
def test_changed_labels_and_annotations_are_validated(hook: Webhook, fault: str, path: str) -> None:
    hook.fault = fault

    message = failure(hook).message

    assert f"returned invalid metadata: {path}: Invalid value: " in message


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("no_objects", "returned 0 objects, expected 3"),
        ("reversed", "at index 0: must have the same name: w0 != w2"),
        ("wrong_name", "returned invalid converted object at index 2: must have the same name"),
        ("wrong_api_version", "returned invalid converted object at index 2: invalid groupVersion"),
        ("object_is_null", "returned invalid converted object at index 2: unexpected end of JSON"),
        ("label_is_number", "returned invalid metadata in object at index 2: metadata.labels[a]"),
    ],
)
def test_one_wrong_object_fails_the_whole_batch(hook: Webhook, fault: str, text: str) -> None:
    hook.fault = fault

    failed = failure(hook, widgets(3))

    assert text in failed.message


@pytest.mark.parametrize("fault", ["no_review_kind", "wrong_uid"])
def test_v1beta1_does_not_look_at_kind_and_uid(hook: Webhook, fault: str) -> None:
    hook.fault = fault

    [converted] = convert(hook.conversion(["v1beta1"]), [widget()])

    assert converted["apiVersion"] == V2
    assert hook.calls[0].review["apiVersion"] == "apiextensions.k8s.io/v1beta1"


def test_every_answer_fault_is_in_one_of_the_tables() -> None:
    elsewhere = {
        "wrong_review_kind",
        "wrong_uid",
        "response_is_text",
        "reversed",
        "object_is_null",
        "object_is_text",
        "no_object_kind",
        "label_is_invalid",
        "annotation_is_invalid",
    }

    assert set(ANSWER_FAULTS) == {*REVIEW_TEXTS, *OBJECT_TEXTS, *elsewhere}
    assert set(HTTP_FAULTS) == set(HTTP_TEXTS)


def test_the_details_name_crd_versions_object_webhook_and_cause(hook: Webhook) -> None:
    hook.fault = "http_404"

    failed = failure(hook)

    assert causes(failed) == {
        "CustomResourceDefinition": ["widgets.example.com"],
        "FromVersion": ["example.com/v1"],
        "ToVersion": ["example.com/v2"],
        "Object": ["ns/a"],
        "Webhook": [hook.url],
        "Cause": ["the server could not find the requested resource"],
        "Advice": ["check the path in the CRD's clientConfig"],
    }
    status: dict[str, Any] = failed.to_status()
    assert status["code"] == 500
    assert "reason" not in status
    assert status["details"]["name"] == "a"
    assert status["details"]["kind"] == "widgets"


def test_a_wrong_object_in_a_batch_is_the_one_that_is_named(hook: Webhook) -> None:
    hook.fault = "wrong_name"

    assert causes(failure(hook, widgets(3)))["Object"] == ["ns/w2"]


def test_a_large_failed_batch_names_only_some_objects(hook: Webhook) -> None:
    hook.fault = "http_500"

    named = causes(failure(hook, widgets(30)))["Object"]

    assert named[0] == "ns/w0"
    assert named[-1] == "and 20 more"
    assert len(named) == 11


def test_no_known_review_version_is_a_bare_error(hook: Webhook) -> None:
    failed = None
    try:
        convert(hook.conversion(["v7"]), [widget()])
    except Exception as error:
        failed = error

    assert str(failed) == "no supported conversion review versions"
    assert hook.reviews == 0
    assert crd_with({}).conversion.strategy == "None"
