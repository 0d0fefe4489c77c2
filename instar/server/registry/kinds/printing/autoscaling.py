"""Table cells of HorizontalPodAutoscalers and PodDisruptionBudgets.

``printer.py`` calls them for Table responses (``kubectl get``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from instar.base.json_values import Object
from instar.server.registry.kinds.printing.printer import Cells
from instar.server.registry.kinds.printing.texts import (
    NONE,
    UNKNOWN,
    UNSET,
    age_of,
    first_few,
    name_of,
    part,
)

_SHOWN_METRICS = 2


def _autoscaler(obj: Object, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    target = part(spec, "scaleTargetRef")
    least = spec.get("minReplicas")
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        first_few(_targets(spec, status), NONE, _SHOWN_METRICS, ", "),
        UNSET if least is None else str(least),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age_of(obj, now),
    ]


def _targets(spec: Object, status: Object) -> list[str]:
    if "metrics" not in spec and "targetCPUUtilizationPercentage" in spec:
        wanted = spec["targetCPUUtilizationPercentage"]
        return [f"cpu: {_percent(status.get('currentCPUUtilizationPercentage'))}/{wanted}%"]
    reported = status.get("currentMetrics") or []
    return [
        _target(metric, reported[position] if position < len(reported) else {})
        for position, metric in enumerate(spec.get("metrics") or ())
    ]


def _target(metric: Object, reported: Object) -> str:
    type = str(metric.get("type", ""))
    member = type[:1].lower() + type[1:]
    wanted = part(metric, member, "target")
    current = part(reported, member, "current")
    if type in ("Resource", "ContainerResource"):
        return f"{part(metric, member).get('name', '')}: {_usage(wanted, current)}"
    if type == "Pods":
        return f"{current.get('averageValue', UNKNOWN)}/{wanted.get('averageValue', '0')}"
    if type not in ("Object", "External"):
        return "<unknown type>"
    if wanted.get("averageValue") is not None:
        return f"{current.get('averageValue', UNKNOWN)}/{wanted['averageValue']} (avg)"
    return f"{current.get('value', UNKNOWN)}/{wanted.get('value', '0')}"


def _usage(wanted: Object, current: Object) -> str:
    if wanted.get("averageValue") is not None:
        return f"{current.get('averageValue', UNKNOWN)}/{wanted['averageValue']}"
    share = wanted.get("averageUtilization")
    shown = "<auto>" if share is None else f"{share}%"
    return f"{_percent(current.get('averageUtilization'))}/{shown}"


def _percent(share: int | None) -> str:
    return UNKNOWN if share is None else f"{share}%"


def _budget(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        part(obj, "status").get("disruptionsAllowed", 0),
        age_of(obj, now),
    ]


CELLS: Mapping[str, Cells] = {
    "horizontalpodautoscalers": _autoscaler,
    "poddisruptionbudgets": _budget,
}
