"""Events in both API groups (core and events.k8s.io), stored once in the core form, as upstream.

The verbs find it through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.kube.builtin_rules.events import (
    event_change_errors,
    event_errors,
    new_event_errors,
    series_errors,
)
from instar.kube.schema.metadata.object_meta import NameRule, name_is_path_segment
from instar.kube.schema.pipeline import Warn
from instar.server.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.base.field_errors import FieldError
    from instar.server.registry.resources.serving import VersionServing

CORE, SECOND = "v1", "events.k8s.io/v1"
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
    """A ``VersionConverter``: seven fields have other names, the rest is equal."""

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
    """Allows any path segment as a name."""

    name_rule: NameRule = staticmethod(name_is_path_segment)

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        namespace = obj["metadata"].get("namespace", "")
        return event_errors(obj, namespace, controller="reportingComponent")


class SecondEventStrategy(EventStrategy):
    """events.k8s.io: stored and validated in the core group's form."""

    reshapes = True
    told_group = ""

    def check_create(self, obj: Object, version: VersionServing, warn: Warn) -> list[FieldError]:
        core = _in_core(obj)
        found = super().check_create(obj, version, warn)
        return [*found, *new_event_errors(core), *series_errors(core)]

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        namespace = obj["metadata"].get("namespace", "")
        return event_errors(_in_core(obj), namespace, controller="reportingController")

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return event_change_errors(_in_core(new), _in_core(old))


def _in_core(obj: Object) -> Object:
    return {_TO_CORE.get(name, name): value for name, value in obj.items()}
