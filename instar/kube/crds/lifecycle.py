"""Sequence of status updates of a CRD after a write, until its status is current.

Called by the CRD controller (``server/registry/controllers/crds.py``), which writes each status as
its own revision, and by ``tools/snapshots/crd_status.py``. Upstream's controllers race; here the
order is fixed to the one that watchers usually see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from instar.base.json_values import Object
from instar.kube.crds.conditions import (
    approval_status,
    established_status,
    name_status,
    structural_status,
)


def status_sequence(crd: Object, others: Sequence[Object], now: str) -> list[Object]:
    """Return the successive ``status`` values of a v1 CRD; empty when its status is current.

    ``others`` are the other CRDs (any group). When a CRD frees or takes a name, the caller must
    reconcile the rest of the group.
    """
    return list(_states(crd, others, now))


def _states(crd: Object, others: Sequence[Object], now: str) -> Iterator[Object]:
    steps: tuple[Callable[[Object], Object], ...] = (
        lambda current: name_status(current, others, now),
        lambda current: established_status(current, now),
        lambda current: structural_status(current, now),
        lambda current: approval_status(current, now),
    )
    for step in steps:
        status = step(crd)
        if status is not crd["status"]:
            crd = {**crd, "status": status}
            yield status
