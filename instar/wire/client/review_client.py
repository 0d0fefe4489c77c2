"""Posts reviews to a webhook that a kubeconfig names, and retries failures that may be temporary.

The webhook authorizer and the ImagePolicyWebhook plugin call it. These callers write the review and
decide what a failure means.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import load_access

_ATTEMPTS, _FIRST_PAUSE, _FACTOR = 5, 0.5, 1.5
_TIMEOUT = 30.0


class ReviewClient:
    """One webhook, called up to five times with growing pauses."""

    def __init__(self, client: Client, first_pause: float = _FIRST_PAUSE) -> None:
        self._client, self._first_pause = client, first_pause

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
        return await asyncio.get_running_loop().create_task(self._posted(review))

    async def _posted(self, review: Object) -> Object:
        pause = self._first_pause
        for attempt in range(_ATTEMPTS):
            try:
                return await self._client.post("", review)
            except ApiError as error:
                if not error.retryable or attempt == _ATTEMPTS - 1:
                    raise
            await asyncio.sleep(pause)
            pause *= _FACTOR
        raise AssertionError("the last attempt answers or raises")
