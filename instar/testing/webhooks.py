"""A webhook for the length of a ``with`` block: a converter, or a function that judges admission.

It is the other end of what a server calls: HTTPS on a port of its own in a thread, with an
authority made on the spot. ``point_crd`` and ``point_configurations`` tell a server about it, as
envtest does: whatever service a manifest names, the calls come here.
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

from instar.errors import ApiError
from instar.sdk.certificates import Issued, self_signed
from instar.sdk.conversion_reviews import ConversionReviewHandler
from instar.sdk.converter import BuiltConverter, Converter
from instar.sdk.loading import load
from instar.testing.manifests import Source, read_manifests
from instar.testing.serving import Refused, Server

Judge = Callable[[dict[str, Any]], Mapping[str, Any]]
"""An AdmissionReview's ``request`` → its ``response``; ``uid`` is filled in, and a ``patch`` given
as a list of operations is written as the API wants it."""
Handler = str | Converter | BuiltConverter | Judge

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_PLURALS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
_POLL_SECONDS = 0.01


class Webhook:
    def __init__(self, port: int, issued: Issued, reviews: list[dict[str, Any]]) -> None:
        self.url = f"https://127.0.0.1:{port}"
        self.ca_bundle = issued.bundle
        self.reviews = reviews
        """Every review that was asked, oldest first."""

    def client_config(self, path: str = "/") -> dict[str, str]:
        return {"url": f"{self.url}/{path.lstrip('/')}", "caBundle": self.ca_bundle}


@contextlib.contextmanager
def webhook(handler: Handler) -> Iterator[Webhook]:
    """``handler``: ``package.module:converter``, a conversion.yaml, a converter, or a function."""
    answer, reviews = _answering(handler), list[dict[str, Any]]()
    issued = self_signed("127.0.0.1")

    class Post(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with contextlib.suppress(orjson.JSONDecodeError):
                reviews.append(orjson.loads(body))
            code, told = answer(body)
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, format: str, *args: object) -> None:
            return  # a test's output is the test's

    class Listening(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            return  # a client that left, or one that does not trust us

    listening = Listening(("127.0.0.1", 0), Post)
    listening.socket = _context(issued).wrap_socket(listening.socket, server_side=True)
    thread = threading.Thread(
        target=listening.serve_forever, args=(_POLL_SECONDS,), name="instar-webhook", daemon=True
    )
    thread.start()
    try:
        yield Webhook(listening.server_port, issued, reviews)
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


@contextlib.contextmanager
def point_crd(server: Server, hook: Webhook, crd: str) -> Iterator[None]:
    """Conversions of one CRD go to the webhook until the end of the block."""
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
    """The webhook configurations among the manifests, each of their webhooks at our address."""
    found = [one for source in sources for one in read_manifests(source)]
    configurations = [one for one in found if one.get("kind") in _PLURALS]
    if not configurations:
        raise LookupError(f"no webhook configuration in {', '.join(map(str, sources))}")
    for configuration in configurations:
        for each in configuration.get("webhooks") or ():
            service = (each.get("clientConfig") or {}).get("service") or {}
            each["clientConfig"] = hook.client_config(str(service.get("path") or "/"))
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
        raise Refused(what, answer)
    return answer.json


def _context(issued: Issued) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "tls.crt"), Path(folder, "tls.key")
        issued.write(*files)
        context.load_cert_chain(*files)
    return context


def _answering(handler: Handler) -> Callable[[bytes], tuple[int, bytes]]:
    if isinstance(handler, str):
        handler = load(handler)
    if isinstance(handler, Converter):
        handler = handler.build()
    if not isinstance(handler, BuiltConverter):
        return _admission(handler)
    conversions = ConversionReviewHandler([handler])

    def convert(body: bytes) -> tuple[int, bytes]:
        try:
            return 200, conversions.answer(body).body
        except ApiError as error:
            return error.code, orjson.dumps(error.to_status())

    return convert


def _admission(judge: Judge) -> Callable[[bytes], tuple[int, bytes]]:
    def answer(body: bytes) -> tuple[int, bytes]:
        review = orjson.loads(body)
        response = {"uid": review["request"]["uid"], **judge(review["request"])}
        if isinstance(response.get("patch"), list):
            response["patch"] = b64encode(orjson.dumps(response["patch"])).decode()
            response["patchType"] = "JSONPatch"
        return 200, orjson.dumps(
            {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        )

    return answer
