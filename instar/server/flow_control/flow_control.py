"""``FlowControl``: lets each request begin now, wait for a seat, or be rejected.

``server/app.py`` calls ``flow_of``, ``enter`` and ``leave``. *Seats* limit requests that are not
finished, per priority level (``seat_queues.py``). *Turns* limit requests that finish without
waiting: these hold no seat for long, but a thousand of them keep the event loop busy. While several
flows are active, each may begin only a few seats' worth of requests in one turn of the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

from instar.base import limits
from instar.base.supervision import rest
from instar.kube.access.attributes import Attributes
from instar.kube.flow_control.work import ONE_SEAT, RequestWork
from instar.server.flow_control.configuration import Configuration, Flow
from instar.server.flow_control.metrics import FlowMetrics
from instar.server.flow_control.retry_after import RetryAfter
from instar.server.flow_control.seat_queues import FlowRejection, SeatQueues, SeatRequest

_ACTIVE_SECONDS = 0.5
"""A flow counts as active for this time after a request, or up to twice as long."""
_SWEEP_SECONDS = 1.0
_SAMPLE_SECONDS = 1.0
_SAMPLES_PER_PERIOD = 10
"""Seats are lent anew after this number of samples."""
_READ_ONLY = ("get", "list", "watch", "head", "options")
Clock = Callable[[], float]


class FlowControl:
    """Priority and fairness of one server."""

    def __init__(
        self,
        configuration: Configuration,
        patience: float = 15.0,
        estimate: Callable[[Attributes, int, int], RequestWork] = lambda *_: ONE_SEAT,
        clock: Clock = monotonic,
    ) -> None:
        """``patience``: seconds a request may wait. ``estimate``: the work of a request, from its
        attributes, its ``limit``, and the most seats that it may take."""
        self.configuration = configuration
        self.metrics = FlowMetrics(configuration)
        self.in_flight = self.metrics.in_flight
        self._patience = patience
        self._estimate = estimate
        self._clock = clock
        self._retries: dict[str, RetryAfter] = {}
        self._alone: Flow | None = None
        """The only active flow; None while there are several."""
        self._active: set[Flow] = set()
        self._active_before: set[Flow] = set()
        self._until = 0.0
        self._begun: list[Flow] = []
        """Flows of which requests began in this turn."""
        self._ticking = self._sweeping = False

    def flow_of(self, asked: Attributes) -> Flow:
        return self.configuration.flow_of(asked)

    def pass_exempt(self, flow: Flow) -> None:
        """Count a request of an exempt level, which needs no seat."""
        if flow is not self._alone:
            self._note_active(flow)
        flow.kind.dispatched += 1

    def enter(self, flow: Flow, asked: Attributes, limit: int = 0) -> SeatRequest | FlowRejection:
        """Return the request's seats, or why it is rejected. If ``granted`` is set, await it first;
        its result may be a rejection, too. Call ``leave`` in any case."""
        if flow is not self._alone:
            self._note_active(flow)
        kind, seats, now = flow.kind, flow.kind.seats, self._clock()
        work = self._estimate(asked, limit, seats.limits.widest)
        request = SeatRequest(kind, flow.name, work, now, asked.verb not in _READ_ONLY)
        self.metrics.estimated(kind, work)
        if not seats.waiting and seats.fits(work) and self._may_begin(flow, work):
            seats.take(request, now)
            self._note_begun(request)
            return request
        if not seats.level.queues:
            if seats.fits(work):  # only this turn has no room for it
                seats.take(request, now)
                self._note_begun(request)
                return request
            return self._rejected(request, FlowRejection.NO_SEAT)
        if not seats.enqueue(request, now):
            return self._rejected(request, FlowRejection.QUEUE_FULL)
        kind.queued += 1
        kind.queued_seats += work.seats
        self._tick()
        self._sweep_later()
        return request

    def leave(self, request: SeatRequest) -> None:
        """Free the seats of the request, or its place in a queue."""
        if not request.executing:
            seats = request.kind.seats
            if seats.give_up(request, FlowRejection.CANCELLED, self._clock()):
                self._note_unqueued(request)
            return
        if request.work.lingers:
            asyncio.get_running_loop().call_later(request.work.lingers, self._free, request)
        else:
            self._free(request)

    def retry_after(self, flow: Flow) -> int:
        """Seconds for the ``Retry-After`` header of a rejected request."""
        found = self._retries.get(flow.kind.schema.level)
        return 1 if found is None else found.seconds

    # --- seats ----------------------------------------------------------------------------

    def _free(self, request: SeatRequest) -> None:
        now, kind = self._clock(), request.kind
        kind.seats.finish(request, now)
        self.in_flight[request.mutating] -= 1
        kind.executing -= 1
        kind.executing_seats -= request.work.seats
        self.metrics.executed(kind, now - request.began)
        if kind.seats.waiting:
            self._tick()

    def _note_begun(self, request: SeatRequest) -> None:
        kind = request.kind
        self.in_flight[request.mutating] += 1
        kind.dispatched += 1
        kind.executing += 1
        kind.executing_seats += request.work.seats

    def _note_unqueued(self, request: SeatRequest) -> None:
        request.kind.queued -= 1
        request.kind.queued_seats -= request.work.seats

    def _rejected(self, request: SeatRequest, why: FlowRejection) -> FlowRejection:
        kind = request.kind
        if why is not FlowRejection.TIMED_OUT:
            kind.seats.rejected += 1
        self.metrics.rejected(kind, why, mutating=request.mutating)
        retries = self._retries.setdefault(kind.schema.level, RetryAfter())
        retries.note(int(self._clock()))
        return why

    # --- turns ----------------------------------------------------------------------------

    def _note_active(self, flow: Flow) -> None:
        """A second flow is active: the first one counts as active from now on, too."""
        now = self._clock()
        if now > self._until:
            self._active_before = self._active if now < self._until + _ACTIVE_SECONDS else set()
            self._active = set()
            self._until = now + _ACTIVE_SECONDS
        if self._alone is not None:
            self._active.add(self._alone)
        self._active.add(flow)
        active = self._active | self._active_before
        self._alone = flow if len(active) == 1 else None

    def _may_begin(self, flow: Flow, work: RequestWork) -> bool:
        """Whether the flow's requests of this turn leave room for this one."""
        if flow is self._alone:
            return True
        if not flow.begun:
            self._begun.append(flow)
        elif flow.begun + work.seats > limits.BEGUN_PER_TURN:
            return False
        flow.begun += work.seats
        self._tick()
        return True

    def _tick(self) -> None:
        """Serve the queues in the next turn of the loop, after the requests it brings."""
        if not self._ticking:
            self._ticking = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._ticking = False
        for flow in self._begun:
            flow.begun = 0
        self._begun.clear()
        for seats in self._all_levels():
            if seats.waiting:
                self._serve(seats)

    def _all_levels(self) -> list[SeatQueues]:
        return [*self.configuration.levels.values(), *self.configuration.retired]

    def _serve(self, seats: SeatQueues) -> None:
        """Give free seats to waiting requests, as many as one turn may begin."""
        left = limits.BEGUN_PER_TURN * max(1, seats.queues_waiting)
        while left > 0 and seats.waiting:
            request = seats.next_waiting()
            if request is None or not seats.fits(request.work):
                return
            now = self._clock()
            seats.dispatch(request, now)
            self._note_unqueued(request)
            self._note_begun(request)
            self.metrics.waited(request.kind, now - request.arrived, executed=True)
            left -= request.work.seats
        if seats.waiting:
            self._tick()

    # --- time -----------------------------------------------------------------------------

    def _sweep_later(self) -> None:
        if not self._sweeping:
            self._sweeping = True
            asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Reject requests that have waited too long."""
        self._sweeping = False
        if any(seats.waiting for seats in self._all_levels()):
            self._sweep_later()
        now = self._clock()
        for seats in self._all_levels():
            for request in seats.late(now - self._patience):
                if seats.give_up(request, FlowRejection.TIMED_OUT, now):
                    self._note_unqueued(request)
                    self._rejected(request, FlowRejection.TIMED_OUT)
                    self.metrics.waited(request.kind, now - request.arrived, executed=False)

    async def run(self) -> None:
        """Sample the demand of each level, and lend seats anew every ten seconds."""
        while True:
            for _ in range(_SAMPLES_PER_PERIOD):
                await rest(_SAMPLE_SECONDS)
                for seats in self.configuration.levels.values():
                    seats.sample()
            self.configuration.refresh()
            self.configuration.adjust()
            self._tick()
