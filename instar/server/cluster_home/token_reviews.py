"""Authenticator of bearer tokens of the main cluster: asks it with a TokenReview.

``home.py`` adds it to the server's token authenticators. Accepted and refused tokens are cached for
ten seconds, and requests with the same token share one call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from time import monotonic
from typing import Any

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.base.single_flight import SingleFlight
from instar.kube.access.attributes import User
from instar.server.identity.client_certificates import with_authenticated
from instar.server.identity.tokens import KEPT_SECONDS, Audiences, Identified, TokenRejected
from instar.wire.client.review_client import ReviewClient

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
_MOST_KEPT = 4096
_Answer = Identified | TokenRejected


class ReviewedTokens:
    """Tokens that the main cluster knows."""

    def __init__(self, client: ReviewClient, clock: Callable[[], float] = monotonic) -> None:
        self._client, self._clock = client, clock
        self._kept: dict[bytes, tuple[_Answer, float]] = {}
        self._calls = SingleFlight()

    async def identify(self, token: str, audiences: Audiences) -> Identified | None:
        """The main cluster decides by its own audiences. Raises ``TokenRejected``."""
        key = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        answer = self._known(key)
        if answer is None:
            answer = await self._calls.once(key, lambda: self._ask(key, token))
        if isinstance(answer, TokenRejected):
            raise TokenRejected(str(answer))
        return answer._replace(audiences=answer.audiences or audiences)

    def _known(self, key: bytes) -> _Answer | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        answer, until = kept
        left = until - self._clock()
        if left <= 0:
            return None
        return answer if isinstance(answer, TokenRejected) else answer._replace(seconds=left)

    async def _ask(self, key: bytes, token: str) -> _Answer:
        try:
            review = await self._client.post(_review(token))
        except ApiError as error:
            return TokenRejected(f"the main cluster did not review the token: {error.message}")
        answer = _answer(review)
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[key] = answer, self._clock() + KEPT_SECONDS
        return answer


def _review(token: str) -> Object:
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "metadata": {},
        "spec": {"token": token},
    }


def _answer(review: Object) -> _Answer:
    status = _object(review.get("status"))
    user = _object(status.get("user"))
    name = user.get("username")
    if status.get("authenticated") is not True or not isinstance(name, str) or not name:
        return TokenRejected(str(status.get("error") or "unknown token"))
    extra = {str(key): _texts(values) for key, values in _object(user.get("extra")).items()}
    found = User(
        name,
        with_authenticated(name, _texts(user.get("groups"))),
        str(user.get("uid") or ""),
        extra,
    )
    return Identified(found, _texts(status.get("audiences")))


def _object(value: Any) -> Object:
    return value if isinstance(value, dict) else {}


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in values) if isinstance(values, list) else ()
