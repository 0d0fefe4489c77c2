"""The webhook that conversions and admission of the scenarios call: what it answers depends on
the path and on the request alone, so it answers the recorder and the tests alike.

``/convert/NAME``: a converter of ``CONVERTERS``, or a fault of ``tests/support/faults.py``.
``/admit/NAME``: an answer of ``ADMISSIONS``, or a fault.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from instar.base.json_values import Object
from tests.support.faults import ANSWER_FAULTS, HTTP_FAULTS, reply
from tests.support.webhook import Webhook, relabel, sent_path


def _renamed(obj: Object, api_version: str) -> Object:
    """v1 has ``spec.size``, v2 ``spec.replicas`` and a label with the old version."""
    out: Object = json.loads(json.dumps({**obj, "apiVersion": api_version}))
    spec = out.get("spec")
    if isinstance(spec, dict):
        old, new = ("size", "replicas") if api_version.endswith("v2") else ("replicas", "size")
        if old in spec:
            spec[new] = spec.pop(old)
    return out


def _labelling(obj: Object, api_version: str) -> Object:
    out = _renamed(obj, api_version)
    metadata = out.setdefault("metadata", {})
    metadata["labels"] = {**metadata.get("labels", {}), "served": api_version.rpartition("/")[2]}
    metadata["annotations"] = {**metadata.get("annotations", {}), "from": obj["apiVersion"]}
    return out


def _refusing(obj: Object, api_version: str) -> Object:
    if str(obj.get("metadata", {}).get("name", "")).startswith("bad"):
        raise ValueError(f"{obj['metadata']['name']} has no {api_version.rpartition('/')[2]}")
    return _renamed(obj, api_version)


CONVERTERS: dict[str, Callable[[Object, str], Object]] = {
    "relabel": relabel,
    "rename": _renamed,
    "label": _labelling,
    "refuse": _refusing,
}


def _patch(*operations: Object) -> Object:
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def _no(**status: Any) -> Object:
    return {"allowed": False, "status": status}


def _add(path: str, value: Any) -> Object:
    return {"op": "add", "path": path, "value": value}


ADMISSIONS: dict[str, Callable[[Object], Any]] = {
    "allow": lambda request: {"allowed": True},
    "warn": lambda request: {"allowed": True, "warnings": ["first warning", "second, \"quoted\""]},
    "long-warn": lambda request: {"allowed": True, "warnings": ["w" * 300, "x" * 3000]},
    "deny": lambda request: {"allowed": False},
    "deny-message": lambda request: _no(message="not on my watch"),
    "deny-reason": lambda request: _no(message="taken", reason="Conflict", code=409),
    "deny-code": lambda request: _no(message="slow down", code=429),
    "deny-reason-only": lambda request: _no(reason="OutOfPaper"),
    "deny-details": lambda request: _no(
        message="bad field", reason="Invalid", code=422,
        details={"causes": [{"reason": "FieldValueInvalid", "message": "m", "field": "spec.a"}]},
    ),
    "deny-code-200": lambda request: _no(message="odd", code=200),
    "echo": lambda request: _no(message=_told(request)),
    "label": lambda request: _patch(_add("/metadata/labels", {"hooked": "yes"})),
    "spec": lambda request: _patch(_add("/spec/a", "patched")),
    "append": lambda request: _patch(
        _add("/spec/a", str(request["object"].get("spec", {}).get("a", "")) + "+")
    ),
    "unknown-field": lambda request: _patch(_add("/spec/unknown", 1)),
    "invalid-value": lambda request: _patch(_add("/spec/n", "text")),
    "rename": lambda request: _patch({"op": "replace", "path": "/metadata/name", "value": "other"}),
    "bad-pointer": lambda request: _patch({"op": "replace", "path": "/spec/none/x", "value": 1}),
    "failing-test": lambda request: _patch({"op": "test", "path": "/kind", "value": "Other"}),
    "empty-patch": lambda request: _patch(),
    "patch-no-type": lambda request: {"allowed": True, "patch": _patch(_add("/a", 1))["patch"]},
    "patch-bad-type": lambda request: {**_patch(_add("/a", 1)), "patchType": "Merge"},
    "type-no-patch": lambda request: {"allowed": True, "patchType": "JSONPatch"},
    "patch-not-json": lambda request: {
        "allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(b"{").decode(),
    },
    "audit": lambda request: {"allowed": True, "auditAnnotations": {"a": "b"}},
    "wrong-uid": lambda request: {"allowed": True, "uid": "other"},
}  # fmt: skip


def _told(request: Object) -> str:
    """What an AdmissionRequest says besides the objects, in one line."""
    out = {key: each for key, each in request.items() if key not in ("uid", "userInfo")}
    for key in ("object", "oldObject"):
        if isinstance(out.get(key), dict):
            metadata = out[key].get("metadata") or {}
            left = {name: metadata[name] for name in ("name", "labels") if name in metadata}
            out[key] = {"spec": out[key].get("spec"), "metadata": left}
    return json.dumps(out, sort_keys=True, separators=(",", ":"))


class RecordingHook(Webhook):
    """Serves every scenario of a run."""

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        review = json.loads(body)
        _, what, name = sent_path(handler).partition("?")[0].split("/", 2)
        if name in HTTP_FAULTS:
            HTTP_FAULTS[name](handler)
        elif what == "convert":
            answer: Any = self._converted(review, CONVERTERS.get(name, relabel))
            answer = ANSWER_FAULTS[name](answer) if name in ANSWER_FAULTS else answer
            reply(handler, 200, json.dumps(answer).encode())
        else:
            request = review["request"]
            response = {"uid": request["uid"], **ADMISSIONS[name](request)}
            kept = {key: review[key] for key in ("kind", "apiVersion")}
            reply(handler, 200, json.dumps({**kept, "response": response}).encode())

    def _converted(self, review: Object, convert: Callable[[Object, str], Object]) -> Object:
        request = review["request"]
        response: Object = {"uid": request["uid"], "result": {"status": "Success"}}
        try:
            wanted = request["desiredAPIVersion"]
            response["convertedObjects"] = [convert(each, wanted) for each in request["objects"]]
        except ValueError as error:
            response["result"] = {"status": "Failure", "message": str(error)}
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
