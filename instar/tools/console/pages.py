"""Routes everything under ``/console``: session, sign-in, API, and static pages; renders errors.

Called by ``routing.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from instar import __version__
from instar.base.errors import ApiError, MethodNotAllowed, NotFound, Unauthorized
from instar.base.json_values import Object
from instar.kube.access.attributes import User
from instar.server.http.compress import compress
from instar.server.http.messages import Request, Response
from instar.server.rest.deadlines import too_late
from instar.server.rest.error_responses import problem, render_error, unexpected
from instar.tools.console.assets import Assets
from instar.tools.console.authentication import NotSignedIn, Visitor, Visitors
from instar.tools.console.hosts.host import Host
from instar.tools.console.json_body import body_of
from instar.tools.console.lazy_future import LazyFuture
from instar.tools.console.oidc import OidcSignIn, SignInFailed, check_nonce
from instar.tools.console.origin_checks import is_of_our_page
from instar.tools.console.security_headers import add_security_headers, inert, json_answer, redirect
from instar.tools.console.views.own_identity import review_own_identity

if TYPE_CHECKING:
    from instar.tools.console.api import Api

_READS = ("GET", "HEAD")


class Console:
    """Serves ``/console``: assets, sessions, sign-in and the console's API."""

    def __init__(
        self,
        host: Host,
        visitors: Visitors,
        assets: Assets,
        load_api: Callable[[], Api],
        clock: Callable[[], float],
        oidc: OidcSignIn | None = None,
    ) -> None:
        self._oidc = oidc
        self._api = LazyFuture(load_api)
        self._host = host
        self._visitors = visitors
        self._assets = assets
        self._clock = clock

    async def answer(self, request: Request, peer: User | None) -> Response:
        """Answer a request under ``/console``."""
        response = await self._with_rendered_errors(request, self._routed(request, peer))
        await compress(request, response)
        return add_security_headers(response)

    async def pass_on(self, request: Request, peer: User | None) -> Response:
        """Forward a request of the page to the API, with the visitor's credentials."""

        return inert(await self._with_rendered_errors(request, self._passed_on(request, peer)))

    async def _passed_on(self, request: Request, peer: User | None) -> Response:
        try:
            visitor = self._visitors.of(request, peer)
        except NotSignedIn:
            if is_of_our_page(request):
                raise
            return await self._host.without_session(request, peer)
        return await self._host.pass_on(visitor, request)

    async def _with_rendered_errors(self, request: Request, answering: Any) -> Response:
        try:
            response: Response = await answering
        except ApiError as error:
            return await render_error(error, request)
        except asyncio.CancelledError:
            if not request.expired:
                raise
            return problem(too_late(request), request)
        except Exception as error:
            return unexpected(error, request)
        return response

    async def _routed(self, request: Request, peer: User | None) -> Response:
        path = request.path.removeprefix("/console")
        if not path:
            return redirect(308, "/console/")
        match path.strip("/").split("/"):
            case ["session"]:
                return await self._session(request, peer)
            case ["login", "oidc", *rest]:
                return await self._login(request, rest)
            case ["api", *rest]:
                client = self._host.client(self._visitors.of(request, peer), request)
                if request.method not in _READS:
                    # some views make no cluster request, so check the visitor first
                    await review_own_identity(client)
                api = await self._api()
                return await api.respond(request, rest, client)
        if request.method not in _READS:
            raise MethodNotAllowed("pages can only be read", details={})
        self._api.begin()  # a browser that loads the page will call the API next
        return self._assets.respond(request, path.removeprefix("/"))

    # --- sessions ------------------------------------------------------------------------

    async def _session(self, request: Request, peer: User | None) -> Response:
        if request.method in _READS:
            return json_answer(200, await self._status(request, peer))
        self._visitors.check(request)
        if request.method == "POST":
            return await self._sign_in(request)
        if request.method == "DELETE":
            anonymous = self._anonymous_status(request, "NotSignedIn")
            return json_answer(200, anonymous, self._visitors.end())
        raise MethodNotAllowed("a session can be read, begun and ended", details={})

    async def _status(self, request: Request, peer: User | None) -> Object:
        try:
            visitor = self._visitors.of(request, peer)
            return await self._identity_of(visitor, request)
        except NotSignedIn as error:
            return self._anonymous_status(request, error.why)
        except Unauthorized:
            return self._anonymous_status(request, "CredentialRefused")

    async def _sign_in(self, request: Request) -> Response:
        session = self._host.sign_in(body_of(request), self._clock())
        shown = f"Bearer {session.token}".encode() if session.token else None
        visitor = Visitor(session.how, shown, expires=session.expires)
        try:
            document = await self._identity_of(visitor, request)
        except Unauthorized:
            raise NotSignedIn("CredentialRefused") from None
        return json_answer(201, document, self._visitors.begin(session))

    async def _login(self, request: Request, rest: list[str]) -> Response:
        """Handle sign-in at the issuer and the callback; failures redirect to a page."""
        if self._oidc is None or rest not in ([], ["callback"]) or request.method != "GET":
            raise NotFound("OIDC sign-in is not configured", details={})
        try:
            if not rest:
                place, cookies = await self._oidc.start(request)
                return redirect(303, place, cookies)
            session, nonce, place = await self._oidc.finish(request)
            visitor = Visitor(session.how, f"Bearer {session.token}".encode())
            await self._identity_of(visitor, request)
            check_nonce(session, nonce)
        except Unauthorized:
            return self._failed("the server does not take the issuer's token", self._oidc)
        except SignInFailed as error:
            return self._failed(str(error), self._oidc)
        return redirect(303, place, [*self._visitors.begin(session), *self._oidc.forget()])

    def _failed(self, why: str, oidc: OidcSignIn) -> Response:
        place = f"/console/?signin=failed#why={quote(why, safe='')}"
        return redirect(303, place, oidc.forget())

    async def _identity_of(self, visitor: Visitor, request: Request) -> Object:
        """Return the visitor's identity. Raises ``ApiError`` if the cluster rejects the
        credentials, or does not answer."""
        client = self._host.client(visitor, request)
        user = await review_own_identity(client)
        version = await client.get("/version")
        expires = visitor.expires
        return {
            "authenticated": True,
            "user": user,
            "how": visitor.how,
            "expires": None if expires is None else _moment(expires),
            **self._place(request, str(version.get("gitVersion", ""))),
        }

    def _anonymous_status(self, request: Request, why: str) -> Object:
        known = {"authenticated": False, "user": None, "how": None, "expires": None, "why": why}
        return {**known, **self._place(request, "")}

    def _place(self, request: Request, version: str) -> Object:
        server = {
            **self._host.server(request),
            "version": version,
            "instar": "+instar." in version,
        }
        return {
            "mode": self._host.mode,
            "console": __version__,
            "server": server,
            "login": self._host.login(),
        }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
