"""Computes an object's usage of a ResourceQuota; pure functions.

Called by the ResourceQuota plugin and the quota controller. Which objects a quota counts is in
``quota_scopes.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil

from instar.base.json_values import Object
from instar.kube.builtin_rules.pods.compute_resources import quantity_value
from instar.kube.builtin_rules.pods.pod_needs import has_pod_resources, pod_needs
from instar.server.registry.admission.plugins.quota.quota_scopes import in_scope

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
_OF_PODS = ("requests.", "limits.", "hugepages-")
_BARE = frozenset({"cpu", "memory", "ephemeral-storage"})
_REQUIRED = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
"""Where a quota limits one of these, each container must set it."""
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_OF_CLASS, _OF_DEVICES = ".storageclass.storage.k8s.io/", ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES = 32
"""Devices that a claim for all devices may get."""
Place = tuple[str, str]
"""Group and plural."""
Usage = dict[str, Fraction]


def count_name(group: str, plural: str) -> str:
    """Return the quota resource name that counts objects of a resource."""
    return f"count/{plural}.{group}" if group else f"count/{plural}"


def object_usage(group: str, plural: str, obj: Object) -> Usage:
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
        found |= _of_claim(obj)
    elif place == ("resource.k8s.io", "resourceclaims"):
        found |= _of_devices(obj.get("spec") or {})
    return found


def added_usage(quota: Object, place: Place, obj: Object, old: Object | None) -> Usage:
    """Return what a write adds to the usage of a quota that counts the object: all of it at a
    create, or where the quota did not count it before; else what is more than before."""
    now = object_usage(*place, obj)
    if old is None or not in_scope(quota, *place, old):
        return now
    before = object_usage(*place, old)
    return {name: max(amount - before.get(name, 0), Fraction()) for name, amount in now.items()}


def counts(place: Place, name: str) -> bool:
    """Return whether objects of the resource may have usage of this name."""
    if place == ("", "pods") and (name in _BARE or name.startswith(_OF_PODS)):
        return name != "requests.storage"
    if place == ("", "persistentvolumeclaims") and _OF_CLASS in name:
        return True
    if place == ("resource.k8s.io", "resourceclaims") and name.endswith(_OF_DEVICES):
        return True
    return name in object_usage(*place, {})


def missing_requirements(names: Iterable[str], pod: Object) -> str:
    """Return what the containers of a pod must set as a quota limits it; empty if nothing."""
    spec = pod.get("spec") or {}
    wanted = sorted(set(names) & set(_REQUIRED))
    if not wanted or has_pod_resources(spec):
        return ""
    lacking: dict[str, set[str]] = {}
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        for name in wanted:
            member, dot, bare = name.rpartition(".")
            if bare not in (resources.get(member if dot else "requests") or {}):
                lacking.setdefault(name, set()).add(container["name"])
    texts = [f"{name} for: {','.join(sorted(found))}" for name, found in sorted(lacking.items())]
    return f"must specify {'; '.join(texts)}" if texts else ""


def needs_content(name: str) -> bool:
    """Return whether usage depends on the objects' content, not only on their number."""
    return not name.startswith("count/") and name not in (set(COUNTED.values()) - {"pods"})


def _of_pod(pod: Object, counted: Usage) -> Usage:
    if (pod.get("status") or {}).get("phase") in _FINISHED_PHASES:
        return {name: amount for name, amount in counted.items() if name != "pods"}
    for member in ("requests", "limits"):
        for name, amount in pod_needs(pod, member).items():
            counted[f"{member}.{name}"] = amount
            if member == "requests":
                counted[name] = amount
    return counted


def _of_service(spec: Object) -> Usage:
    kind, ports = spec.get("type"), spec.get("ports") or ()
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        ports = [port for port in ports if port.get("nodePort")]
    wanted = len(ports) if kind in ("NodePort", "LoadBalancer") else 0
    return {
        "services.nodeports": Fraction(wanted),
        "services.loadbalancers": Fraction(kind == "LoadBalancer"),
    }


def _of_claim(claim: Object) -> Usage:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
    given = (status.get("allocatedResources") or {}).get("storage", "0")
    storage = Fraction(ceil(max(quantity_value(asked), quantity_value(given))))
    found = {"requests.storage": storage}
    annotations = (claim.get("metadata") or {}).get("annotations") or {}
    name = annotations.get(_CLASS_ANNOTATION) or spec.get("storageClassName")
    if name:
        found[f"{name}{_OF_CLASS}requests.storage"] = storage
        found[f"{name}{_OF_CLASS}persistentvolumeclaims"] = Fraction(1)
    return found


def _of_devices(spec: Object) -> Usage:
    """Of alternatives each device class counts with the most that it may have to give."""
    found: Usage = {}
    for request in (spec.get("devices") or {}).get("requests") or ():
        most: Usage = {}
        exactly = request.get("exactly")
        for one in request.get("firstAvailable") or ([exactly] if exactly else ()):
            name = f"{one.get('deviceClassName', '')}{_OF_DEVICES}"
            most[name] = max(most.get(name, Fraction()), _devices(one))
        for name, amount in most.items():
            found[name] = found.get(name, Fraction()) + amount
    return found


def _devices(request: Object) -> Fraction:
    match request.get("allocationMode", "ExactCount"):
        case "ExactCount":
            return Fraction(request.get("count", 1))
        case "All":
            return Fraction(_MOST_DEVICES)
    return Fraction()
