"""Patches a webhook may send, and those that fail the call or the request."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from instar.base.json_values import Object
from tests.admission.support import FAILED, INVALID, asked, create, failed
from tests.rest.support import Collection
from tests.support.admission import AdmissionHook, adding, allowing, patching
from tests.support.server import LiveServer


@pytest.fixture(autouse=True)
def _nothing_is_left(place: LiveServer, widgets: Collection) -> Iterator[None]:
    yield
    widgets.request("DELETE")


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
