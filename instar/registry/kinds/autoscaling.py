"""HorizontalPodAutoscalers: v2 is kept, v1 is a view of it that carries the rest in annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.plain import Object
from instar.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.registry.resources.serving import VersionServing


class AutoscalerStrategy(BuiltinStrategy):
    reshapes = True

    def default(self, obj: Object, version: VersionServing) -> None:
        spec = obj["spec"]
        spec.setdefault("minReplicas", 1)
        if version.name == "v2":
            _default_v2(spec)
        else:
            spec.setdefault("targetCPUUtilizationPercentage", 80)


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
