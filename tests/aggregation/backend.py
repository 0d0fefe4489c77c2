"""A TLS server that stands behind an APIService and does what a test tells it: bytes, as they are.

It records each request whole. ``script`` gets the request and the connection and writes what the
client shall get: a response, half of one, nothing at all, garbage.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import trustme

PATIENCE = 20.0
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass
class Arrived:
    """One request as it arrived."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    peer: str
    """Common name of the client certificate."""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def all(self, name: str) -> list[str]:
        return [value for each, value in self.headers if each.lower() == name.lower()]

    def one(self, name: str) -> str | None:
        found = self.all(name)
        return found[0] if found else None


class Wire:
    """The connection on which a request came."""

    def __init__(self, connection: socket.socket, reader: Any) -> None:
        self.connection, self.reader = connection, reader

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def reply(
        self, status: int, body: Any = b"", kind: str = "application/json", **headers: str
    ) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(data)}"]
        if kind:
            lines.append(f"Content-Type: {kind}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + data)

    def cut(self) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)


Script = Callable[[Arrived, Wire], None]


def discovery(arrived: Arrived, wire: Wire) -> None:
    """A backend of the group version in the path that serves one kind, ``things``."""
    parts = arrived.path.strip("/").split("/")
    if parts == ["apis"]:
        wire.reply(404, {})
    elif len(parts) == 3:
        wire.reply(200, resource_list(parts[1], parts[2]))
    else:
        wire.reply(404, b"404 page not found", "text/plain")


def resource_list(group: str, version: str) -> dict[str, Any]:
    thing = {
        "name": "things",
        "singularName": "thing",
        "namespaced": True,
        "kind": "Thing",
        "verbs": ["get", "list", "watch", "create", "delete", "deletecollection"],
    }
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}",
        "resources": [thing],
    }


class Backend:
    """Listens until the end of the ``with`` block."""

    def __init__(
        self,
        script: Script = discovery,
        *,
        name: str = "echo.default.svc",
        port: int = 0,
        authority: trustme.CA | None = None,
        tls: bool = True,
    ) -> None:
        self.script = script
        self.requests: list[Arrived] = []
        self.authority = authority or trustme.CA()
        self._arrived = threading.Condition()
        self._open: list[socket.socket] = []
        self._stopped = False
        self._tls: ssl.SSLContext | None = None
        if tls:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.authority.issue_cert(name).configure_cert(self._tls)
            self.names: list[str | None] = []
            self._tls.sni_callback = lambda _, asked, __: self.names.append(asked)
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.authority.cert_pem.bytes()).decode()

    def trust(self, client_ca: bytes) -> None:
        """Ask clients for a certificate by this CA."""
        assert self._tls is not None
        self._tls.load_verify_locations(cadata=client_ca.decode())
        self._tls.verify_mode = ssl.CERT_OPTIONAL

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopped = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()

    def hang_up(self) -> None:
        for connection in [*self._open]:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def wait_for(self, wanted: Callable[[list[Arrived]], Any]) -> Any:
        """What ``wanted`` makes of the requests so far, once that is true."""
        with self._arrived:
            found = self._arrived.wait_for(lambda: wanted(self.requests), PATIENCE)
        assert found, [one.target for one in self.requests]
        return found

    def last(self, path: str) -> Arrived:
        """The last request to a path; waits for the first."""
        found: Arrived = self.wait_for(
            lambda came: next((one for one in reversed(came) if one.path == path), None)
        )
        return found

    def _accept(self) -> None:
        while not self._stopped:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        self._open.append(connection)
        with suppress(OSError, ValueError, AttributeError):  # it may be closed meanwhile
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            self._open.append(connection)
            with connection.makefile("rb") as reader:
                while (arrived := _read(reader, connection)) is not None:
                    with self._arrived:
                        self.requests.append(arrived)
                        self._arrived.notify_all()
                    self.script(arrived, Wire(connection, reader))
        connection.close()


def _read(reader: Any, connection: socket.socket) -> Arrived | None:
    line = reader.readline()
    if not line:
        return None
    method, target, _ = line.decode("latin-1").split(" ")
    headers = []
    while (line := reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name, value.strip()))
    arrived = Arrived(method, target, headers, b"", _peer(connection))
    if arrived.one("Transfer-Encoding") == "chunked":
        arrived.body = _chunked(reader)
    else:
        arrived.body = reader.read(int(arrived.one("Content-Length") or 0))
    return arrived


def _chunked(reader: Any) -> bytes:
    body = b""
    while size := int(reader.readline(), 16):
        body += reader.read(size)
        reader.readline()
    reader.readline()
    return body


def _peer(connection: socket.socket) -> str:
    if not isinstance(connection, ssl.SSLSocket):
        return ""
    shown = connection.getpeercert() or {}
    subject: Any = shown.get("subject", ())
    return next((value for part in subject for name, value in part if name == "commonName"), "")
