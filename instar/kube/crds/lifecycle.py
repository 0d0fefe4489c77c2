"""The states a CRD passes through after a write, in a server of one process.

Upstream's controllers race; here the order is fixed to the one watchers usually see. Each
state is meant to become a revision of its own. Pure: nothing is written here.
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


def settling_states(crd: Object, others: Sequence[Object], now: str) -> list[Object]:
    """The successive ``status`` values of a v1-shaped CRD; empty when it is at rest.

    ``others`` are the other CRDs (any group). Whoever frees or takes a name must look at
    the rest of the group again.
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
