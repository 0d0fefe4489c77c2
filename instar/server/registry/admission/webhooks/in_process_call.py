"""Calls webhooks that are functions in this process, with the contract of remote ones.

Called by ``call.py``. The function is user code: it gets a copy, runs in a thread pool of its own
where it may block, and its answer is validated like any other.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import orjson

from instar.server.registry.admission.webhooks.in_process import Review
from instar.wire.webhooks.call_limits import Gate
from instar.wire.webhooks.transport import go_duration

CALLS_AT_ONCE = 4
"""Calls of all in-process webhooks that run concurrently; further ones wait."""
CALLS_WAITING = 512
"""Calls that may wait; further ones fail at once."""


class LocalFailed(Exception):
    """An in-process webhook raised an error or gave no valid answer."""

    def __init__(self, text: str, advice: str = "") -> None:
        super().__init__(text)
        self.advice = advice


class LocalReviews:
    """Calls in-process webhooks in a thread pool of their own."""

    def __init__(self) -> None:
        self._gate = Gate("the admission of this process", CALLS_AT_ONCE, CALLS_WAITING)
        self._threads: ThreadPoolExecutor | None = None

    async def ask(self, name: str, review: Review, body: bytes, seconds: float) -> bytes:
        """Return the answer to an AdmissionReview. Raises ``LocalFailed``."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="admission")

        def answered() -> bytes:
            return orjson.dumps(review(name, orjson.loads(body)))

        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds), self._gate:
                return await loop.run_in_executor(self._threads, answered)
        except TimeoutError as error:
            raise LocalFailed(f"no answer within {go_duration(seconds)}") from error
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            raise LocalFailed(told, "the admission given to the server failed; mend it") from error
