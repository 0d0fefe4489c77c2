"""Reverse proxy: passes a request on to the backend of its route and streams the response.

``server/app.py`` calls it for authorized requests to a group version with a remote route. Bodies
go through in both directions as they come, at the pace of the slower side; a connection that
changes its protocol becomes a tunnel. The error texts are kube-apiserver's.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from instar.base.errors import Timeout
from instar.kube.api.encoding.json_text import encode
from instar.server.aggregation.backend_connection import (
    BackendConnection,
    BackendFailed,
    ResponseHead,
)
from instar.server.aggregation.backends import BackendPool, Backends
from instar.server.aggregation.proxied_feed import ProxiedFeed, exchange_streamed
from instar.server.aggregation.request_head import (
    Framing,
    InvalidHeader,
    proxied_head,
    response_headers,
)
from instar.server.aggregation.routes import ApiRoute
from instar.server.aggregation.service_endpoints import Unroutable
from instar.server.http.messages import TEXT_TYPE, Header, Request, Response
from instar.server.rest.deadlines import duration
from instar.wire.webhooks.dialer import address_text
from instar.wire.webhooks.resolver import HostPort

log = logging.getLogger(__name__)
_DISCOVERY_SECONDS = 5.0
"""Limit for a path of three segments: a discovery document."""
_SWITCHING_PROTOCOLS = 101
_REPEATABLE = ("GET", "HEAD", "OPTIONS", "TRACE")
_REDIRECTED = b"the backend attempted to redirect this request, which is not permitted"
_CACHE = b"cache-control"


class _Passage(NamedTuple):
    """One request on its way to a backend."""

    request: Request
    route: ApiRoute
    pool: BackendPool
    target: HostPort
    framing: Framing
    head: bytes


class ApiProxy:
    """Passes requests on, and knows which streams are open by which route."""

    def __init__(
        self,
        backends: Backends,
        *,
        request_timeout: float,
        every_answer: tuple[Header, ...] = (),
        refuse_redirects: bool = True,
    ) -> None:
        """``every_answer``: headers of all responses of this server, sent once."""
        self._backends = backends
        self._longest = request_timeout
        self._every_answer = every_answer
        self._refuse_redirects = refuse_redirects
        self._long_running: dict[str, set[ProxiedFeed]] = {}

    async def serve(self, request: Request, route: ApiRoute, audit_id: str) -> Response:
        """The response of the backend, or an error of this server in its place."""
        backend = route.backend
        if backend is None or not route.available:
            return _trouble("service unavailable")
        pool = self._backends.pool(backend)
        try:
            target = pool.resolve()
        except Unroutable as error:
            log.info("%s: cannot resolve %s: %s", route.name, backend.key, error)
            return _trouble("service unavailable")
        framing, user = framing_of(request), request.asked.user
        try:
            head = proxied_head(request, user, address_text(*target), audit_id, framing)
        except InvalidHeader as error:
            return _unreachable(error)
        is_discovery = self._limit(request)
        passage = _Passage(request, route, pool, target, framing, head)
        try:
            return await self._pass_on(passage)
        except BackendFailed as error:
            return (
                _trouble(f"error dialing backend: {error}")
                if framing.upgrade
                else (_unreachable(error))
            )
        except asyncio.CancelledError:
            if not request.expired:
                raise
            return _unreachable("context deadline exceeded") if is_discovery else _too_late()

    def end_streams(self, name: str) -> None:
        """End the watches and tunnels of an APIService: its route has changed."""
        for feed in self._long_running.pop(name, ()):
            feed.cut()

    def close(self) -> None:
        for name in list(self._long_running):
            self.end_streams(name)

    def open_streams(self, name: str) -> int:
        return len(self._long_running.get(name, ()))

    def _limit(self, request: Request) -> bool:
        """Set the deadline; return whether it is that of a discovery document."""
        if request.asked.long_running:
            request.patience = 0.0
            return False
        asked = request.one("timeout") if request.query else ""
        seconds = duration(asked) if asked else 0.0
        request.patience = min(seconds, self._longest) if seconds > 0 else self._longest
        is_discovery = len(request.path.strip("/").split("/")) == 3
        if is_discovery:
            request.patience = min(request.patience, _DISCOVERY_SECONDS)
        return is_discovery

    async def _pass_on(self, passage: _Passage) -> Response:
        request, framing = passage.request, passage.framing
        bodiless = request.method == "HEAD"
        if framing.upgrade:
            connection = await passage.pool.connect(passage.target)
            answer = await self._upload(passage, connection)
            if answer.status < 400 and answer.status != _SWITCHING_PROTOCOLS:
                connection.abort()
                return _trouble(f"invalid upgrade response: status code {answer.status}")
        elif request.incoming is None and request.method in _REPEATABLE and not request.body:
            connection, answer = await passage.pool.begin(
                passage.target, passage.head, bodiless=bodiless
            )
        else:
            connection = passage.pool.take(passage.target) or await passage.pool.connect(
                passage.target
            )
            answer = await self._upload(passage, connection)
        return self._response(passage, connection, answer)

    async def _upload(self, passage: _Passage, connection: BackendConnection) -> ResponseHead:
        chunked = passage.framing.chunked
        return await exchange_streamed(connection, passage.request, passage.head, chunked=chunked)

    def _response(
        self, passage: _Passage, connection: BackendConnection, answer: ResponseHead
    ) -> Response:
        if 300 <= answer.status < 400 and answer.first(b"location") and self._refuse_redirects:
            connection.abort()
            return Response(502, (_REDIRECTED,), [TEXT_TYPE])
        headers = response_headers(answer.headers)
        if answer.status == _SWITCHING_PROTOCOLS:
            upgrade = answer.first(b"upgrade")
            headers += [(b"connection", b"Upgrade"), (b"upgrade", upgrade)]
        names = {name for name, _ in headers}
        headers += [one for one in self._every_answer if one[0] not in names]
        request, route = passage.request, passage.route
        switched = answer.status == _SWITCHING_PROTOCOLS
        feed = ProxiedFeed(
            connection,
            request.incoming,
            seconds=0.0 if switched or not request.patience else request.seconds_left(),
            give_back=lambda: passage.pool.give_back(passage.target, connection),
            closed=lambda: self._forget(route.name, feed),
        )
        if switched or not request.patience:
            self._long_running.setdefault(route.name, set()).add(feed)
        sized = answer.bodiless or switched or b"content-length" in names
        return Response(answer.status, (), headers, stream=feed, bare=True, raw=sized)

    def _forget(self, name: str, feed: ProxiedFeed) -> None:
        feeds = self._long_running.get(name)
        if feeds is not None:
            feeds.discard(feed)
            if not feeds:
                del self._long_running[name]


def framing_of(request: Request) -> Framing:
    """How the body of the request is sent on: as it came, as far as that is known."""
    upgrade = request.headers.get(b"upgrade", b"")
    if upgrade and b"upgrade" in request.headers.get(b"connection", b"").lower():
        return Framing(upgrade=upgrade)
    length = request.headers.get(b"content-length", b"")
    if request.incoming is None:
        sized = bool(request.body) or request.method not in _REPEATABLE
        return Framing(len(request.body)) if sized else Framing()
    return Framing(int(length)) if length.isdigit() else Framing(chunked=True)


def _trouble(text: str) -> Response:
    """kube-apiserver's response to a request that cannot be proxied: plain text, no Status."""
    nosniff = (b"x-content-type-options", b"nosniff")
    return Response(503, (f"{text}\n".encode(),), [TEXT_TYPE, nosniff])


def _unreachable(cause: object) -> Response:
    return _trouble(f"error trying to reach service: {cause}")


def _too_late() -> Response:
    error = Timeout("request did not complete within the allotted timeout", details={})
    status = error.to_status()
    shown = {name: value for name, value in status.items() if name not in ("kind", "apiVersion")}
    return Response(504, (encode(shown) + b"\n",), [TEXT_TYPE])
