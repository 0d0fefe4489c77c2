"""Limits how many console jobs run at once, and shares the slots fairly among users.

``supervisor.py`` acquires a slot for each job. A user may have a few jobs at once; users take
turns, so that many jobs of one user delay another user by one job at most.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

from instar.base import limits
from instar.base.errors import TooManyRequests


class JobShares:
    """Admits jobs: a few run, some wait, and users take turns."""

    def __init__(self, at_once: int, waiting: int, per_user: int = limits.JOBS_PER_USER) -> None:
        self._free, self._room, self._per_user = at_once, at_once + waiting, per_user
        self._unfinished: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By user; the user whose turn is next comes first."""

    @contextlib.asynccontextmanager
    async def place(self, user: str) -> AsyncIterator[None]:
        """Wait for a free slot. Raises ``TooManyRequests``."""
        mine = self._unfinished.get(user, 0)
        if mine >= self._per_user:
            raise TooManyRequests("you have too many reviews and checks under way, try again later")
        if sum(self._unfinished.values()) >= self._room:
            raise TooManyRequests("too many reviews and checks are being made, try again later")
        self._unfinished[user] = mine + 1
        try:
            await self._turn(user)
            try:
                yield
            finally:
                self._free += 1
                self._hand_out()
        finally:
            self._unfinished[user] -= 1
            if not self._unfinished[user]:
                del self._unfinished[user]

    async def _turn(self, user: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(turn)
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was given in the same moment
                self._free += 1
            self._hand_out()
            raise

    def _hand_out(self) -> None:
        while self._free and self._waiting:
            user, turns = next(iter(self._waiting.items()))
            turn = turns.popleft()
            del self._waiting[user]
            if turns:
                self._waiting[user] = turns  # behind the other users
            if not turn.done():
                self._free -= 1
                turn.set_result(None)
