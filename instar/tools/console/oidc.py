"""OIDC sign-in of the console: authorization code flow with PKCE, without server-side state.

Called by ``pages.py``. The state that the callback needs is in an encrypted cookie, which is valid
for ten minutes. The ID token becomes the session's bearer token, which the server validates by its
``--oidc-…`` flags.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from instar.base.text_files import read_text
from instar.server.http.messages import Request
from instar.server.identity import jwt
from instar.server.identity.oidc.http_fetch import fetcher, poster
from instar.server.identity.oidc.issuer import FetchFailed
from instar.tools.console.cookies import join_cookie, read_cookies, set_cookies
from instar.tools.console.sessions import Ended, NoSession, Sealer, Session, session_of
from instar.tools.console.settings import OidcSettings

PURPOSE = b"instar console sign-in 1"
START, CALLBACK = "/console/login/oidc", "/console/login/oidc/callback"
_COOKIE = "__Host-instar-console-login"
_SECONDS = 600
_FRESH_SECONDS = 3600.0
_LONGEST_NEXT = 2048
_AT_ONCE = 4
"""Concurrent requests to the issuer; each occupies a thread."""


class SignInFailed(Exception):
    """Sign-in failed; ``str()`` is shown to the user."""


class Endpoints(NamedTuple):
    """URLs of an issuer from its discovery document."""

    authorization: str
    token: str


class OidcSignIn:
    """Signs a browser in by the authorization code flow of an OIDC issuer."""

    def __init__(self, settings: OidcSettings, sealer: Sealer, clock: Callable[[], float]) -> None:
        """Read the CA and secret files. Raises ``OSError`` and ``ValueError``."""
        self._settings = settings
        self._sealer = sealer
        self._clock = clock
        authority = "" if settings.authority is None else read_text(settings.authority)
        self._secret = "" if settings.secret is None else read_text(settings.secret).strip()
        self._fetch, self._post = fetcher(authority), poster(authority)
        self._asking = 0
        self._endpoints: Endpoints | None = None
        self._fresh_until = 0.0

    def offer(self) -> dict[str, Any]:
        return {"issuer": self._settings.issuer, "start": START}

    async def start(self, request: Request) -> tuple[str, list[str]]:
        """Return the issuer URL to redirect to, and cookies. Raises ``SignInFailed``."""
        found = await self._discover()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        question = {
            "response_type": "code",
            "client_id": self._settings.client,
            "redirect_uri": _back(request),
            "scope": self._settings.scopes,
            "state": state,
            "nonce": nonce,
            "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
        }
        kept = {
            "state": state,
            "nonce": nonce,
            "verifier": verifier,
            "next": next_page(request.one("next")),
            "expires": self._clock() + _SECONDS,
        }
        joint = "&" if "?" in found.authorization else "?"
        return f"{found.authorization}{joint}{urlencode(question)}", self._cookie(
            self._sealer.seal(kept), _SECONDS
        )

    async def finish(self, request: Request) -> tuple[Session, str, str]:
        """Return the session, the expected nonce, and the page to go to. Raises
        ``SignInFailed``."""
        kept = self._login_state(request)
        if not hmac.compare_digest(kept["state"].encode(), request.one("state").encode()):
            raise SignInFailed("the answer belongs to another sign-in; try again")
        if request.one("error"):
            told = request.one("error_description") or request.one("error")
            raise SignInFailed(f"the issuer refused: {told[:300]}")
        code = request.one("code")
        if not code:
            raise SignInFailed("the issuer sent no code")
        token = await self._exchange_code(request, code, kept["verifier"])
        return session_of("oidc", token, self._clock()), kept["nonce"], kept["next"]

    def forget(self) -> list[str]:
        return self._cookie("", 0)

    def _login_state(self, request: Request) -> dict[str, Any]:
        sealed = join_cookie(read_cookies(request.all_of(b"cookie")), _COOKIE)
        try:
            return self._sealer.open(sealed, self._clock())
        except (NoSession, Ended):
            raise SignInFailed("it took too long, or began in another browser; try again") from None

    async def _exchange_code(self, request: Request, code: str, verifier: str) -> str:
        """Exchange a code for the ID token."""
        found = await self._discover()
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": _back(request),
            "client_id": self._settings.client,
            "code_verifier": verifier,
        }
        headers = {"Accept": "application/json"}
        if self._secret:
            pair = f"{quote(self._settings.client)}:{quote(self._secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        try:
            with self._limited():
                answer = orjson.loads(await self._post(found.token, fields, headers))
        except FetchFailed as error:
            raise SignInFailed(f"the issuer gives no token: {error}") from error
        except orjson.JSONDecodeError as error:
            raise SignInFailed("the issuer's answer is not JSON") from error
        token = answer.get("id_token") if isinstance(answer, dict) else None
        if not isinstance(token, str) or jwt.read(token) is None:
            raise SignInFailed("the issuer sent no ID token")
        return token

    async def _discover(self) -> Endpoints:
        """Return the endpoints of the discovery document, cached for an hour."""
        if self._endpoints is not None and self._clock() < self._fresh_until:
            return self._endpoints
        url = f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            with self._limited():
                document = orjson.loads((await self._fetch(url)).body)
        except FetchFailed as error:
            raise SignInFailed(f"the issuer cannot be reached: {error}") from error
        except orjson.JSONDecodeError as error:
            raise SignInFailed("the issuer's discovery document is not JSON") from error
        self._endpoints = _endpoints(document, self._settings.issuer)
        self._fresh_until = self._clock() + _FRESH_SECONDS
        return self._endpoints

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Limit concurrent sign-ins: any browser may start one, and the issuer may be slow."""
        if self._asking >= _AT_ONCE:
            raise SignInFailed("too many are signing in at this moment; try again")
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1

    def _cookie(self, value: str, seconds: int) -> list[str]:
        """Return the cookie, SameSite=Lax because the issuer redirects from another site."""
        return set_cookies(_COOKIE, value, seconds, secure=True, same_site="Lax")


def check_nonce(session: Session, nonce: str) -> None:
    """Check that the token was issued for this sign-in."""
    shown = jwt.read(session.token)
    if shown is None or jwt.text_of(shown.claims.get("nonce")) != nonce:
        raise SignInFailed("the token was made for another sign-in; try again")


def next_page(text: str) -> str:
    """Return a path of the console only, to prevent open redirects."""
    plain = text.isascii() and text.isprintable() and len(text) <= _LONGEST_NEXT
    inside = text.startswith("/console/") and "\\" not in text
    return text if plain and inside else "/console/"


def _endpoints(document: Any, issuer: str) -> Endpoints:
    shown = document if isinstance(document, dict) else {}
    if shown.get("issuer") != issuer:
        raise SignInFailed(f"the issuer calls itself {str(shown.get('issuer'))[:200]}")
    places = [shown.get(name) for name in ("authorization_endpoint", "token_endpoint")]
    if not all(isinstance(place, str) and place.startswith("https://") for place in places):
        raise SignInFailed("the issuer's discovery document names no endpoints")
    return Endpoints(str(places[0]), str(places[1]))


def _challenge(verifier: str) -> str:
    return jwt.encode_base64url(hashlib.sha256(verifier.encode()).digest())


def _back(request: Request) -> str:
    return f"https://{request.header(b'host')}{CALLBACK}"
