"""Bearer tokens: tries the token authenticators in turn, and caches the result for ten seconds.

``access/authentication.py`` calls it for requests, ``access/reviews.py`` for TokenReviews. The
authenticators are here (static tokens), in ``issuer.py``, ``legacy_tokens.py`` and
``bootstrap_tokens.py``, and in ``oidc``.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import NamedTuple, Protocol

from instar.kube.access.attributes import User

Audiences = tuple[str, ...]
KEPT_SECONDS = 10.0
_MOST_KEPT = 4096
"""Cached results; at this number the cache is emptied."""
_LONGEST = 8192
"""Longest token with a cached result, in characters."""
_INVALID_TEXT = "invalid bearer token"


class TokenNotes(NamedTuple):
    """What an authenticator has to say about a token besides its user."""

    warnings: tuple[str, ...] = ()
    """Texts of ``Warning`` headers."""
    annotations: tuple[tuple[str, str], ...] = ()
    """Annotations of the request's audit event."""


NO_NOTES = TokenNotes()


class TokenRejected(Exception):
    """An authenticator is responsible for the token and rejects it; the text is for logs."""

    def __init__(self, text: str, notes: TokenNotes = NO_NOTES) -> None:
        super().__init__(text)
        self.notes = notes


class Identified(NamedTuple):
    """The user of a token, and the audiences it is valid for."""

    user: User
    audiences: Audiences
    """Those of the requested audiences that the token is for."""
    seconds: float = KEPT_SECONDS
    """How long the result may be cached."""
    notes: TokenNotes = NO_NOTES


class TokenAuthenticator(Protocol):
    """One way to authenticate bearer tokens."""

    async def identify(self, token: str, audiences: Audiences) -> Identified | None:
        """None for a token of another authenticator. Raises ``TokenRejected``."""
        ...


class StaticTokens:
    """Tokens from a file, valid for every audience of the API itself."""

    def __init__(self, tokens: Mapping[str, User], audiences: Audiences) -> None:
        self._tokens = {token.encode(): user for token, user in tokens.items()}
        self._audiences = audiences

    async def identify(self, token: str, audiences: Audiences) -> Identified | None:
        common = matching_audiences(self._audiences, audiences)
        given = token.encode("utf-8", "surrogatepass")
        found: User | None = None
        for known, user in self._tokens.items():
            # All are compared, in constant time: timing reveals nothing.
            if hmac.compare_digest(known, given):
                found = user
        return Identified(found, common) if found is not None and common else None


def matching_audiences(of: Iterable[str], asked: Audiences) -> Audiences:
    """The requested audiences that are in ``of``."""
    known = set(of)
    return tuple(each for each in asked if each in known)


class Tokens:
    """All token authenticators of a server."""

    def __init__(
        self,
        several: Sequence[TokenAuthenticator],
        audiences: Audiences,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """``audiences`` are those of the API itself."""
        self.audiences = audiences
        self._several = tuple(several)
        self._clock = clock
        self._kept: dict[str, tuple[User, float]] = {}

    def known(self, token: str) -> User | None:
        """The cached user of a token."""
        kept = self._kept.get(token)
        if kept is None:
            return None
        user, until = kept
        if self._clock() < until:
            return user
        del self._kept[token]
        return None

    async def identify(self, token: str) -> Identified:
        """Raises ``TokenRejected``."""
        found = await self.review(token, self.audiences)
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        if len(token) <= _LONGEST and found.seconds:
            self._kept[token] = (found.user, self._clock() + found.seconds)
        return found

    async def review(self, token: str, audiences: Audiences) -> Identified:
        """Authenticate without the cache. Raises ``TokenRejected`` with the texts of all."""
        told: list[str] = []
        annotations: list[tuple[str, str]] = []
        for one in self._several:
            try:
                found = await one.identify(token, audiences)
            except TokenRejected as refused:
                told.append(str(refused))
                annotations += refused.notes.annotations
                continue
            if found is not None:
                return found
        text = f"[{', '.join([_INVALID_TEXT, *told])}]" if told else _INVALID_TEXT
        raise TokenRejected(text, TokenNotes(annotations=tuple(annotations)))

    def forget(self) -> None:
        """Drop the cache: the rules have changed."""
        self._kept.clear()
