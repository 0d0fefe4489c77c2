"""Strategies of FlowSchema and PriorityLevelConfiguration: defaults and validation.

The verbs find them through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules,
and ``server/flow_control`` acts by the stored objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.kube.builtin_rules.flowcontrol import flow_schema_errors, priority_level_errors
from instar.server.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.base.field_errors import FieldError
    from instar.server.registry.resources.serving import VersionServing


class FlowSchemaStrategy(BuiltinStrategy):
    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        obj["spec"]["matchingPrecedence"] = obj["spec"].get("matchingPrecedence") or 1000

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return flow_schema_errors(obj)


class PriorityLevelStrategy(BuiltinStrategy):
    counts_generation = True

    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj["spec"]
        if spec.get("type") == "Exempt":
            exempt = spec.setdefault("exempt", {})
            exempt.setdefault("nominalConcurrencyShares", 0)
            exempt.setdefault("lendablePercent", 0)
        limited = spec.get("limited")
        if limited is None:
            return
        if limited.get("nominalConcurrencyShares") is None:
            limited["nominalConcurrencyShares"] = 30
        limited.setdefault("lendablePercent", 0)
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            for name, value in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
                queuing[name] = queuing.get(name) or value

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return priority_level_errors(obj)
