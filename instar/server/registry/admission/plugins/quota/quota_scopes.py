"""Decides which objects a ResourceQuota counts, by its scopes; pure functions.

Called by the ResourceQuota plugin and by the running totals. Scopes select pods, one of them
claims; a quota with scopes counts nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from instar.base.json_values import Object
from instar.server.registry.kinds.workloads.qos import qos_class

_PODS, _CLAIMS = ("", "pods"), ("", "persistentvolumeclaims")


def in_scope(quota: Object, group: str, plural: str, obj: Object) -> bool:
    """Return whether the quota counts the object."""
    spec = quota.get("spec") or {}
    selector = (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    asked = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    asked += selector
    if not asked:
        return True
    place = (group, plural)
    if place == _PODS:
        return all(_selects_pod(one, obj.get("spec") or {}) for one in asked)
    return place == _CLAIMS and all(_selects_claim(one, obj) for one in asked)


def is_terminating_pod(spec: Object) -> bool:
    """Return whether the pod ends by itself, as the scope Terminating says."""
    seconds = spec.get("activeDeadlineSeconds")
    return bool(seconds is not None and seconds >= 0)


def _selects_pod(asked: Object, spec: Object) -> bool:
    scope = asked.get("scopeName")
    if scope in ("Terminating", "NotTerminating"):
        ends = is_terminating_pod(spec)
        return bool(ends == (scope == "Terminating"))
    if scope in ("BestEffort", "NotBestEffort"):
        return bool((qos_class(spec) == "BestEffort") == (scope == "BestEffort"))
    if scope == "PriorityClass":
        name = spec.get("priorityClassName")
        return _selects_name(asked, [name] if name else [])
    return scope == "CrossNamespacePodAffinity" and any(map(_is_across, _affinity_terms(spec)))


def _selects_claim(asked: Object, claim: Object) -> bool:
    if asked.get("scopeName") != "VolumeAttributesClass":
        return False
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    names = {
        spec.get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    }
    return _selects_name(asked, [name for name in names if name])


def _selects_name(asked: Object, names: Iterable[str]) -> bool:
    """Return whether one of the names fits; an object may have none."""
    found, values = list(names), asked.get("values") or []
    match asked.get("operator"):
        case "In":
            return any(name in values for name in found)
        case "NotIn":
            return not found or any(name not in values for name in found)
        case "Exists":
            return bool(found)
    return not found


def _affinity_terms(spec: Object) -> Iterator[Object]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        yield from rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}


def _is_across(term: Object) -> bool:
    """Return whether the term looks at pods of other namespaces."""
    return bool(term.get("namespaces")) or term.get("namespaceSelector") is not None
