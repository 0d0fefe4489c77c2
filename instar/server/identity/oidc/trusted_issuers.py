"""All trusted issuers of a configuration, which is reloaded when its file changes.

The token chain (``identity/tokens.py``) calls it; ``lifecycle/loaded_settings.py`` starts it. A
wrong file or unreachable new issuers are logged, and the former configuration stays.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from instar.base.field_errors import messages
from instar.base.supervision import SupervisedTask, Supervision, rest
from instar.server.identity.oidc.claims import Claims
from instar.server.identity.oidc.config import (
    AnonymousRules,
    Authentication,
    InvalidAuthentication,
    TrustedIssuer,
)
from instar.server.identity.oidc.http_fetch import fetcher
from instar.server.identity.oidc.issuer import Keys, OidcIssuer
from instar.server.identity.tokens import Audiences, Identified, TokenRejected

log = logging.getLogger(__name__)
_LOOK_SECONDS = 10.0
_PATIENCE = 60.0

Load = Callable[[], Authentication]
"""Reads the configuration from the file. Raises ``ValueError``."""


class TrustedIssuers:
    """The ``TokenAuthenticator`` for all issuers of a configuration."""

    def __init__(
        self,
        first: Authentication,
        audiences: Audiences,
        *,
        load: Load | None = None,
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        """Raises ``ValueError``. ``load`` reads the configuration again; None: it never changes."""
        self._audiences = audiences
        self._load, self._look_seconds = load, look_seconds
        self._config = first
        self._issuers = self._made(first)
        self._watching: SupervisedTask | None = None
        self._supervision = Supervision()
        self.changed: Callable[[], None] = lambda: None
        """Called when the configuration has changed."""

    @property
    def anonymous(self) -> AnonymousRules | None:
        return self._config.anonymous

    def start(self, supervision: Supervision) -> None:
        self._supervision = supervision
        for issuer in self._issuers:
            issuer.start(supervision)
        if self._load is not None:
            self._watching = supervision.keep("authentication-configuration", self._watch)

    async def stop(self) -> None:
        if self._watching is not None:
            await self._watching.stop()
        for issuer in self._issuers:
            await issuer.stop()

    async def identify(self, token: str, audiences: Audiences) -> Identified | None:
        told: list[str] = []
        for issuer in self._issuers:
            try:
                found = await issuer.identify(token, audiences)
            except TokenRejected as refused:
                told.append(str(refused))
                continue
            if found is not None:
                return found
        if told:
            raise TokenRejected(", ".join(told))
        return None

    def _made(self, config: Authentication) -> list[OidcIssuer]:
        return [
            made_issuer(issuer, position, self._audiences)
            for position, issuer in enumerate(config.issuers)
        ]

    async def _watch(self) -> None:
        assert self._load is not None
        told = False
        while True:
            await rest(self._look_seconds)
            try:
                config = await asyncio.to_thread(self._load)
                if config != self._config:
                    await self._take(config)
                told = False
            except ValueError as error:
                if not told:
                    log.error("the authentication configuration stays as it was: %s", error)
                told = True

    async def _take(self, config: Authentication) -> None:
        if config.anonymous != self._config.anonymous:
            raise InvalidAuthentication("anonymous cannot change while the server runs")
        issuers = self._made(config)
        for issuer in issuers:
            issuer.start(self._supervision)
        try:
            async with asyncio.timeout(_PATIENCE):
                for issuer in issuers:
                    await issuer.keys.found.wait()
        except TimeoutError as error:
            await _stop_all(issuers)
            raise InvalidAuthentication(
                "an issuer of the new configuration cannot be reached"
            ) from error
        except asyncio.CancelledError:
            await _stop_all(issuers)
            raise
        former, self._issuers, self._config = self._issuers, issuers, config
        self.changed()
        log.info("the authentication configuration was read again")
        await _stop_all(former)


async def _stop_all(issuers: Sequence[OidcIssuer]) -> None:
    for issuer in issuers:
        await issuer.stop()


def made_issuer(issuer: TrustedIssuer, position: int, audiences: Audiences) -> OidcIssuer:
    """Raises ``InvalidAuthentication`` for invalid expressions and certificates."""
    claims = Claims(issuer)
    if claims.errors:
        raise InvalidAuthentication(f"jwt[{position}]: {messages(claims.errors)}")
    try:
        fetch = fetcher(issuer.authority)
    except ValueError as error:
        raise InvalidAuthentication(
            f"jwt[{position}].issuer.certificateAuthority: {error}"
        ) from error
    keys = Keys(issuer, fetch, time.monotonic)
    return OidcIssuer(issuer, claims, keys, audiences, time.time)
