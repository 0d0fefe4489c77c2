"""``RequestClass``: what API priority and fairness knows about requests of one kind.

The classifier in ``configuration.py`` makes one per FlowSchema; ``server/app.py`` sends its headers
with the response, and ``metrics.py`` reads its counters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.kube.flow_control.schemas import FlowSchema
from instar.server.http.messages import Header

if TYPE_CHECKING:
    from instar.server.flow_control.seat_queues import SeatQueues


class RequestClass:
    """A FlowSchema with the seats of its priority level, and counters of its requests."""

    __slots__ = (
        "dispatched",
        "executing",
        "executing_seats",
        "exempt",
        "headers",
        "labels",
        "queued",
        "queued_seats",
        "schema",
        "seats",
    )

    def __init__(self, schema: FlowSchema, seats: SeatQueues) -> None:
        self.schema = schema
        self.labels = (schema.level, schema.name)
        self.seats = seats
        self.exempt = seats.level.exempt
        self.headers: tuple[Header, ...] = ()
        self.update()
        self.dispatched = self.executing = self.executing_seats = 0
        self.queued = self.queued_seats = 0

    def update(self) -> None:
        """Take over the level's present configuration."""
        self.exempt = self.seats.level.exempt
        uids = (
            (b"x-kubernetes-pf-flowschema-uid", self.schema.uid.encode()),
            (b"x-kubernetes-pf-prioritylevel-uid", self.seats.level.uid.encode()),
        )
        # Objects that are not stored, but assumed, have no uid.
        self.headers = tuple(header for header in uids if header[1])
