"""Events have two spellings, core and events.k8s.io, and one store: what is written as the one is
read as the other. They lie there in the core form, as upstream's do."""

from __future__ import annotations

from collections.abc import Sequence

from instar.plain import Object

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
