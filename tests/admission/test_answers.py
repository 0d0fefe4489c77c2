"""What a webhook may answer, and what becomes of it: the reference's tables over real TLS."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from instar.plain import Object
from tests.rest.support import APPLY, Collection
from tests.support.admission import (
    AdmissionHook,
    adding,
    allowing,
    configuration,
    configured,
    denying,
    patching,
)
from tests.support.server import Answer, LiveServer


@contextmanager
def asked(place: LiveServer, hook: AdmissionHook, kind: str, **changes: Any) -> Iterator[None]:
    with configured(place, configuration(kind, hook.webhook("v.ref.io", "/v", **changes))):
        yield


def create(widgets: Collection, name: str = "x", query: str = "", **members: Any) -> Answer:
    return widgets.request("POST", query, widgets.obj(name, **members))


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
        ({"message": 'é "q"\nline'}, 400, ': é "q"\nline', None),
    ],
)
def test_a_denial_speaks_with_the_webhooks_words_and_code(
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


def test_warnings_are_told_with_success_and_with_denial(
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
FAILED = "failed to call webhook: "
INVALID = "received invalid webhook response: "


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


def failed(answer: Answer) -> str:
    """Why the call failed, of an answer that has upstream's shape."""
    told = answer.json
    opening = 'failed calling webhook "v.ref.io": '
    assert answer.status == told["code"] == 500
    assert told["reason"] == "InternalError"
    message: str = told["message"]
    assert message.startswith(f"Internal error occurred: {opening}")
    cause: str = told["details"]["causes"][0]["message"]
    assert cause == message.removeprefix("Internal error occurred: ")
    return cause.removeprefix(opening)


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
def test_a_body_that_is_no_answer_fails_the_request_or_is_passed_over(
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


def test_v1beta1_is_not_asked_for_uid_and_kind(
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


# Patches ------------------------------------------------------------------------------------------


def _patch(value: Any) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


PATCH_FAULTS: dict[str, tuple[Object, str]] = {
    "no type": (
        {"patch": _patch([])},
        f"{INVALID}webhook returned response.patch but not response.patchType",
    ),
    "type alone": (
        {"patchType": "JSONPatch"},
        f"{INVALID}webhook returned response.patchType but not response.patch",
    ),
    "empty type": (
        {"patchType": "", "patch": _patch([])},
        f'{INVALID}webhook returned invalid response.patchType of ""',
    ),
    "other type": (
        {"patchType": "MergePatch", "patch": _patch([])},
        'unsupported patch type "MergePatch"',
    ),
    "not base64": (
        {"patchType": "JSONPatch", "patch": "?"},
        f"{FAILED}illegal base64 data at input byte 0",
    ),
    "not a list": (
        {"patchType": "JSONPatch", "patch": _patch({})},
        "received undecodable patch in webhook response: json: cannot unmarshal object into Go "
        "value of type jsonpatch.Patch",
    ),
}


@pytest.mark.parametrize("case", PATCH_FAULTS)
def test_a_patch_that_cannot_be_read_fails_the_call(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, case: str
) -> None:
    response, text = PATCH_FAULTS[case]
    hook.says["/v"] = lambda request: allowing(**response)
    with asked(place, hook, "Mutating"):
        assert failed(create(widgets)) == text
    with asked(place, hook, "Mutating", failurePolicy="Ignore"):
        assert create(widgets).status == 201


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (
            {"op": "remove", "path": "/spec/nope"},
            "error in remove for path: '/spec/nope': Unable to remove nonexistent key: nope: "
            "missing value",
        ),
        (
            {"op": "add", "path": "/spec/m/k", "value": "x"},
            'add operation does not apply: doc is missing path: "/spec/m/k": missing value',
        ),
        (
            {"op": "test", "path": "/spec/a", "value": "other"},
            "testing value /spec/a failed: test failed",
        ),
        ({"op": "frob", "path": "/spec/a"}, "Unexpected kind: frob"),
    ],
)
def test_a_patch_that_does_not_apply_fails_the_request_whatever_the_policy(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, operation: Object, text: str
) -> None:
    hook.says["/v"] = lambda request: patching(operation)
    with asked(place, hook, "Mutating", failurePolicy="Ignore"):
        answer = create(widgets, spec={"a": "x"})

    assert answer.status == 500
    assert answer.json["message"] == f"Internal error occurred: {text}"
    assert answer.json["details"]["causes"][0]["message"] == text


@pytest.mark.parametrize("patch", [[], None])
def test_an_empty_patch_is_none_also_of_a_delete(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, patch: Any
) -> None:
    response = allowing(patchType="JSONPatch", patch=_patch(patch))
    hook.says["/v"] = lambda request: response
    with asked(place, hook, "Mutating"):
        assert create(widgets).status == 201
        assert widgets.delete("x").status == 200


def test_a_delete_may_not_be_patched(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    widgets.create("x")
    hook.says["/v"] = lambda request: patching(adding("/spec/a", "y"))
    with asked(place, hook, "Mutating"):
        answer = widgets.delete("x")

    assert answer.status == 500
    assert answer.json["message"] == (
        'Internal error occurred: admission webhook "v.ref.io" attempted to modify the object, '
        "which is not supported for this operation"
    )
    assert widgets.request("GET", "/x").status == 200


def test_a_denial_ignores_its_patch_and_success_its_status(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    with asked(place, hook, "Mutating"):
        hook.says["/v"] = lambda request: {**patching(adding("/no/such", 1)), "allowed": False}
        assert create(widgets).status == 400
        hook.says["/v"] = lambda request: allowing(status={"message": "fine", "code": 500})
        assert create(widgets).status == 201
