"""Resolves the outcome of a write that was sent to etcd and not answered.

Called by ``store.py``. Sending again could restore an object that was deleted in between, so this
module only reads. If the expected revision was superseded by other bytes, an update is certainly
lost, because no key returns to an old revision. A creation is never reported as lost: a stopped
member may execute it later if the key is free by then. A created value with our bytes is ours,
since created objects carry a random uid. The outcome is unknown for an update or deletion that
another client could also have made, and for a write that is not visible yet.
"""

from __future__ import annotations

from enum import Enum

from instar.wire.storage.etcd import messages as wire
from instar.wire.storage.etcd.client import RANGE, EtcdClient, HistoryGone
from instar.wire.storage.store import Write

_STEPS_BACK = 16
"""Revisions of a key that are read back at most; after that the outcome is unknown."""


class WriteOutcome(Enum):
    """Outcome of an unanswered write."""

    DONE = "done"
    LOST = "lost"
    UNKNOWN = "unknown"


async def resolve(client: EtcdClient, key: bytes, write: Write) -> tuple[WriteOutcome, int]:
    """Return the outcome, and the revision of the write if done, of the key if lost."""
    current = await _read(client, key)
    if current is None or current.mod_revision == write.expected:
        return WriteOutcome.UNKNOWN, 0
    try:
        first = await _first_after(client, current, write.expected)
    except HistoryGone:
        return WriteOutcome.UNKNOWN, 0
    if first is None:
        return WriteOutcome.UNKNOWN, 0
    ours = first.value == write.value
    if write.expected == 0:
        return (WriteOutcome.DONE, first.mod_revision) if ours else (WriteOutcome.UNKNOWN, 0)
    return (WriteOutcome.UNKNOWN, 0) if ours else (WriteOutcome.LOST, current.mod_revision)


async def _first_after(
    client: EtcdClient, current: wire.KeyValue, expected: int
) -> wire.KeyValue | None:
    """Return the value that superseded ``expected``; None if compacted, or a deletion."""
    if expected == 0:
        if current.create_revision == current.mod_revision:
            return current
        return await _read(client, current.key, current.create_revision)
    for _ in range(_STEPS_BACK):
        before = await _read(client, current.key, current.mod_revision - 1)
        if before is None:
            return None
        if before.mod_revision == expected:
            return current
        current = before
    return None


async def _read(client: EtcdClient, key: bytes, revision: int = 0) -> wire.KeyValue | None:
    request = wire.range_request(key, revision=revision)
    answer = await client.ask(RANGE, request, wire.read_range)
    return answer.kvs[0] if answer.kvs else None
