"""Webhooks and policies that the fuzzer installs, and the server that answers for its webhooks.

The path of a call says how it is answered, so that a case that is kept means the same again.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

import trustme

from tests.fuzz import mutation
from tests.fuzz.case import Case, request
from tests.fuzz.material import CRDS, GROUP, SAMPLE, Material, sample_crd
from tests.fuzz.mutation import TOKENS
from tests.fuzz.placeholders import AUTHORITY, PORT, TOKEN
from tests.support.faults import ANSWER_FAULTS, HTTP_FAULTS, reply

HOOKED = "hooked"
"""The namespace whose requests meet the fuzzer's webhooks and policies."""
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
COLLECTIONS = tuple(
    f"{ADMISSION}/{plural}"
    for plural in (
        "validatingwebhookconfigurations", "mutatingwebhookconfigurations",
        "validatingadmissionpolicies", "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
    )
)  # fmt: skip
_WHERE = {"matchLabels": {"kubernetes.io/metadata.name": HOOKED}}
_RULE = {"operations": ["*"], "apiGroups": ["", GROUP], "apiVersions": ["*"], "resources": ["*"],
         "scope": "Namespaced"}  # fmt: skip
_TOO_LONG = ("endless", "stalled")  # a second of a thread each, and nothing new after the first
_PATCHES: dict[str, Any] = {
    "none": [], "not_a_list": {"a": 1}, "text": "x", "null": None,
    "kind": [{"op": "replace", "path": "/kind", "value": "Secret"}],
    "name": [{"op": "replace", "path": "/metadata/name", "value": "other"}],
    "namespace": [{"op": "replace", "path": "/metadata/namespace", "value": "default"}],
    "gone": [{"op": "remove", "path": "/metadata"}], "root": [{"op": "replace", "path": "",
                                                               "value": [1]}],
    "huge": [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 2_000_000}}],
    "deep": [{"op": "add", "path": "/spec", "value": json.loads("[" * 200 + "]" * 200)}],
    "copies": [{"op": "copy", "from": "/metadata", "path": f"/x{n}"} for n in range(2000)],
    "owners": [{"op": "add", "path": "/metadata/ownerReferences", "value": [
        {"apiVersion": "v1", "kind": "A", "name": "a", "uid": str(n)} for n in range(3000)]}],
    "managed": [{"op": "add", "path": "/metadata/managedFields", "value": [{"fieldsV1": [1]}]}],
    "revision": [{"op": "add", "path": "/metadata/resourceVersion", "value": "x"}],
    "number": [{"op": "add", "path": "/spec/replicas", "value": 10**30}],
}  # fmt: skip
_ADMISSION_ANSWERS: dict[str, Any] = {
    "deny": {"allowed": False, "status": {"message": "x" * 100_000, "code": 99}},
    "status_is_text": {"allowed": False, "status": "no"},
    "code_is_large": {"allowed": False, "status": {"code": 10**12, "reason": 5}},
    "warnings": {"allowed": True, "warnings": ["w\r\nX: y", "\x00", "é" * 5000, 5]},
    "many_warnings": {"allowed": True, "warnings": ["w" * 200] * 500},
    "annotations": {"allowed": True, "auditAnnotations": {"a b": "x", "k": 5, "": "y" * 300}},
    "allowed_is_text": {"allowed": "yes"}, "nothing": {},
}  # fmt: skip
FAULTS = (*(name for name in HTTP_FAULTS if name not in _TOO_LONG), *ANSWER_FAULTS, *_PATCHES,
          *_ADMISSION_ANSWERS, "grow", "good")  # fmt: skip


class HookServer:
    """Answers ConversionReviews and AdmissionReviews, wrongly in the way that the path names."""

    def __init__(self) -> None:
        authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        self._server = _Server(context)
        while self._server.server_address[1] < 10_000:  # five digits, as the placeholder has
            self._server.server_close()
            self._server = _Server(context)
        self.port = str(self._server.server_address[1]).encode()
        self.authority = base64.b64encode(authority.cert_pem.bytes().ljust(1500, b"\n"))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._context = context

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        connection.settimeout(20)
        wrapped = self._context.wrap_socket(
            connection, server_side=True, do_handshake_on_connect=False
        )
        return wrapped, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A server that hangs up is part of many cases."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.path.partition("?")[0].rpartition("/")[2]
        if fault in HTTP_FAULTS:
            HTTP_FAULTS[fault](self)
            return
        review = json.loads(body)
        converts = review["kind"] == "ConversionReview"
        answer = _converted(review, fault) if converts else _admitted(review, fault)
        reply(self, 200, json.dumps(answer).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def _converted(review: Any, fault: str) -> Any:
    asked = review["request"]
    made = [{**obj, "apiVersion": asked["desiredAPIVersion"]} for obj in asked["objects"]]
    if fault == "grow":
        made = [{**obj, "spec": {"free": {"x": ["y" * 1000] * 5000}}} for obj in made]
    response = {"uid": asked["uid"], "convertedObjects": made, "result": {"status": "Success"}}
    names = {"apiVersion": review["apiVersion"], "kind": review["kind"]}
    answer = {**names, "response": response}
    return ANSWER_FAULTS[fault](answer) if fault in ANSWER_FAULTS and made else answer


def _admitted(review: Any, fault: str) -> Any:
    response: Any = {"uid": review["request"]["uid"], "allowed": True}
    if fault in _PATCHES:
        text = json.dumps(_PATCHES[fault]).encode()
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(text).decode()}
    if fault in _ADMISSION_ANSWERS:
        response = {"uid": response["uid"], **_ADMISSION_ANSWERS[fault]}
    if fault == "wrong_uid":
        response["uid"] = "other"
    names = {"apiVersion": review["apiVersion"], "kind": review["kind"]}
    return {**names, "response": response}


class Hooks:
    """Cases that install webhooks, policies and converters, and requests that meet them."""

    def __init__(self, material: Material) -> None:
        self._material = material

    def case(self, chance: Random) -> Case:
        step = chance.randrange(20)
        if step < 3:
            return self._configuration(chance)
        if step < 6:
            return self._policy(chance)
        if step == 6:
            return self._converter(chance)
        if step == 7:
            return _sent("DELETE", f"{chance.choice(COLLECTIONS)}/fuzz{chance.randrange(3)}", None)
        return self._met(chance)

    def _configuration(self, chance: Random) -> Case:
        sort = chance.choice(("Validating", "Mutating"))
        url = f"https://127.0.0.1:{PORT}/admit/{chance.choice(FAULTS)}"
        hook: Any = {
            "name": "a.fuzz.example.com",
            "clientConfig": {"url": url, "caBundle": AUTHORITY},
            "rules": [_RULE], "namespaceSelector": _WHERE, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
            "failurePolicy": chance.choice(("Ignore", "Fail")),
        }  # fmt: skip
        if chance.random() < 0.4:
            hook["matchConditions"] = [{"name": "c", "expression": self._rule(chance)}]
        if sort == "Mutating" and chance.random() < 0.5:
            hook["reinvocationPolicy"] = "IfNeeded"
        obj: Any = {"webhooks": [hook]}
        return self._installed(chance, f"{sort}WebhookConfiguration", obj)

    def _policy(self, chance: Random) -> Case:
        sort = chance.choice(("Validating", "Mutating"))
        name = f"fuzz{chance.randrange(3)}"
        if chance.random() < 0.4:
            spec: Any = {"policyName": name}
            if sort == "Validating":
                spec["validationActions"] = chance.choice((["Deny"], ["Warn", "Audit"]))
            return self._installed(chance, f"{sort}AdmissionPolicyBinding", {"spec": spec})
        spec = {
            "failurePolicy": chance.choice(("Ignore", "Fail")),
            "matchConstraints": {"namespaceSelector": _WHERE, "resourceRules": [_RULE]},
            "variables": [{"name": "v", "expression": self._rule(chance)}],
        }
        if sort == "Validating":
            spec["validations"] = [
                {"expression": self._rule(chance), "messageExpression": self._rule(chance)}
            ]
            spec["auditAnnotations"] = [{"key": "k", "valueExpression": self._rule(chance)}]
        else:
            spec |= {"reinvocationPolicy": "IfNeeded", "mutations": [self._mutation(chance)]}
        return self._installed(chance, f"{sort}AdmissionPolicy", {"spec": spec})

    def _mutation(self, chance: Random) -> Any:
        text = chance.choice(_MUTATIONS)
        if chance.random() < 0.5:
            text = mutation.text(chance, text, TOKENS["cel"], 3000)
        if text.startswith("["):
            return {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
        configuration = {"expression": text}
        return {"patchType": "ApplyConfiguration", "applyConfiguration": configuration}

    def _rule(self, chance: Random) -> str:
        text = chance.choice(self._material.rules).replace("self", "object")
        if chance.random() < 0.6:
            text = mutation.text(chance, text, TOKENS["cel"], 2000)
        return text.replace("oldSelf", "oldObject")

    def _installed(self, chance: Random, kind: str, obj: Any) -> Case:
        plural = kind.lower() + "s" if not kind.endswith("y") else kind.lower()[:-1] + "ies"
        name = f"fuzz{chance.randrange(3)}"
        names = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind}
        obj = {**names, "metadata": {"name": name}, **obj}
        target = f"{ADMISSION}/{plural}/{name}?fieldManager=fuzz&force=true"
        return _sent("PATCH", target, obj, "application/apply-patch+yaml")

    def _converter(self, chance: Random) -> Case:
        crd = sample_crd("hookeds", "Hooked")
        url = f"https://127.0.0.1:{PORT}/convert/{chance.choice(FAULTS)}"
        client = {"url": url, "caBundle": AUTHORITY}
        webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        target = f"{CRDS}/{crd['metadata']['name']}?fieldManager=fuzz&force=true"
        return _sent("PATCH", target, crd, "application/apply-patch+yaml")

    def _met(self, chance: Random) -> Case:
        """A request in the namespace that is hooked, or of the kind that is converted."""
        version = chance.choice(("v1", "v2"))
        names = {"name": chance.choice("abc"), "namespace": HOOKED}
        kind = chance.choice(("Hooked", "Sample", "ConfigMap"))
        obj = {**SAMPLE, "apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": names}
        path = f"/apis/{GROUP}/{version}/namespaces/{HOOKED}/{kind.lower()}s"
        if kind == "ConfigMap":
            obj = {"apiVersion": "v1", "kind": kind, "metadata": names, "data": {"a": "b"}}
            path = f"/api/v1/namespaces/{HOOKED}/configmaps"
        if chance.random() < 0.4:
            obj = mutation.value(chance, obj, [SAMPLE])
        where = f"{path}/{names['name']}"
        match chance.randrange(7):
            case 0 | 1 | 2:
                return _sent("POST", path, obj)
            case 3:
                return _sent("PUT", where, obj)
            case 4:
                media = "application/apply-patch+yaml"
                return _sent("PATCH", f"{where}?fieldManager=m&force=true", obj, media)
            case 5:
                return _sent("DELETE", where, None)
        return _sent("GET", chance.choice((path, where)), None)


_MUTATIONS = (
    "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
    "Object{spec: Object.spec{replicas: 5}}",
    "Object{metadata: Object.metadata{annotations: {'a': variables.v ? 'x' : 'y'}}}",
    "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]",
    "[JSONPatch{op: 'test', path: '/spec', value: object.spec}]",
    "[JSONPatch{op: 'copy', from: '/metadata', path: '/spec'}]",
    "[1, 2, 3].map(i, JSONPatch{op: 'add', path: '/data/' + string(i), value: 'x'})",
    "[JSONPatch{op: 'replace', path: '/' + jsonpatch.escapeKey('a/b'), value: object}]",
)  # fmt: skip


def _sent(method: str, target: str, value: Any, media: str = "application/json") -> Case:
    headers = [("Host", "x"), ("Authorization", f"Bearer {TOKEN.decode()}")]
    if value is not None:
        headers.append(("Content-Type", media))
    body = None if value is None else json.dumps(value).encode("utf-8", "surrogatepass")
    return Case(request(method, target, headers, body))
