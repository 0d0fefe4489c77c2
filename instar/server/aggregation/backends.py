"""Connections to backends: TLS as the APIService says, dialled by its Service, kept for reuse.

``proxy.py`` takes connections for requests of clients; ``availability.py`` and the fetchers of
discovery and OpenAPI get documents, bounded in time and size.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from instar.base.supervision import rest
from instar.kube.access.attributes import User
from instar.server.aggregation.backend_connection import (
    BackendConnection,
    BackendFailed,
    ResponseHead,
    open_connection,
)
from instar.server.aggregation.request_head import InvalidHeader, request_head
from instar.server.aggregation.routes import BackendService
from instar.server.aggregation.service_endpoints import ServiceObjects, ServiceRouting
from instar.wire.webhooks.dialer import Dialer, address_text
from instar.wire.webhooks.failure import CallFailed
from instar.wire.webhooks.https import ClientCertificate, tls_context
from instar.wire.webhooks.resolver import HostPort, ServiceResolver

_IDLE_SECONDS = 90.0
_MOST_IDLE = 64
"""Idle connections of one backend."""
_LOOK_SECONDS = 30.0
_TRIES = 3
"""Connections tried for a request without a body, if kept ones turn out to be dead."""


class FetchedDocument(NamedTuple):
    """A discovery or OpenAPI document as a backend sent it."""

    status: int
    content_type: str
    etag: str
    body: bytes


class BackendPool:
    """Connections to one backend."""

    def __init__(
        self,
        backend: BackendService,
        routing: ServiceRouting,
        objects: ServiceObjects,
        certificate: ClientCertificate | None,
    ) -> None:
        self.backend = backend
        self._routing, self._objects = routing, objects
        self._certificate = certificate
        self._context: ssl.SSLContext | None = None
        self._dialer = Dialer(None, ServiceResolver())
        self._idle: dict[HostPort, list[BackendConnection]] = {}
        self._open: set[BackendConnection] = set()
        self._closed = False

    def resolve(self) -> HostPort:
        """The address to dial now. Raises ``Unroutable``."""
        return self._routing.resolve(self.backend, self._objects)

    async def begin(
        self, target: HostPort, head: bytes, *, bodiless: bool = False
    ) -> tuple[BackendConnection, ResponseHead]:
        """Send a request that has no body and may be repeated, and wait for the head of its
        response. Raises ``BackendFailed``."""
        for _ in range(_TRIES):
            connection = self.take(target)
            if connection is None:
                break
            try:
                return connection, await connection.exchange(head, bodiless=bodiless)
            except BackendFailed as error:
                if error.begun:
                    raise
        connection = await self.connect(target)
        return connection, await connection.exchange(head, bodiless=bodiless)

    async def connect(self, target: HostPort) -> BackendConnection:
        """Open a connection. Raises ``BackendFailed``."""
        name = self.backend.server_name
        connection = await open_connection(self._dialer, target, name, self._tls)
        self._open.add(connection)
        connection.on_lost = self._lost
        return connection

    def give_back(self, target: HostPort, connection: BackendConnection) -> None:
        """Keep the connection for another request if it can serve one."""
        idle = self._idle.setdefault(target, [])
        if self._closed or not connection.reusable or len(idle) >= _MOST_IDLE:
            connection.abort()
            return
        connection.idle_since = asyncio.get_running_loop().time()
        idle.append(connection)

    async def fetch(
        self,
        path: str,
        user: User,
        headers: Mapping[str, str],
        *,
        seconds: float,
        most_bytes: int,
    ) -> FetchedDocument:
        """GET a document of the backend. Raises ``BackendFailed`` and ``Unroutable``."""
        target = self.resolve()
        try:
            head = request_head(path, address_text(*target), user, headers)
        except InvalidHeader as error:
            raise BackendFailed(str(error)) from error
        try:
            async with asyncio.timeout(seconds):
                connection, answer = await self.begin(target, head)
                return await self._collect(connection, answer, target, most_bytes)
        except TimeoutError as error:
            told = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            raise BackendFailed(told) from error

    async def _collect(
        self, connection: BackendConnection, answer: ResponseHead, target: HostPort, most: int
    ) -> FetchedDocument:
        if answer.first(b"content-encoding"):
            connection.abort()
            raise BackendFailed("the response is compressed, which was not asked for", begun=True)
        collected = _Collected(most)
        try:
            connection.attach(collected)
            body = await collected.whole
        except BaseException:
            connection.abort()
            raise
        self.give_back(target, connection)
        return FetchedDocument(
            answer.status,
            answer.first(b"content-type").decode("latin-1"),
            answer.first(b"etag").decode("latin-1"),
            body,
        )

    def close_idle(self, *, before: float | None = None) -> None:
        """Close idle connections: all of them, or those that were last used before a time."""
        for target, idle in list(self._idle.items()):
            kept = [] if before is None else [one for one in idle if one.idle_since > before]
            for connection in set(idle) - set(kept):
                connection.abort()
            self._idle[target] = kept
            if not kept:
                del self._idle[target]

    def sweep(self) -> None:
        self.close_idle(before=asyncio.get_running_loop().time() - _IDLE_SECONDS)

    def close(self) -> None:
        """Close every connection, also those in use."""
        self._closed = True
        for connection in tuple(self._open):
            connection.abort()
        self._idle.clear()

    def retire(self) -> None:
        """Open no more connections for reuse; those in use finish their request."""
        self._closed = True
        self.close_idle()

    def take(self, target: HostPort) -> BackendConnection | None:
        """An idle connection, which the caller gives back or aborts."""
        idle = self._idle.get(target, [])
        while idle:
            connection = idle.pop()
            if connection.reusable:
                return connection
        return None

    def _lost(self, connection: BackendConnection) -> None:
        self._open.discard(connection)
        for idle in self._idle.values():
            if connection in idle:
                idle.remove(connection)

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = _context(self.backend, self._certificate)
        return self._context


class _Collected:
    """Sink of a document that is held whole, within a limit."""

    def __init__(self, most: int) -> None:
        self.whole: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._most, self._size = most, 0
        self._pieces: list[bytes] = []

    def take(self, data: bytes) -> bool:
        self._size += len(data)
        if self._size > self._most:
            self.broken(BackendFailed(f"the response is larger than {self._most} bytes"))
            return False
        self._pieces.append(data)
        return True

    def end(self) -> None:
        if not self.whole.done():
            self.whole.set_result(b"".join(self._pieces))

    def broken(self, error: Exception) -> None:
        if not self.whole.done():
            self.whole.set_exception(error)


def _context(backend: BackendService, certificate: ClientCertificate | None) -> ssl.SSLContext:
    """Raises ``BackendFailed`` for a caBundle or client certificate that cannot be used."""
    try:
        context = tls_context(backend.ca_bundle, certificate)
    except CallFailed as error:
        raise BackendFailed(error.text) from error
    if backend.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


def _content(certificate: ClientCertificate | None) -> bytes:
    """The files of a certificate; empty while one is missing because it is being replaced."""
    try:
        return b"".join(Path(name).read_bytes() for name in certificate or ())
    except OSError:
        return b""


class Backends:
    """The pools of all backends; those that no route names any more are dropped."""

    def __init__(
        self,
        routing: ServiceRouting,
        objects: ServiceObjects,
        certificate: ClientCertificate | None,
    ) -> None:
        self.routing, self.objects = routing, objects
        self._certificate = certificate
        self._shown = _content(certificate)
        self._pools: dict[BackendService, BackendPool] = {}

    def pool(self, backend: BackendService) -> BackendPool:
        found = self._pools.get(backend)
        if found is None:
            found = self._pools[backend] = BackendPool(
                backend, self.routing, self.objects, self._certificate
            )
        return found

    def keep_only(self, backends: set[BackendService]) -> None:
        for backend in set(self._pools) - backends:
            self._pools.pop(backend).retire()

    async def run(self) -> None:
        """Close connections that were idle for long, and follow the files of the client
        certificate."""
        while True:
            await rest(_LOOK_SECONDS)
            for pool in self._pools.values():
                pool.sweep()
            self.look_at_certificate()

    def look_at_certificate(self) -> bool:
        """Use a changed client certificate for new connections; return whether it has changed."""
        now = _content(self._certificate)
        if now == self._shown or not now:
            return False
        self._shown = now
        for pool in self._pools.values():
            pool.retire()
        self._pools.clear()
        return True

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()
