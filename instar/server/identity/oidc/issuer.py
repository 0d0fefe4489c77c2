"""A trusted issuer: fetches its keys, keeps them fresh, and verifies its tokens.

``trusted_issuers.py`` has one for each configured issuer. Users are made from claims in
``claims.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from instar.base.field_errors import go_quote
from instar.base.supervision import SupervisedTask, Supervision, rest
from instar.server.identity import jwt
from instar.server.identity.jwt import Jwt, seconds_of, text_of, texts_of
from instar.server.identity.keys import InvalidKey, VerifyingKey, keys_of_jwks
from instar.server.identity.oidc.claims import Claims
from instar.server.identity.oidc.config import TrustedIssuer
from instar.server.identity.tokens import (
    KEPT_SECONDS,
    Audiences,
    Identified,
    TokenRejected,
    matching_audiences,
)

log = logging.getLogger(__name__)
_RETRY_SECONDS = 10.0
_LEAST_SECONDS, _MOST_SECONDS = 10.0, 3600.0
"""Bounds for how long keys are fresh; an unknown key is not fetched before that."""
_BACKGROUND_SECONDS = 300.0
"""Between two refreshes while no token has an unknown key."""
_LEEWAY = 60.0
_GOOGLE = ("accounts.google.com", "https://accounts.google.com")


class Fetched(NamedTuple):
    """A response of an issuer: a discovery document or its keys."""

    body: bytes
    max_age: float | None
    """Seconds the response may be cached, by its ``Cache-Control``."""


class FetchFailed(Exception):
    """A document could not be fetched; ``str()`` is the reason."""


Fetch = Callable[[str], Awaitable[Fetched]]


class Keys:
    """The keys of an issuer: found by its discovery document, refreshed in the background and
    when a token is signed with an unknown key."""

    def __init__(self, issuer: TrustedIssuer, fetch: Fetch, clock: Callable[[], float]) -> None:
        self._issuer, self._fetch, self._clock = issuer, fetch, clock
        self._uri = ""
        self._keys: list[VerifyingKey] = []
        self._fresh_until = 0.0
        self._fetching = asyncio.Lock()
        self.found = asyncio.Event()
        """Set as soon as tokens can be verified."""

    async def run(self) -> None:
        """Refresh the keys until cancelled."""
        while True:
            try:
                if not self._uri:
                    self._uri = await self._discover()
                await self._refresh()
                pause = max(self._fresh_until - self._clock(), _BACKGROUND_SECONDS)
            except (FetchFailed, InvalidKey, ValueError) as error:
                log.warning("tokens of %s cannot be verified: %s", self._issuer.url, error)
                pause = _RETRY_SECONDS
            await rest(pause)

    async def verified(self, token: Jwt) -> bool:
        if any(key.verifies(token) for key in self._candidates(token)):
            return True
        if self._clock() < self._fresh_until:
            return False
        with contextlib.suppress(FetchFailed, InvalidKey, ValueError):
            await self._refresh()
        return any(key.verifies(token) for key in self._candidates(token))

    def _candidates(self, token: Jwt) -> list[VerifyingKey]:
        wanted = token.key_id
        return [key for key in self._keys if not wanted or key.id == wanted]

    async def _discover(self) -> str:
        own = f"{self._issuer.url.rstrip('/')}/.well-known/openid-configuration"
        document = _object((await self._fetch(self._issuer.discovery_url or own)).body)
        if document.get("issuer") != self._issuer.url:
            raise FetchFailed(
                f"its discovery document is of another issuer: {text_of(document.get('issuer'))}"
            )
        uri = text_of(document.get("jwks_uri"))
        if not uri.startswith("https://"):
            raise FetchFailed("its discovery document has no https jwks_uri")
        return uri

    async def _refresh(self) -> None:
        before = self._fresh_until
        async with self._fetching:
            if self._fresh_until != before:
                return  # another request has just refreshed them
            fetched = await self._fetch(self._uri)
            self._keys = keys_of_jwks(_object(fetched.body))
            kept = fetched.max_age if fetched.max_age is not None else 0.0
            wait = min(max(kept, _LEAST_SECONDS), _MOST_SECONDS)
            self._fresh_until = self._clock() + wait
            self.found.set()


def _object(body: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise FetchFailed("its answer is no JSON") from error
    if not isinstance(document, dict):
        raise FetchFailed("its answer is no JSON object")
    return document


class OidcIssuer:
    """A ``TokenAuthenticator`` for the tokens of one issuer."""

    def __init__(
        self,
        issuer: TrustedIssuer,
        claims: Claims,
        keys: Keys,
        api_audiences: Audiences,
        now: Callable[[], float],
    ) -> None:
        self._issuer, self._claims, self.keys = issuer, claims, keys
        self._api_audiences = api_audiences
        self._now = now
        self._kept: SupervisedTask | None = None

    def start(self, supervision: Supervision) -> None:
        self._kept = supervision.keep("oidc-keys", self.keys.run)

    async def stop(self) -> None:
        if self._kept is not None:
            await self._kept.stop()

    async def identify(self, token: str, audiences: Audiences) -> Identified | None:
        shown = jwt.read(token)
        if shown is None or not self._is_ours(shown.issuer):
            return None
        common = matching_audiences(self._api_audiences, audiences)
        if not common:
            return None
        if not self.keys.found.is_set():
            raise TokenRejected("oidc: authenticator not initialized")
        await self._verify(shown)
        left = self._check_claims(shown.claims)
        user = self._claims.user_of(shown.claims)
        return Identified(user, common, min(KEPT_SECONDS, left))

    def _is_ours(self, issuer: str) -> bool:
        return issuer == self._issuer.url or (issuer, self._issuer.url) == _GOOGLE

    async def _verify(self, shown: Jwt) -> None:
        if shown.algorithm not in self._issuer.algorithms:
            known = " ".join(map(go_quote, self._issuer.algorithms))
            raise TokenRejected(
                "oidc: verify token: oidc: id token signed with unsupported algorithm, expected "
                f"[{known}] got {go_quote(shown.algorithm)}"
            )
        if not await self.keys.verified(shown):
            raise TokenRejected(
                "oidc: verify token: failed to verify signature: failed to verify id token "
                "signature"
            )

    def _check_claims(self, claims: dict[str, Any]) -> float:
        """Check audience and times. Returns the seconds for which the token is still valid."""
        start, now = "oidc: verify token: oidc:", self._now()
        given = texts_of(claims.get("aud"))
        if not matching_audiences(given, self._issuer.audiences):
            wanted = " ".join(map(go_quote, self._issuer.audiences))
            got = " ".join(map(go_quote, given))
            raise TokenRejected(f"{start} expected audience in [{wanted}] got [{got}]")
        expires, begins = seconds_of(claims.get("exp")), seconds_of(claims.get("nbf"))
        if expires is None or expires <= now:
            raise TokenRejected(
                f"{start} token is expired (Token Expiry: {_time_text(expires or 0.0)})"
            )
        if begins is not None and begins > now + _LEEWAY:
            raise TokenRejected(
                f"{start} current time {_time_text(now)} before the nbf (not before) time: "
                f"{_time_text(begins)}"
            )
        return expires - now


def _time_text(moment: float) -> str:
    try:
        return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
    except (OverflowError, ValueError, OSError):
        return "out of range"
