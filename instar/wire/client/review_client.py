"""Posts reviews to a webhook that a kubeconfig names, or to a cluster; retries temporary failures.

The webhook authorizer, the ImagePolicyWebhook plugin and the authenticator and authorizer of a main
cluster (``server/cluster_home``) call it. These callers write the review and decide what a failure
means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from instar.base.errors import ApiError, Timeout
from instar.base.json_values import Object
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import load_access

_ATTEMPTS, _FIRST_PAUSE, _FACTOR = 5, 0.5, 1.5
_TIMEOUT = 30.0
Measure = Callable[[str, float], None]
"""Receives the HTTP code of a call, and its seconds."""


class ReviewClient:
    """One webhook or cluster, called up to five times with growing pauses."""

    def __init__(
        self,
        client: Client,
        first_pause: float = _FIRST_PAUSE,
        *,
        path: str = "",
        within: float | None = None,
        measure: Measure | None = None,
    ) -> None:
        """``path`` is added to the server's address. ``within`` limits all attempts of one review
        together, in seconds; None leaves the limit of each attempt."""
        self._client, self._first_pause = client, first_pause
        self._path, self._within, self._measure = path, within, measure

    @classmethod
    def of(
        cls, kubeconfig: Path, user_agent: str, first_pause: float = _FIRST_PAUSE
    ) -> ReviewClient:
        """Raises ``KubeconfigError`` for a file that cannot be used."""
        access = load_access(kubeconfig)
        return cls(Client(access, timeout=_TIMEOUT, user_agent=user_agent), first_pause)

    async def close(self) -> None:
        await self._client.close()

    async def post(self, review: Object) -> Object:
        """Return the review of the response. Raises the ``ApiError`` of the last attempt."""
        # In a new task: the request may run without one, and the HTTP client needs one.
        return await asyncio.get_running_loop().create_task(self._posted_in_time(review))

    async def _posted_in_time(self, review: Object) -> Object:
        try:
            async with asyncio.timeout(self._within):
                return await self._posted(review)
        except TimeoutError:
            server = self._client.access.server
            text = f"POST {server}{self._path}: no answer within {self._within:g} s"
            raise Timeout(text) from None

    async def _posted(self, review: Object) -> Object:
        pause = self._first_pause
        for attempt in range(_ATTEMPTS):
            try:
                return await self._measured(review)
            except ApiError as error:
                if not error.retryable or attempt == _ATTEMPTS - 1:
                    raise
            await asyncio.sleep(pause)
            pause *= _FACTOR
        raise AssertionError("the last attempt answers or raises")

    async def _measured(self, review: Object) -> Object:
        began, code = monotonic(), "<error>"
        try:
            answer = await self._client.post(self._path, review)
            code = "201"
            return answer
        except ApiError as error:
            code = str(error.code)
            raise
        finally:
            if self._measure is not None:
                self._measure(code, monotonic() - began)
