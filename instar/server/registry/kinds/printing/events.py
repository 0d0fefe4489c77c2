"""Table cells of Events, of both API groups.

``printer.py`` calls them for Table responses (``kubectl get``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from instar.base.json_values import Object
from instar.server.registry.kinds.printing.printer import Cells
from instar.server.registry.kinds.printing.texts import name_of, part, since


def event(obj: Object, now: datetime) -> list[Any]:
    """Return the cells of an event's row in a Table."""
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    series = obj.get("series")
    begun = _either(obj, "firstTimestamp", "deprecatedFirstTimestamp") or obj.get("eventTime")
    last = _either(obj, "lastTimestamp", "deprecatedLastTimestamp") or begun
    count = _either(obj, "count", "deprecatedCount") or 1
    if series is not None:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    kind, name = str(about.get("kind", "")).lower(), about.get("name", "")
    return [
        since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        about.get("fieldPath", ""),
        _source(obj),
        str(_either(obj, "message", "note") or "").strip(),
        since(begun, now),
        count,
        name_of(obj),
    ]


def _either(obj: Object, core: str, other: str) -> Any:
    return obj.get(core) or obj.get(other)


def _source(obj: Object) -> str:
    source = part(obj, "source") or part(obj, "deprecatedSource")
    component = source.get("component") or _either(obj, "reportingComponent", "reportingController")
    place = source.get("host") or obj.get("reportingInstance")
    return ", ".join(filter(None, (component, place)))


CELLS: Mapping[str, Cells] = {"events": event}
