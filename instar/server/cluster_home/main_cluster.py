"""The connection to the main cluster: its clients, and whether it answers.

``home.py`` makes one per server. Every other module of the package asks and follows the main
cluster through it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from instar.base.errors import ApiError
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import Access, KubeconfigError, in_cluster, load_access

log = logging.getLogger(__name__)
IN_CLUSTER = "in-cluster"
"""In place of a kubeconfig: the account of the pod."""
ANSWER_SECONDS = 10.0
"""Longest time that a request of a client waits for the main cluster."""
_LIST_SECONDS = 60.0
_AGENT = "instar-aggregated"
T = TypeVar("T")


class MainCluster:
    """Clients of the main cluster with the identity of this server."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.asking = Client(access, timeout=ANSWER_SECONDS, user_agent=_AGENT)
        """For questions that a request waits for."""
        self.following = Client(access, timeout=_LIST_SECONDS, user_agent=_AGENT)
        """For lists and watches."""
        self._failures: dict[str, str] = {}
        self._unreachable_since = 0.0

    @classmethod
    def of(cls, named: str) -> MainCluster:
        """``named`` is a kubeconfig file, or ``in-cluster``. Raises ``ValueError``."""
        try:
            access = in_cluster() if named == IN_CLUSTER else load_access(Path(named))
            return cls(access)
        except KubeconfigError as error:
            raise ValueError(f"--cluster {named}: {error}") from error

    async def close(self) -> None:
        await self.asking.close()
        await self.following.close()

    def note(self, what: str, failure: Exception | None) -> None:
        """Record whether following ``what`` works; logs each change once."""
        if failure is None:
            if self._failures.pop(what, None) is not None:
                log.info("%s of the main cluster: followed again", what)
            return
        if what not in self._failures:
            log.warning("%s of the main cluster cannot be followed: %s", what, failure)
        if not self._failures:
            self._unreachable_since = monotonic()
        self._failures[what] = str(failure)

    @property
    def trouble(self) -> str | None:
        """Why collections of the main cluster may be out of date; None if all are followed."""
        if not self._failures:
            return None
        what, why = next(iter(self._failures.items()))
        seconds = int(monotonic() - self._unreachable_since)
        return f"{what} of the main cluster not followed for {seconds} s: {why}"


async def first_answer(call: Callable[[], Coroutine[Any, Any, T]], attempts: int = 5) -> T:
    """Return the answer to ``call``, tried again after temporary failures. Raises the last
    ``ApiError``."""
    pause = 0.2
    while True:
        attempts -= 1
        try:
            return await call()
        except ApiError as error:
            if not error.retryable or not attempts:
                raise
        await asyncio.sleep(pause)
        pause *= 2
