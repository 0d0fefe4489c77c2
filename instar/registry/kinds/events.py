"""Events have two spellings, core and events.k8s.io, and one store: what is written as the one is
read as the other. They lie there in the core form, as upstream's do."""

from __future__ import annotations

from collections.abc import Sequence

from instar.plain import Object
from instar.registry.kinds.builtin import BuiltinStrategy
from instar.schema.objectmeta import NameRule, name_is_path_segment

CORE = "v1"
_TO_CORE = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_FROM_CORE = {core: name for name, core in _TO_CORE.items()}


class EventConverter:
    """A ``Converter``: seven fields have other names, the rest is the same."""

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        names = _TO_CORE if api_version == CORE else _FROM_CORE
        return [
            obj
            if obj.get("apiVersion") == api_version
            else {
                **{names.get(name, name): value for name, value in obj.items()},
                "apiVersion": api_version,
            }
            for obj in objects
        ]


class EventStrategy(BuiltinStrategy):
    """Any path segment is a name."""

    name_rule: NameRule = staticmethod(name_is_path_segment)


class SecondEventStrategy(EventStrategy):
    """events.k8s.io: kept in the core group's form."""

    reshapes = True
