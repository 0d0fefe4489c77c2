"""What a webhook may answer, and what becomes of it: the reference's tables over real TLS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from instar.base.json_values import Object
from tests.admission.support import FAILED, INVALID, asked, create, failed
from tests.rest.support import APPLY, Collection
from tests.support.admission import (
    AdmissionHook,
    allowing,
    denying,
)
from tests.support.server import LiveServer


@pytest.fixture(autouse=True)
def _nothing_is_left(place: LiveServer, widgets: Collection) -> Iterator[None]:
    yield
    widgets.request("DELETE")


# Denial -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "message", "reason"),
    [
        ({"message": "no way"}, 400, "denied the request: no way", None),
        ({"message": "no", "code": 403, "reason": "Forbidden"}, 403, ": no", "Forbidden"),
        ({"reason": "Because"}, 400, "denied the request: Because", "Because"),
        ({}, 400, "denied the request without explanation", None),
        ({"code": 200, "message": "m"}, 400, ": m", None),
        ({"code": 599, "message": "m"}, 599, ": m", None),
        ({"code": 12345, "message": "m"}, 500, ": m", None),
        ({"code": -1, "message": "m"}, 400, ": m", None),
        ({"message": 'é "q"\nline'}, 400, ': é "q"\nline', None),
    ],
)
def test_a_denial_has_the_webhooks_message_and_code(
    place: LiveServer,
    widgets: Collection,
    hook: AdmissionHook,
    status: Object,
    code: int,
    message: str,
    reason: str | None,
) -> None:
    hook.says["/v"] = lambda request: {"allowed": False, "status": status}
    with asked(place, hook, "Validating"):
        answer = create(widgets)

    assert answer.status == code
    told = answer.json
    assert told["message"].startswith('admission webhook "v.ref.io" denied the request')
    assert told["message"].endswith(message)
    assert told.get("reason") == reason
    assert told["status"] == "Failure"
    assert told["code"] == code
    assert "details" not in told
    assert widgets.request("GET", "/x").status == 404


def test_details_are_passed_on_and_ask_to_wait(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    details = {"causes": [{"message": "c"}], "retryAfterSeconds": 2}
    hook.says["/v"] = lambda request: denying("later", code=429, details=details)
    with asked(place, hook, "Validating"):
        answer = create(widgets)

    assert answer.status == 429
    assert answer.json["details"] == details
    assert answer.header("Retry-After") == "2"


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH", "DELETE", "apply", "status", "scale"])
def test_every_verb_can_be_denied_and_then_nothing_happens(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, kind: str, verb: str
) -> None:
    old = widgets.create("old", spec={"a": "x", "replicas": 1})
    hook.says["/v"] = lambda request: denying("stop", code=403)
    changed = {**old, "spec": {"a": "y"}}
    applied = widgets.obj("old", spec={"a": "y"})
    with asked(place, hook, kind):
        answer = {
            "POST": lambda: create(widgets, "new"),
            "PUT": lambda: widgets.put(changed),
            "PATCH": lambda: widgets.patch("old", {"spec": {"a": "y"}}),
            "DELETE": lambda: widgets.delete("old"),
            "apply": lambda: widgets.patch("old", applied, APPLY, "?fieldManager=m&force=true"),
            "status": lambda: widgets.patch("old", {"status": {"s": "x"}}, sub="/status"),
            "scale": lambda: widgets.patch("old", {"spec": {"replicas": 5}}, sub="/scale"),
        }[verb]()

    assert (answer.status, answer.json["message"]) == (
        403,
        'admission webhook "v.ref.io" denied the request: stop',
    )
    assert widgets.get("old") == old
    assert widgets.request("GET", "/new").status == 404


# Warnings -----------------------------------------------------------------------------------------


def test_warnings_are_reported_with_success_and_with_denial(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    warnings = ["mind the gap", "mind the gap", "", "bad\nline", 'say "hi"']
    with asked(place, hook, "Validating"):
        hook.says["/v"] = lambda request: allowing(warnings=warnings)
        allowed = create(widgets)
        hook.says["/v"] = lambda request: {"allowed": False, "warnings": warnings}
        denied = create(widgets, "y")

    expected = ['299 - "mind the gap"', '299 - "say \\"hi\\""']
    assert allowed.warnings == denied.warnings == expected


# Bad answers --------------------------------------------------------------------------------------

GO_STRUCT = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


def _wrapped(**changes: Any) -> Any:
    return lambda review: {**review, **changes}


def _response(**changes: Any) -> Any:
    return lambda review: {**review, "response": {**review["response"], **changes}}


WRAPPED: dict[str, tuple[Any, str]] = {
    "no response": (
        lambda review: {name: review[name] for name in ("kind", "apiVersion")},
        f"{INVALID}webhook response was absent",
    ),
    "no type": (
        lambda review: {"response": review["response"]},
        f"{INVALID}expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, "
        "got /, Kind=",
    ),
    "v1beta1": (
        _wrapped(apiVersion="admission.k8s.io/v1beta1"),
        f"{FAILED}converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
    ),
    "other kind": (
        _wrapped(kind="Foo"),
        f'{FAILED}no kind "Foo" is registered for version "admission.k8s.io/v1" in scheme '
        '"k8s.io/apiserver/pkg/util/webhook/client.go:71"',
    ),
    "allowed is a text": (
        _response(allowed="yes"),
        f"{FAILED}json: cannot unmarshal string into Go struct field "
        "AdmissionResponse.response.allowed of type bool",
    ),
    "patch when validating": (
        _response(patch="W10="),
        f"{INVALID}validating webhook may not return response.patch",
    ),
    "patch type when validating": (
        _response(patchType="JSONPatch"),
        f"{INVALID}validating webhook may not return response.patchType",
    ),
}
BODIES: dict[str, tuple[bytes | str, str]] = {
    "a list": (
        b"[]",
        f"{FAILED}couldn't get version/kind; json parse error: json: cannot unmarshal array "
        f"into Go value of type {GO_STRUCT}",
    ),
    "a word": (
        b"hello",
        f"{FAILED}couldn't get version/kind; json parse error: json: cannot unmarshal string "
        f"into Go value of type {GO_STRUCT}",
    ),
    "nothing": (
        b"",
        f"{FAILED}0-length response with status code: 200 and content type: application/json",
    ),
    "400": ("http_400", f"{FAILED}the server rejected our request for an unknown reason"),
    "401": (
        "http_401",
        f"{FAILED}the server has asked for the client to provide credentials",
    ),
    "403": ("http_403", f"{FAILED}keep out"),
    "404": ("http_404", f"{FAILED}the server could not find the requested resource"),
    "500": (
        "http_500",
        f'{FAILED}an error on the server ("boom") has prevented the request from succeeding',
    ),
    "500 in JSON": (
        "http_500_json",
        f'{FAILED}an error on the server ("unknown") has prevented the request from succeeding',
    ),
    "503": ("http_503", f"{FAILED}the server is currently unable to handle the request"),
    "a Status": ("status_object", f"{FAILED}told by a Status"),
}


@pytest.mark.parametrize("case", WRAPPED)
def test_an_answer_that_cannot_be_used_fails_the_request_or_is_passed_over(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, case: str
) -> None:
    hook.wraps, text = WRAPPED[case]
    with asked(place, hook, "Validating"):
        assert failed(create(widgets)) == text
    with asked(place, hook, "Validating", failurePolicy="Ignore"):
        assert create(widgets).status == 201


@pytest.mark.parametrize("case", BODIES)
def test_a_body_that_is_not_a_review_fails_the_request_or_is_ignored(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, case: str
) -> None:
    body, text = BODIES[case]
    hook.says["/v"] = lambda request: body
    with asked(place, hook, "Validating"):
        assert failed(create(widgets)) == text
    with asked(place, hook, "Validating", failurePolicy="Ignore"):
        answer = create(widgets)

    assert answer.status == 201
    assert answer.warnings == []


def test_another_uid_is_not_an_answer(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    hook.wraps = _response(uid="other")
    with asked(place, hook, "Validating"):
        text = failed(create(widgets))

    assert text == f'{INVALID}expected response.uid="{hook.asked()[0]["uid"]}", got "other"'


def test_v1beta1_responses_need_no_uid_and_kind(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    hook.wraps = lambda review: {"response": {"allowed": True}}
    with asked(place, hook, "Validating", admissionReviewVersions=["v1beta1"]):
        assert create(widgets).status == 201


def test_an_answer_in_yaml_is_an_answer(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    def answer(request: Object) -> bytes:
        return (
            "kind: AdmissionReview\napiVersion: admission.k8s.io/v1\n"
            f"response:\n  uid: {request['uid']}\n  allowed: true\n"
        ).encode()

    hook.says["/v"] = answer
    with asked(place, hook, "Validating"):
        assert create(widgets).status == 201
