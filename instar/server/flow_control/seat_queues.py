"""``SeatQueues``: the seats of one priority level, and the requests that wait for them.

``flow_control.py`` keeps one per level. A request that finds a seat takes it without a queue. The
others wait in one of the queues of their flow's hand, and freed seats go to the queue that has had
the least work so far (fair queuing over virtual time, in seat-seconds). The caller passes the
clock in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from enum import Enum

from instar.base.fast_dataclass import dataclass
from instar.kube.flow_control.priority_levels import PriorityLevel, SeatDemand, SeatLimits
from instar.kube.flow_control.work import RequestWork, flow_hash, hand_of
from instar.server.flow_control.request_class import RequestClass

_ESTIMATED_SECONDS = 0.003
"""How long a request is expected to take, until it has been served."""


class FlowRejection(Enum):
    """Why a request is not served; the value is upstream's label."""

    QUEUE_FULL = "queue-full"
    NO_SEAT = "concurrency-limit"
    TIMED_OUT = "time-out"
    CANCELLED = "cancelled"


@dataclass(slots=True, eq=False)
class SeatRequest:
    """A request that has or waits for seats of a level, from ``enter`` to ``leave``."""

    kind: RequestClass
    flow: str
    work: RequestWork
    arrived: float
    mutating: bool = False
    granted: asyncio.Future[FlowRejection | None] | None = None
    """Set while it waits, and with the outcome once it no longer waits."""
    queue: SeatQueue | None = None
    arrived_at: float = 0.0
    """Virtual time of its arrival."""
    began: float = 0.0
    executing: bool = False


class SeatQueue:
    """One queue of a level."""

    __slots__ = ("executing", "seats", "start", "waiting", "work_waiting")

    def __init__(self) -> None:
        self.waiting: deque[SeatRequest] = deque()
        self.executing = 0
        self.seats = 0
        self.work_waiting = 0.0
        self.start = 0.0
        """Virtual time at which its next request would begin."""

    @property
    def busy(self) -> bool:
        return bool(self.waiting) or self.executing > 0


class SeatQueues:
    """Seats and queues of one priority level."""

    def __init__(self, level: PriorityLevel, limits: SeatLimits, seats: int) -> None:
        self.level, self.limits = level, limits
        self.seats = seats
        """Seats that it may use now; 0 with ``unlimited``."""
        self.demand = SeatDemand()
        self.taken = 0
        self.waiting = 0
        self.waiting_seats = 0
        self.highest = 0
        """The most seats used or waited for since the last adjustment."""
        self.samples: list[int] = []
        self.dispatched = self.rejected = self.timed_out = self.cancelled = 0
        self.executing: set[SeatRequest] = set()
        """Requests that execute, where their number is limited."""
        self._queues = [SeatQueue() for _ in range(level.queues)]
        self._active: dict[int, SeatQueue] = {}
        """Queues with requests, by their index."""
        self._hands: dict[tuple[str, str], tuple[int, ...]] = {}
        self._dealt = 0
        self._virtual = self._clock = 0.0

    def reconfigure(self, level: PriorityLevel, limits: SeatLimits) -> None:
        """Follow a change of the configuration. Queues above a smaller number stay until they are
        empty: no flow's hand contains them any more."""
        if (level.queues, level.hand_size) != (self.level.queues, self.level.hand_size):
            self._hands.clear()
        missing = level.queues - len(self._queues)
        self._queues += [SeatQueue() for _ in range(missing)]
        self.level, self.limits = level, limits

    @property
    def idle(self) -> bool:
        return not self.waiting and not self.taken

    def fits(self, work: RequestWork) -> bool:
        """Return whether a request could have its seats now. One that needs more seats than there
        are is served alone."""
        taken, seats = self.taken, work.seats
        return taken + seats <= self.seats or (seats > self.seats and taken == 0)

    @property
    def queues_waiting(self) -> int:
        """Number of queues in which requests wait."""
        return sum(bool(queue.waiting) for queue in self._active.values())

    def note_demand(self) -> None:
        wanted = self.taken + self.waiting_seats
        if wanted > self.highest:
            self.highest = wanted

    def sample(self) -> None:
        self.samples.append(self.taken + self.waiting_seats)

    def close_period(self) -> SeatDemand:
        """Return the demand of the period that ends now."""
        self.demand.update(self.highest, self.samples)
        self.highest, self.samples = self.taken + self.waiting_seats, []
        return self.demand

    # --- requests -------------------------------------------------------------------------

    def take(self, request: SeatRequest, now: float) -> None:
        """Give the request its seats."""
        request.executing, request.began = True, now
        self.taken += request.work.seats
        self.executing.add(request)
        self.dispatched += 1
        self.note_demand()

    def enqueue(self, request: SeatRequest, now: float) -> bool:
        """Put the request into the emptiest queue of its flow's hand; False if that is full."""
        self._advance(now)
        index = self._queue_for(request)
        queue = self._queues[index]
        if len(queue.waiting) >= self.level.queue_length and self.taken >= self.seats:
            return False
        if not queue.busy or queue.start < self._virtual:
            queue.start = self._virtual
        request.queue, request.arrived_at = queue, self._virtual
        request.granted = asyncio.get_running_loop().create_future()
        queue.waiting.append(request)
        queue.work_waiting += _estimate(request)
        self._active[index] = queue
        self.waiting += 1
        self.waiting_seats += request.work.seats
        self.note_demand()
        return True

    def next_waiting(self) -> SeatRequest | None:
        """Return the waiting request that is next, whether or not its seats are free."""
        heads = [queue for queue in self._active.values() if queue.waiting]
        if not heads:
            return None
        return min(heads, key=lambda queue: queue.start + _estimate(queue.waiting[0])).waiting[0]

    def dispatch(self, request: SeatRequest, now: float) -> None:
        """Take the request out of its queue and give it its seats."""
        self._advance(now)
        queue = request.queue
        assert queue is not None
        assert request.granted is not None
        self._remove(queue, request)
        queue.executing += 1
        queue.seats += request.work.seats
        queue.start += _estimate(request)
        self.take(request, now)
        if not request.granted.done():
            request.granted.set_result(None)

    def give_up(self, request: SeatRequest, why: FlowRejection, now: float) -> bool:
        """Remove a request that still waits, because it is late or its client is gone."""
        queue = request.queue
        if queue is None or request.executing or request not in queue.waiting:
            return False
        self._advance(now)
        self._remove(queue, request)
        self._retire(queue)
        self.timed_out += why is FlowRejection.TIMED_OUT
        self.cancelled += why is FlowRejection.CANCELLED
        self.rejected += why is FlowRejection.TIMED_OUT
        if request.granted is not None and not request.granted.done():
            request.granted.set_result(why)
        return True

    def finish(self, request: SeatRequest, now: float) -> None:
        """Free the seats of a request, and correct what its queue was charged."""
        self._advance(now)
        request.executing = False
        self.executing.discard(request)
        self.taken -= request.work.seats
        queue = request.queue
        if queue is None:
            return
        queue.executing -= 1
        queue.seats -= request.work.seats
        queue.start -= request.work.seats * (_ESTIMATED_SECONDS - (now - request.began))
        self._retire(queue)

    def late(self, before: float) -> list[SeatRequest]:
        """Requests that arrived before this time and still wait."""
        return [
            request
            for queue in self._active.values()
            for request in queue.waiting
            if request.arrived <= before
        ]

    def queues(self) -> list[SeatQueue]:
        return self._queues

    # --- queues ---------------------------------------------------------------------------

    def _queue_for(self, request: SeatRequest) -> int:
        """Choose the queue of the flow's hand with the least work; equal ones in turn."""
        key = request.kind.schema.name, request.flow
        hand = self._hands.get(key)
        if hand is None:
            if len(self._hands) >= _MOST_HANDS:
                self._hands.clear()
            hand = hand_of(flow_hash(*key), self.level.queues, self.level.hand_size)
            self._hands[key] = hand
        self._dealt += 1
        turned = [hand[(self._dealt + at) % len(hand)] for at in range(len(hand))]
        return min(turned, key=lambda index: self._queues[index].work_waiting)

    def _remove(self, queue: SeatQueue, request: SeatRequest) -> None:
        queue.waiting.remove(request)
        queue.work_waiting -= _estimate(request)
        self.waiting -= 1
        self.waiting_seats -= request.work.seats
        if queue.waiting:
            queue.start = max(queue.start, queue.waiting[0].arrived_at)

    def _retire(self, queue: SeatQueue) -> None:
        if not queue.busy:
            for index, each in list(self._active.items()):
                if each is queue:
                    del self._active[index]

    def _advance(self, now: float) -> None:
        """Let virtual time pass: each active queue could have used an equal part of the seats."""
        passed, self._clock = now - self._clock, now
        if not self._active:
            return
        wanted = self.waiting_seats + sum(queue.seats for queue in self._active.values())
        self._virtual += max(passed, 0.0) * min(wanted, self.seats) / len(self._active)


_MOST_HANDS = 4096
"""Flows whose hands are remembered; at this number they are dealt again."""


def _estimate(request: SeatRequest) -> float:
    """Seat-seconds that the request is expected to need."""
    work = request.work
    return work.seats * (_ESTIMATED_SECONDS + work.lingers)
