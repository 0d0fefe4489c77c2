"""Runs a test webhook for the duration of a ``with`` block: a converter or an admission function.

Used through ``instar.testing`` and by the pytest plugin. The webhook serves HTTPS on a free port,
in a thread, with a CA created for it. ``point_crd`` and ``point_configurations`` make a server call
this webhook, as envtest does, whatever service a manifest names.
"""

from __future__ import annotations

import contextlib
import ssl
import tempfile
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson

from instar.base.errors import ApiError
from instar.tools.sdk.admission import Admission
from instar.tools.sdk.admission_reviews import AdmissionReviewHandler
from instar.tools.sdk.certificates import Issued, self_signed
from instar.tools.sdk.conversion_reviews import ConversionReviewHandler
from instar.tools.sdk.converter import BuiltConverter, Converter
from instar.tools.sdk.loading import load_any
from instar.tools.testing.api_server import ManifestRejected, Server
from instar.tools.testing.manifests import Source, read_manifests

Answering = Callable[[str, bytes], tuple[int, bytes]]
"""Path and body → status and body."""
Judge = Callable[[dict[str, Any]], Mapping[str, Any]]
"""The ``request`` of a review → its ``response``; ``uid`` is filled in, and a ``patch`` given as a
list of operations is encoded."""
Handler = str | Converter | BuiltConverter | Admission | Judge

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_PLURALS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
_POLL_SECONDS = 0.01


class Webhook:
    def __init__(self, port: int, issued: Issued, admission: Admission | None) -> None:
        self.url = f"https://127.0.0.1:{port}"
        self.ca_bundle = issued.bundle
        self.admission = admission
        """The admission handlers, if the webhook has any; they provide its configurations."""
        self.reviews: list[dict[str, Any]] = []
        """Every received review, oldest first."""
        self.paths: list[str] = []
        """The request path of each review."""

    def client_config(self, path: str = "/") -> dict[str, str]:
        return {"url": f"{self.url}/{path.lstrip('/')}", "caBundle": self.ca_bundle}


@contextlib.contextmanager
def webhook(handler: Handler) -> Iterator[Webhook]:
    """Serve a webhook. ``handler``: a converter or an admission, their ``package.module:name``, the
    path of a conversion.yaml, or a function."""
    handler = load_any(handler) if isinstance(handler, str) else handler
    answer, issued = _answering(handler), self_signed("127.0.0.1")
    listening = _Listening(("127.0.0.1", 0), _Post)
    hook = Webhook(
        listening.server_port, issued, handler if isinstance(handler, Admission) else None
    )
    listening.answer, listening.hook = answer, hook
    listening.socket = _context(issued).wrap_socket(listening.socket, server_side=True)
    thread = threading.Thread(
        target=listening.serve_forever, args=(_POLL_SECONDS,), name="instar-webhook", daemon=True
    )
    thread.start()
    try:
        yield hook
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    answer: Answering
    hook: Webhook

    def handle_error(self, request: object, client_address: object) -> None:
        return  # a client that disconnected, or does not trust our CA


class _Post(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listening

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.hook.paths.append(self.path)
        with contextlib.suppress(orjson.JSONDecodeError):
            self.server.hook.reviews.append(orjson.loads(body))
        code, told = self.server.answer(self.path.partition("?")[0], body)
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, format: str, *args: object) -> None:
        return  # keep the test's output clean


@contextlib.contextmanager
def point_crd(server: Server, hook: Webhook, crd: str) -> Iterator[None]:
    """Send conversions of one CRD to the webhook until the end of the block."""
    before = _checked(crd, server, "GET", f"{_CRDS}/{crd}")["spec"].get("conversion")
    conversion = {
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1", "v1beta1"],
            "clientConfig": hook.client_config("/convert"),
        },
    }
    _replace(server, crd, conversion)
    try:
        yield
    finally:
        _replace(server, crd, before or {"strategy": "None"})


@contextlib.contextmanager
def point_configurations(server: Server, hook: Webhook, *sources: Source) -> Iterator[None]:
    """Install the webhook configurations of the manifests, with the test webhook's address."""
    found = [one for source in sources for one in read_manifests(source)]
    configurations = [one for one in found if one.get("kind") in _PLURALS]
    if not configurations:
        raise LookupError(f"no webhook configuration in {', '.join(map(str, sources))}")
    _redirect(configurations, hook)
    with _installed(server, configurations):
        yield


@contextlib.contextmanager
def point_admission(server: Server, hook: Webhook) -> Iterator[None]:
    """Install the configurations of the webhook's own handlers."""
    assert hook.admission is not None
    with _installed(server, hook.admission.configurations(hook.client_config)):
        yield


def _redirect(configurations: list[dict[str, Any]], hook: Webhook) -> None:
    for configuration in configurations:
        for each in configuration.get("webhooks") or ():
            service = (each.get("clientConfig") or {}).get("service") or {}
            each["clientConfig"] = hook.client_config(str(service.get("path") or "/"))


@contextlib.contextmanager
def _installed(server: Server, configurations: list[dict[str, Any]]) -> Iterator[None]:
    server.install(*configurations)
    try:
        yield
    finally:
        for one in configurations:
            name = one["metadata"]["name"]
            server.request("DELETE", f"{_ADMISSION}/{_PLURALS[one['kind']]}/{name}")


def _replace(server: Server, crd: str, conversion: Mapping[str, Any]) -> None:
    body = orjson.dumps([{"op": "add", "path": "/spec/conversion", "value": conversion}])
    kind = "application/json-patch+json"
    _checked(crd, server, "PATCH", f"{_CRDS}/{crd}", body, content_type=kind)


def _checked(what: str, server: Server, *request: Any, **more: Any) -> Any:
    answer = server.request(*request, **more)
    if answer.status >= 400:
        raise ManifestRejected(what, answer)
    return answer.json


def _context(issued: Issued) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "tls.crt"), Path(folder, "tls.key")
        issued.write(*files)
        context.load_cert_chain(*files)
    return context


def _answering(handler: Handler) -> Answering:
    if isinstance(handler, Converter):
        handler = handler.build()
    if isinstance(handler, BuiltConverter):
        conversions = ConversionReviewHandler([handler])
        return _refusing(lambda path, body: conversions.answer(body).body)
    if isinstance(handler, Admission):
        admissions = AdmissionReviewHandler([handler])
        return _refusing(admissions.answer)
    assert callable(handler)
    return _judged(handler)


def _refusing(answer: Callable[[str, bytes], bytes]) -> Answering:
    def answered(path: str, body: bytes) -> tuple[int, bytes]:
        try:
            return 200, answer(path, body)
        except ApiError as error:
            return error.code, orjson.dumps(error.to_status())

    return answered


def _judged(judge: Judge) -> Answering:
    def answer(path: str, body: bytes) -> tuple[int, bytes]:
        review = orjson.loads(body)
        response = {"uid": review["request"]["uid"], **judge(review["request"])}
        if isinstance(response.get("patch"), list):
            response["patch"] = b64encode(orjson.dumps(response["patch"])).decode()
            response["patchType"] = "JSONPatch"
        return 200, orjson.dumps(
            {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        )

    return answer
