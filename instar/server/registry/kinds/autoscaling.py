"""Strategies of HorizontalPodAutoscalers (stored as v2) and PodDisruptionBudgets.

The verbs find them through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.field_errors import FieldError
from instar.base.json_values import Object
from instar.kube.builtin_rules.autoscaling import (
    autoscaler_errors,
    budget_errors,
    budget_status_errors,
)
from instar.server.registry.kinds.autoscaling_versions import METRICS
from instar.server.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.server.registry.resources.serving import VersionServing


class AutoscalerStrategy(BuiltinStrategy):
    reshapes = True

    def decode(self, obj: Object, version: VersionServing) -> list[str]:
        """Keep an explicit empty list of policies, which is refused: without one there are default
        policies."""
        emptied = [rules for rules in _scaling_rules(obj) if rules[1].get("policies") == []]
        unknown = super().decode(obj, version)
        for direction, _ in emptied:
            obj["spec"]["behavior"][direction]["policies"] = []
        return unknown

    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj["spec"]
        spec.setdefault("minReplicas", 1)
        if version.name == "v2":
            _default_v2(spec)
        else:
            annotations = obj["metadata"].get("annotations") or {}
            if METRICS not in annotations:
                spec.setdefault("targetCPUUtilizationPercentage", 80)

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return autoscaler_errors(obj["spec"])


class PodDisruptionBudgetStrategy(BuiltinStrategy):
    counts_generation = True
    unconditional_update = False

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return budget_errors(obj.get("spec") or {})

    def check_status_change(
        self, new: Object, old: Object, version: VersionServing
    ) -> list[FieldError]:
        return budget_status_errors(new.get("status") or {})


def _scaling_rules(obj: Object) -> list[tuple[str, Object]]:
    """Return the directions of scaling that a request body has rules for, with the rules."""
    spec = obj.get("spec")
    behavior = spec.get("behavior") if isinstance(spec, dict) else None
    if not isinstance(behavior, dict):
        return []
    found = [(name, behavior.get(name)) for name in ("scaleUp", "scaleDown")]
    return [(name, rules) for name, rules in found if isinstance(rules, dict)]


def _default_v2(spec: Object) -> None:
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is None:
        return
    up = behavior.setdefault("scaleUp", {})
    up.setdefault("stabilizationWindowSeconds", 0)
    _default_rules(up, [_policy("Pods", 4), _policy("Percent", 100)])
    _default_rules(behavior.setdefault("scaleDown", {}), [_policy("Percent", 100)])


def _default_rules(rules: Object, policies: list[Object]) -> None:
    rules.setdefault("selectPolicy", "Max")
    if not rules.get("policies"):
        rules["policies"] = policies


def _policy(type: str, value: int) -> Object:
    return {"type": type, "value": value, "periodSeconds": 15}
