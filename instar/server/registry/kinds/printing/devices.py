"""Table cells of the dynamic resource allocation kinds.

``printer.py`` calls them for Table responses (``kubectl get``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from instar.base.json_values import Object
from instar.server.registry.kinds.printing.printer import Cells
from instar.server.registry.kinds.printing.texts import age_of, is_terminating, name_of, part


def _claim(obj: Object, now: datetime) -> list[Any]:
    status = part(obj, "status")
    states = ["deleted"] if is_terminating(obj) else []
    if status.get("allocation") is not None:
        states.append("allocated")
    elif not states:
        states.append("pending")
    if status.get("reservedFor"):
        states.append("reserved")
    return [name_of(obj), ",".join(states), age_of(obj, now)]


def _name_and_age(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), age_of(obj, now)]


def _slice(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        spec.get("nodeName") or "",
        spec.get("driver", ""),
        part(spec, "pool").get("name", ""),
        age_of(obj, now),
    ]


CELLS: Mapping[str, Cells] = {
    "deviceclasses": _name_and_age,
    "resourceclaims": _claim,
    "resourceclaimtemplates": _name_and_age,
    "resourceslices": _slice,
}
