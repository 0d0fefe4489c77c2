"""Computes an object's usage of a ResourceQuota; pure functions.

Called by the ResourceQuota plugin and the quota controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from instar.base.json_values import Object
from instar.kube.builtin_rules.pods.compute_resources import quantity_value
from instar.server.registry.kinds.workloads.qos import qos_class

COUNTED = {
    ("", "pods"): "pods",
    ("", "services"): "services",
    ("", "configmaps"): "configmaps",
    ("", "secrets"): "secrets",
    ("", "persistentvolumeclaims"): "persistentvolumeclaims",
    ("", "replicationcontrollers"): "replicationcontrollers",
    ("", "resourcequotas"): "resourcequotas",
}
"""Resources whose number has an older name, besides ``count/…``."""
_FINISHED_PHASES = ("Succeeded", "Failed")
Amounts = Mapping[str, Fraction]


def count_name(group: str, plural: str) -> str:
    """Return the quota resource name that counts objects of a resource."""
    return f"count/{plural}.{group}" if group else f"count/{plural}"


def object_usage(group: str, plural: str, obj: Object) -> dict[str, Fraction]:
    """Return the object's usage by quota resource name."""
    found = {count_name(group, plural): Fraction(1)}
    place = (group, plural)
    if place in COUNTED:
        found[COUNTED[place]] = Fraction(1)
    if place == ("", "pods"):
        found = _of_pod(obj, found)
    elif place == ("", "services"):
        found |= _of_service(obj.get("spec") or {})
    elif place == ("", "persistentvolumeclaims"):
        found |= _of_claim(obj.get("spec") or {})
    return found


def needs_content(name: str) -> bool:
    """Return whether usage depends on the objects' content, not only on their number."""
    return not name.startswith("count/") and name not in (set(COUNTED.values()) - {"pods"})


def _of_pod(pod: Object, counts: dict[str, Fraction]) -> dict[str, Fraction]:
    if (pod.get("status") or {}).get("phase") in _FINISHED_PHASES:
        return {name: amount for name, amount in counts.items() if name != "pods"}
    spec = pod.get("spec") or {}
    for member in ("requests", "limits"):
        for name, amount in _needs(spec, member).items():
            counts[f"{member}.{name}"] = amount
            if member == "requests":
                counts[name] = amount
    return counts


def _needs(spec: Object, member: str) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for container in spec.get("containers") or ():
        for name, text in ((container.get("resources") or {}).get(member) or {}).items():
            total[name] = total.get(name, Fraction()) + quantity_value(text)
    for container in spec.get("initContainers") or ():
        for name, text in ((container.get("resources") or {}).get(member) or {}).items():
            total[name] = max(total.get(name, Fraction()), quantity_value(text))
    return total


def _of_service(spec: Object) -> dict[str, Fraction]:
    ports = Fraction(sum(1 for port in spec.get("ports") or () if port.get("nodePort")))
    found = {"services.nodeports": ports} if spec.get("type") != "ClusterIP" else {}
    if spec.get("type") == "LoadBalancer":
        found["services.loadbalancers"] = Fraction(1)
    return found


def _of_claim(spec: Object) -> dict[str, Fraction]:
    text = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
    found = {"requests.storage": quantity_value(text)}
    name = spec.get("storageClassName")
    if name:
        found[f"{name}.storageclass.storage.k8s.io/requests.storage"] = quantity_value(text)
        found[f"{name}.storageclass.storage.k8s.io/persistentvolumeclaims"] = Fraction(1)
    return found


def in_scope(quota: Object, group: str, plural: str, obj: Object) -> bool:
    """Return whether the quota counts the object. Scopes select pods; a quota with scopes counts
    nothing else."""
    spec = quota.get("spec") or {}
    selector = (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    asked = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    asked += selector
    if not asked:
        return True
    if (group, plural) != ("", "pods"):
        return False
    return all(_matches(one, obj.get("spec") or {}) for one in asked)


def _matches(asked: Object, spec: Object) -> bool:
    scope = asked.get("scopeName")
    if scope in ("Terminating", "NotTerminating"):
        ends = spec.get("activeDeadlineSeconds") is not None
        return bool(ends == (scope == "Terminating"))
    if scope in ("BestEffort", "NotBestEffort"):
        return bool((qos_class(spec) == "BestEffort") == (scope == "BestEffort"))
    if scope == "PriorityClass":
        name, values = spec.get("priorityClassName", ""), asked.get("values") or []
        operator = asked.get("operator")
        if operator == "In":
            return name in values
        if operator == "NotIn":
            return name not in values
        return bool(name) == (operator == "Exists")
    return False
