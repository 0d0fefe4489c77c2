"""A real admission webhook over TLS, which says what the test says and remembers what it saw.

with AdmissionHook() as hook:
    hook.says["/m"] = lambda request: patching({"op": "add", "path": "/spec/a", "value": "x"})
    server.request("POST", ..., configuration("Mutating", hook.webhook("m.ref.io", "/m")))
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

from instar.base.json_values import Object
from tests.support.faults import HTTP_FAULTS, reply
from tests.support.server import LiveServer
from tests.support.webhook import PATIENCE, Call, Webhook, sent_path

Says = Callable[[Object], Object | bytes | str]
"""An AdmissionRequest → the response but for its uid; bytes are a whole body, a text is the name
of a fault of ``faults.py``."""
GROUP = "/apis/admissionregistration.k8s.io/v1"


def allowing(**more: Any) -> Object:
    return {"allowed": True, **more}


def denying(message: str = "no way", **status: Any) -> Object:
    return {"allowed": False, "status": {"message": message, **status}}


def patching(*operations: Object, **more: Any) -> Object:
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch, **more}


def adding(path: str, value: Any) -> Object:
    return {"op": "add", "path": path, "value": value}


def _allowed(request: Object) -> Object:
    return allowing()


class AdmissionHook(Webhook):
    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.says: dict[str, Says] = {}
        self.wraps: Callable[[Object], Object] = lambda review: review
        """Changes a whole answer."""

    def reset(self) -> None:
        super().reset()
        self.says.clear()
        self.wraps = lambda review: review

    def asked(self, path: str = "") -> list[Object]:
        """The requests of the reviews that came, in order."""
        return [
            call.review["request"]
            for call in self.calls
            if not path or urlsplit(call.path).path == path
        ]

    def order(self) -> list[str]:
        return [urlsplit(call.path).path for call in self.calls]

    def webhook(self, name: str, path: str, **changes: Any) -> Object:
        rule = {
            "operations": ["*"],
            "apiGroups": ["ref.io"],
            "apiVersions": ["*"],
            "resources": ["*/*"],
        }
        config = {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.ca_bundle}
        return {
            "name": name,
            "clientConfig": config,
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **changes,
        }

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        with self._arrived:
            self.calls.append(Call(sent_path(handler), dict(handler.headers), body))
            self._arrived.notify_all()
        self._open.wait(PATIENCE)
        review = json.loads(body)
        said = self.says.get(urlsplit(handler.path).path, _allowed)
        answer = said(review["request"])
        if isinstance(answer, str):
            HTTP_FAULTS[answer](handler)
        elif isinstance(answer, bytes):
            reply(handler, 200, answer)
        else:
            response = {"uid": review["request"]["uid"], **answer}
            whole = {
                "kind": "AdmissionReview",
                "apiVersion": review["apiVersion"],
                "response": response,
            }
            reply(handler, 200, json.dumps(self.wraps(whole)).encode())


def configuration(kind: str, *webhooks: Object, name: str = "test") -> Object:
    """``kind`` is Mutating or Validating."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }


@contextmanager
def configured(server: LiveServer, *configurations: Object) -> Iterator[None]:
    """The configurations while the block runs."""
    paths = []
    try:
        for each in configurations:
            path = f"{GROUP}/{each['kind'].lower()}s"
            answer = server.request("POST", path, each)
            assert answer.status == 201, answer.text
            paths.append(f"{path}/{each['metadata']['name']}")
        yield
    finally:
        for path in paths:
            server.request("DELETE", path)
