"""Computes the quality-of-service class of a pod from its containers' resources.

Called by the pod strategy and the quota usage.
"""

from __future__ import annotations

from instar.base.json_values import Object

_QOS_RESOURCES = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    asked = [container.get("resources") or {} for container in containers]
    asked += [spec["resources"]] if spec.get("resources") else []
    requests = [_counted(resources, "requests") for resources in asked]
    limits = [_counted(resources, "limits") for resources in asked]
    if not any(requests) and not any(limits):
        return "BestEffort"
    guaranteed = all(
        set(limit) == set(_QOS_RESOURCES) and request == limit
        for request, limit in zip(requests, limits, strict=True)
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _counted(resources: Object, name: str) -> dict[str, str]:
    found = resources.get(name) or {}
    return {key: found[key] for key in _QOS_RESOURCES if key in found and found[key] != "0"}
