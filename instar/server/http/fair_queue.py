"""Fair queues for requests: a user that sends very many does not slow the others down.

``server/app.py`` calls it for each request, except those of administrators. *Seats* limit
unfinished requests, separately for reads and writes; a request without a seat waits in its user's
queue, and freed seats are given to the users in turn. *Turns* limit requests that finish without
waiting: these do not occupy a seat for long, but a thousand of them keep the event loop busy. While
several users are active, each may begin only a limited number of requests in one iteration of the
loop. A single active user is not limited.
"""

from __future__ import annotations

import asyncio
from collections import deque
from enum import Enum, auto
from time import monotonic

from instar.base import limits
from instar.base.fast_dataclass import dataclass
from instar.base.metrics import Counter, Measured, MergeMode, Metric

_ACTIVE_SECONDS = 0.5
"""A user counts as active for this time after a request, or up to twice as long."""
_SWEEP_SECONDS = 1.0
_READ_ONLY = ("get", "list", "watch", "head", "options")
Key = tuple[str, str]
"""Kind of pool, user."""


class FlowRefusal(Enum):
    """Why a request gets no seat."""

    FULL = auto()
    """So many requests wait already that this one would be late."""
    LATE = auto()
    """The request has waited too long."""


@dataclass(slots=True, eq=False)
class Seat:
    """The seat of one request, from ``FairQueue.enter`` to ``FairQueue.leave``."""

    user: str
    pool: Pool
    waiting: asyncio.Future[FlowRefusal | None] | None = None
    late: float = 0.0
    """The time at which it has waited too long."""
    held: bool = False

    @property
    def key(self) -> Key:
        return self.pool.kind, self.user


class Pool:
    """Seats of one kind; 0 is any number."""

    def __init__(self, kind: str, seats: int) -> None:
        self.kind, self.seats = kind, seats
        self.taken = 0

    @property
    def full(self) -> bool:
        return 0 < self.seats <= self.taken


class FairQueue:
    """Seats and turns of all users; a request calls ``enter``, ``leave`` or ``begin``, ``end``."""

    def __init__(
        self,
        reads: int = limits.READS_AT_ONCE,
        writes: int = limits.WRITES_AT_ONCE,
        patience: float = 15.0,
    ) -> None:
        """``patience``: seconds a request may wait for a seat."""
        self._pools = {True: Pool("readOnly", reads), False: Pool("mutating", writes)}
        self._patience = patience
        self._held: dict[str, int] = {}
        self._queues: dict[Key, deque[Seat]] = {}
        self._alone = ""
        """The only active user; empty while there are several."""
        self._about: set[str] = set()
        self._before: set[str] = set()
        self._until = 0.0
        self._begun: dict[Key, int] = {}
        self._ticking = self._sweeping = False
        self._rejected = Counter(
            "apiserver_dropped_requests_total", "Requests refused with 429.", ("request_kind",)
        )

    def metrics(self) -> tuple[Metric, ...]:
        taken = Measured(
            "apiserver_current_inflight_requests",
            "Requests being worked on.",
            ("request_kind",),
            lambda: [((pool.kind,), pool.taken) for pool in self._pools.values()],
            MergeMode.SUM,
        )
        waiting = Measured(
            "apiserver_current_inqueue_requests",
            "Requests waiting for their turn.",
            (),
            lambda: [((), sum(map(len, self._queues.values())))],
            MergeMode.SUM,
        )
        return (taken, waiting, self._rejected)

    def notice(self, user: str) -> None:
        """An administrator is active; these requests need no seat."""
        if user != self._alone:
            self._meet(user)

    def begin(self, user: str, verb: str) -> Pool | None:
        """Take a seat if the user is the only active one and a seat is free; ``end`` frees it. Most
        requests come here, so nothing is allocated and no clock is read."""
        if user != self._alone:
            return None
        pool = self._pools[verb in _READ_ONLY]
        if 0 < pool.seats <= pool.taken:
            return None
        pool.taken += 1
        return pool

    def end(self, pool: Pool) -> None:
        pool.taken -= 1
        if self._queues:
            self._tick()

    def enter(self, user: str, verb: str) -> Seat | FlowRefusal:
        """Return a seat or a refusal. If ``waiting`` is set, await it first; its result may be a
        refusal. Call ``leave`` in any case."""
        self.notice(user)
        pool = self._pools[verb in _READ_ONLY]
        seat = Seat(user, pool)
        if not pool.full and (user == self._alone or self._may_begin(seat)):
            self._take(seat)
            return seat
        queue = self._queues.setdefault(seat.key, deque())
        if len(queue) >= limits.WAITING_PER_USER:
            self._rejected.add((pool.kind,))
            return FlowRefusal.FULL
        seat.waiting = asyncio.get_running_loop().create_future()
        seat.late = monotonic() + self._patience
        queue.append(seat)
        self._tick()
        self._sweep_later()
        return seat

    def leave(self, seat: Seat) -> None:
        """Free the seat; the next waiting request gets it."""
        if not seat.held:
            self._give_up(seat)
            return
        seat.held = False
        left = self._held[seat.user] - 1
        if left:
            self._held[seat.user] = left
        else:
            del self._held[seat.user]
        self.end(seat.pool)

    def _may_begin(self, seat: Seat) -> bool:
        """Whether the request is within its user's share of the seats and of this turn."""
        key, pool = seat.key, seat.pool
        if key in self._queues:
            return False  # earlier requests of the user wait already
        share = max(1, pool.seats // len(self._about | self._before))
        if pool.seats and self._held.get(seat.user, 0) >= share:
            return False
        begun = self._begun.get(key, 0)
        if begun >= limits.BEGUN_PER_TURN:
            return False
        self._begun[key] = begun + 1
        self._tick()
        return True

    def _take(self, seat: Seat) -> None:
        seat.held = True
        seat.pool.taken += 1
        self._held[seat.user] = self._held.get(seat.user, 0) + 1

    def _meet(self, user: str) -> None:
        """A second user is active: the first one counts as active from now on, too."""
        now = monotonic()
        if now > self._until:
            self._before = self._about if now < self._until + _ACTIVE_SECONDS else set()
            self._about = set()
            self._until = now + _ACTIVE_SECONDS
        if self._alone:
            self._about.add(self._alone)
        self._about.add(user)
        active = self._about | self._before
        self._alone = user if len(active) == 1 else ""

    def _tick(self) -> None:
        """Serve the queues in the next turn of the loop, after the requests it brings."""
        if not self._ticking:
            self._ticking = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._ticking = False
        self._begun.clear()
        for key in list(self._queues):
            self._serve(key, self._queues[key])
        if any(queue and not queue[0].pool.full for queue in self._queues.values()):
            self._tick()

    def _serve(self, key: Key, queue: deque[Seat]) -> None:
        """Begin the user's share of one turn; the next turn starts with users that had none."""
        begun = 0
        while queue and begun < limits.BEGUN_PER_TURN and not queue[0].pool.full:
            seat = queue.popleft()
            assert seat.waiting is not None
            if not seat.waiting.done():
                self._take(seat)
                seat.waiting.set_result(None)
                begun += 1
        self._begun[key] = begun
        if begun or not queue:
            del self._queues[key]
        if begun and queue:
            self._queues[key] = queue

    def _sweep_later(self) -> None:
        if not self._sweeping:
            self._sweeping = True
            asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Refuse requests that have waited too long; the first in a queue is late first."""
        self._sweeping = False
        now = monotonic()
        for key, queue in list(self._queues.items()):
            while queue and queue[0].late <= now:
                waiting = queue.popleft().waiting
                if waiting is not None and not waiting.done():
                    self._rejected.add((key[0],))
                    waiting.set_result(FlowRefusal.LATE)
            if not queue:
                del self._queues[key]
        if self._queues:
            self._sweep_later()

    def _give_up(self, seat: Seat) -> None:
        """The client has disconnected, or its request was refused."""
        queue = self._queues.get(seat.key)
        if queue is not None and seat in queue:
            queue.remove(seat)
            if not queue:
                del self._queues[seat.key]
