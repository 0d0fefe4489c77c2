"""Debug pages of priority and fairness, as text tables: /debug/api_priority_and_fairness/dump_…

``server/app.py`` asks it for paths that are no resources, once they are authorized. Columns and
layout are those of kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic

from instar.server.flow_control.flow_control import FlowControl
from instar.server.flow_control.seat_queues import SeatQueues, SeatRequest
from instar.server.http.messages import Request, Response, text_response

_FRONT = "/debug/api_priority_and_fairness/dump_"
_LEAST_WIDTH = 8
_LEVEL_COLUMNS = (
    "PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests",
    "ExecutingRequests", "DispatchedRequests", "RejectedRequests", "TimedoutRequests",
    "CancelledRequests",
)  # fmt: skip
_QUEUE_COLUMNS = (
    "PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse",
    "NextDispatchR", "InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum",
)  # fmt: skip
_REQUEST_COLUMNS = (
    "PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue",
    "FlowDistingsher", "ArriveTime", "InitialSeats", "FinalSeats", "AdditionalLatency",
    "StartTime",
)  # fmt: skip
Row = Sequence[object]


class DebugDumps:
    """Levels, queues and requests of one server's flow control."""

    def __init__(self, control: FlowControl) -> None:
        self._configuration = control.configuration

    def respond(self, request: Request) -> Response | None:
        """Return the page, or None for another path."""
        if not request.path.startswith(_FRONT):
            return None
        self._configuration.refresh()
        page = request.path.removeprefix(_FRONT)
        if page == "priority_levels":
            return text_response(200, table(_LEVEL_COLUMNS, self._levels()))
        if page == "queues":
            return text_response(200, table(_QUEUE_COLUMNS, self._queues()))
        if page == "requests":
            return text_response(200, table(_REQUEST_COLUMNS, self._requests()))
        return None

    def _levels(self) -> Iterable[Row]:
        retired = [(seats.level.name, seats, True) for seats in self._configuration.retired]
        levels = [(name, seats, False) for name, seats in self._configuration.levels.items()]
        for name, seats, quiescing in sorted((*levels, *retired), key=lambda row: row[0]):
            yield (
                name, seats.queues_waiting, seats.idle, quiescing, seats.waiting,
                len(seats.executing), seats.dispatched, seats.rejected, seats.timed_out,
                seats.cancelled,
            )  # fmt: skip

    def _queues(self) -> Iterable[Row]:
        for name, seats in self._configuration.levels.items():
            for index, queue in enumerate(seats.queues()):
                waiting_seats = sum(each.work.seats for each in queue.waiting)
                yield (
                    name, index, len(queue.waiting), queue.executing, queue.seats,
                    f"{queue.start:.8f}ss", waiting_seats, waiting_seats,
                    f"{queue.work_waiting:.8f}ss",
                )  # fmt: skip

    def _requests(self) -> Iterable[Row]:
        for name, seats in self._configuration.levels.items():
            index_of = {id(queue): index for index, queue in enumerate(seats.queues())}
            for queue in seats.queues():
                for place, request in enumerate(queue.waiting):
                    yield _request_row(name, index_of[id(queue)], place, request)
            yield from _executing_rows(name, seats, index_of)


def _executing_rows(name: str, seats: SeatQueues, index_of: dict[int, int]) -> Iterable[Row]:
    for request in seats.executing:
        index = -1 if request.queue is None else index_of[id(request.queue)]
        yield _request_row(name, index, -1, request)


def _request_row(level: str, index: int, place: int, request: SeatRequest) -> Row:
    began = _time(request.began) if request.executing else "0001-01-01T00:00:00Z"
    work = request.work
    return (
        level, request.kind.schema.name, index, place, request.flow, _time(request.arrived),
        work.seats, work.seats if work.lingers else 0, f"{work.lingers:g}s", began,
    )  # fmt: skip


def _time(moment: float) -> str:
    """The time of day of a moment of the monotonic clock."""
    found = datetime.now(UTC) - timedelta(seconds=monotonic() - moment)
    return found.isoformat().replace("+00:00", "Z")


def table(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """Lay out rows as Go's tabwriter does: a comma ends each cell but the last, and cells of a
    column have one width."""
    lines = [list(columns), *([_cell(value) for value in row] for row in rows)]
    padded = [[f"{cell}," for cell in line[:-1]] + line[-1:] for line in lines]
    widths = [
        max(_LEAST_WIDTH, 1 + max(len(line[at]) for line in padded))
        for at in range(len(columns) - 1)
    ]
    return "".join(
        "".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False))
        + line[-1]
        + "\n"
        for line in padded
    )


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    # A user's name may hold anything; a line of the table stays a line.
    return "".join(each if each.isprintable() else "?" for each in str(value))
