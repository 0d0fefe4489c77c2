"""A real conversion webhook over TLS in a thread, which counts what it is asked and can misbehave.

    with Webhook(convert=my_function) as hook:
        crd["spec"]["conversion"] = hook.conversion()
        hook.fault = "wrong_uid"

``fault`` is a name from ``faults.py``. ``pause()`` makes calls hang until ``resume()``, and
``entered`` counts calls that have arrived, so tests wait for events instead of sleeping.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import trustme

from instar.base.json_values import Object
from tests.support.faults import ANSWER_FAULTS, HTTP_FAULTS, reply

Convert = Callable[[Object, str], Any]
"""(object, desired apiVersion) -> the converted object."""

PATIENCE = 10.0


def relabel(obj: Object, api_version: str) -> Object:
    """Conversion without a change of fields."""
    return {**obj, "apiVersion": api_version}


@dataclass(frozen=True)
class Call:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def review(self) -> dict[str, Any]:
        review: dict[str, Any] = json.loads(self.body)
        return review


def sent_path(handler: BaseHTTPRequestHandler) -> str:
    """Return the request target as it came: ``handler.path`` folds slashes at its beginning."""
    return handler.requestline.split(" ")[1]


class Webhook:
    def __init__(
        self,
        convert: Convert = relabel,
        *,
        hosts: Sequence[str] = ("127.0.0.1", "localhost"),
        authority: trustme.CA | None = None,
        client_authority: trustme.CA | None = None,
        plain_http: bool = False,
        expires: datetime | None = None,
    ) -> None:
        self.convert = convert
        self.fault: str | None = None
        self.retry_after: list[str] = []
        """Each entry is one 503 with that Retry-After before good answers begin."""
        self.calls: list[Call] = []
        self.connections = 0
        self.authority = authority or trustme.CA()
        self._tls = None if plain_http else self._server_tls(hosts, client_authority, expires)
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._open = threading.Event()
        self._open.set()
        self._sockets: list[socket.socket] = []
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.resume()
        self._server.shutdown()
        self._thread.join(PATIENCE)
        self._server.server_close()
        self.close_connections()

    def close_connections(self) -> None:
        """Hang up on everyone, as a restarted webhook does."""
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for connection in sockets:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
            finally:
                connection.close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/convert"

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.authority.cert_pem.bytes()).decode()

    @property
    def reviews(self) -> int:
        return len(self.calls)

    @property
    def objects(self) -> int:
        return sum(len(call.review["request"]["objects"]) for call in self.calls)

    def conversion(self, versions: Sequence[str] = ("v1",)) -> dict[str, Any]:
        """``spec.conversion`` of a CRD that uses this webhook."""
        config = {"url": self.url, "caBundle": self.ca_bundle}
        webhook = {"conversionReviewVersions": list(versions), "clientConfig": config}
        return {"strategy": "Webhook", "webhook": webhook}

    def reset(self) -> None:
        self.fault = None
        self.calls.clear()

    def pause(self) -> None:
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    def wait_for_calls(self, count: int) -> None:
        """Returns when ``count`` calls have arrived in all (answered or not)."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: len(self.calls) >= count, PATIENCE):
                raise AssertionError(f"{len(self.calls)} calls arrived, expected {count}")

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        with self._arrived:
            self.calls.append(Call(sent_path(handler), dict(handler.headers), body))
            self._arrived.notify_all()
        self._open.wait(PATIENCE)
        if self.retry_after:
            reply(handler, 503, b"later", "text/plain", Retry_After=self.retry_after.pop(0))
            return
        if self.fault in HTTP_FAULTS:
            HTTP_FAULTS[self.fault](handler)
            return
        answer = self._answer(json.loads(body))
        if self.fault is not None:
            answer = ANSWER_FAULTS[self.fault](answer)
        reply(handler, 200, json.dumps(answer).encode())

    def accepted(self, connection: socket.socket) -> socket.socket:
        with self._lock:
            self.connections += 1
        if self._tls is not None:
            connection = self._tls.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        with self._lock:
            self._sockets.append(connection)
        return connection

    def _answer(self, review: dict[str, Any]) -> dict[str, Any]:
        request = review["request"]
        wanted = request["desiredAPIVersion"]
        response: dict[str, Any] = {"uid": request["uid"], "result": {"status": "Success"}}
        try:
            response["convertedObjects"] = [self.convert(o, wanted) for o in request["objects"]]
        except Exception as error:
            response["result"] = {"status": "Failure", "message": str(error)}
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

    def _server_tls(
        self,
        hosts: Sequence[str],
        client_authority: trustme.CA | None,
        expires: datetime | None,
    ) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(*hosts, not_after=expires).configure_cert(context)
        if client_authority is not None:
            client_authority.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, webhook: Webhook) -> None:
        super().__init__(("127.0.0.1", 0), _handler(webhook))
        self._webhook = webhook

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        return self._webhook.accepted(connection), address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up or distrusts us is part of many tests."""


def _handler(webhook: Webhook) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            webhook.handle(self, self.rfile.read(int(self.headers["Content-Length"])))

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    return Handler
