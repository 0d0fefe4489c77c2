"""Seats that a request takes: lists by the bytes that they read, writes by the watches they feed.

``server/flow_control`` calls it for lists, watches with initial events, and writes; every other
request takes one seat. A *hand* of queues is dealt to each flow by ``hand_of``.
"""

from __future__ import annotations

from hashlib import sha256
from math import ceil

from instar.base.fast_dataclass import dataclass

_BYTES_PER_SEAT = 100_000
_MOST_BYTES_AT_ONCE = 1_000_000
"""Memory that a list needs at once: a longer one is sent while it is read."""
_MOST_LIST_SEATS = 100
_MOST_WRITE_SEATS = 10
_WATCHES_PER_SEAT = 10
_EVENT_SECONDS = 0.005
_HASH_BYTES = 8


@dataclass(frozen=True, slots=True)
class RequestWork:
    """Seats of a request, and how long they stay taken after its response."""

    seats: int = 1
    lingers: float = 0.0


ONE_SEAT = RequestWork()


def list_work(objects: int, average_bytes: float, limit: int, widest: int) -> RequestWork:
    """Work of a list of ``objects`` stored objects, of which it returns at most ``limit`` (0: any
    number); ``widest``: see ``SeatLimits``."""
    loaded = min(limit, objects) if limit > 0 else objects
    needed = min(loaded * average_bytes, _MOST_BYTES_AT_ONCE)
    return RequestWork(_bounded(ceil(needed / _BYTES_PER_SEAT), widest, _MOST_LIST_SEATS))


def write_work(watches: int, widest: int) -> RequestWork:
    """Work of a write whose event goes to this number of watches: the same seat-seconds, whether
    they are many seats for a moment or the allowed seats for longer."""
    if watches < _WATCHES_PER_SEAT:
        return ONE_SEAT
    wanted = ceil(watches / _WATCHES_PER_SEAT)
    seats = _bounded(wanted, widest, _MOST_WRITE_SEATS)
    return RequestWork(seats, wanted * _EVENT_SECONDS / seats)


def _bounded(seats: int, widest: int, most: int) -> int:
    return max(1, min(seats, widest or most, most))


def flow_hash(schema: str, flow: str) -> int:
    """Number of a flow, from which its hand of queues is dealt."""
    digest = sha256(f"{schema}\0{flow}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:_HASH_BYTES], "little")


def hand_of(number: int, queues: int, size: int) -> tuple[int, ...]:
    """Deal ``size`` different queues of ``queues``, as the flow's number decides (shuffle
    sharding): two flows rarely share their whole hand."""
    left = list(range(queues))
    hand = []
    for _ in range(min(size, queues)):
        number, at = divmod(number, len(left))
        hand.append(left.pop(at))
    return tuple(hand)
