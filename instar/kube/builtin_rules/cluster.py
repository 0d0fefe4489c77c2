"""Validates nodes, namespaces, priority and runtime classes, leases and API services.

Called by ``server/registry/kinds/cluster.py`` and ``server/registry/kinds/namespaces.py``.
"""

from __future__ import annotations

from instar.base.field_errors import (
    FieldError,
    child,
    duplicate,
    forbidden,
    index,
    invalid,
    key,
    required,
)
from instar.base.json_values import Object
from instar.kube.api.string_rules import (
    dns1035_label,
    dns1123_label,
    dns1123_subdomain,
    label_value,
    qualified_name,
)
from instar.kube.builtin_rules.addresses import network_errors
from instar.kube.builtin_rules.basics import (
    choice_errors,
    count_errors,
    immutable_errors,
    label_map_errors,
    texts_at,
)
from instar.kube.builtin_rules.pods.compute_resources import amount_errors
from instar.kube.builtin_rules.pods.scheduling import toleration_errors

HIGHEST_USER_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = ("system-node-critical", "system-cluster-critical")
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LEVELS = ("privileged", "baseline", "restricted")
_POD_SECURITY = "pod-security.kubernetes.io/"


# Namespaces and nodes -----------------------------------------------------------------------------


def namespace_errors(obj: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for name in (obj.get("spec") or {}).get("finalizers") or ():
        wrong = texts_at("spec.finalizers", name, qualified_name(name))
        if not wrong and "/" not in name and name not in ("kubernetes", "orphan"):
            text = "name is neither a standard finalizer name nor is it fully qualified"
            wrong = [invalid("spec.finalizers", name, text)]
        found += wrong
    return found


def pod_security_errors(obj: Object) -> list[FieldError]:
    labels = obj["metadata"].get("labels") or {}
    found: list[FieldError] = []
    for name in ("enforce", "audit", "warn"):
        label = f"{_POD_SECURITY}{name}"
        level = labels.get(label)
        if level is not None and level not in _LEVELS:
            text = f"must be one of {', '.join(_LEVELS)}"
            found.append(invalid(key("metadata.labels", label), level, text))
    return found


def namespace_status_errors(obj: Object) -> list[FieldError]:
    phase = (obj.get("status") or {}).get("phase")
    deleted = "deletionTimestamp" in obj["metadata"]
    if deleted and phase != "Terminating":
        text = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        return [invalid("status.Phase", phase, text)]
    if not deleted and phase != "Active":
        text = "may only be 'Active' if `deletionTimestamp` is empty"
        return [invalid("status.Phase", phase, text)]
    return []


def node_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = _taint_errors(spec.get("taints") or [])
    networks = spec.get("podCIDRs") or []
    for position, text in enumerate(networks):
        found += network_errors(text, index("spec.podCIDRs", position))
    families = [":" in text for text in networks]
    if len(networks) > 2 or (len(networks) == 2 and families[0] == families[1]):
        text = "may specify no more than one CIDR for each IP family"
        found.append(invalid("spec.podCIDRs", networks, text))
    return found


def _taint_errors(taints: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(taints):
        path = index("metadata.taints", position)
        name, value, effect = (taint.get(part, "") for part in ("key", "value", "effect"))
        found += texts_at(child(path, "key"), name, qualified_name(name))
        found += texts_at(child(path, "value"), value, label_value(value))
        if not effect:
            found.append(required(child(path, "effect")))
        else:
            found += choice_errors(effect, child(path, "effect"), _TAINT_EFFECTS)
        if effect and (name, effect) in seen:
            shown = {"Key": name, "Value": value, "Effect": effect, "TimeAdded": None}
            again = duplicate(path, shown)
            text = "taints must be unique by key and effect pair"
            found.append(FieldError(again.kind, path, text, shown))
        seen.add((name, effect))
    return found


def node_change_errors(new: Object, old: Object) -> list[FieldError]:
    after, before = new.get("spec") or {}, old.get("spec") or {}
    found: list[FieldError] = []
    if before.get("podCIDRs") and after.get("podCIDRs") != before["podCIDRs"]:
        text = 'node updates may not change podCIDR except from "" to valid'
        found.append(forbidden("spec.podCIDRs", text))
    if before.get("providerID") and after.get("providerID") != before["providerID"]:
        text = 'node updates may not change providerID except from "" to valid'
        found.append(forbidden("spec.providerID", text))
    return found + _taint_errors(after.get("taints") or [])


def node_status_errors(obj: Object) -> list[FieldError]:
    status = obj.get("status") or {}
    found: list[FieldError] = []
    for member in ("capacity", "allocatable"):
        for name, amount in (status.get(member) or {}).items():
            found += amount_errors(name, amount, f"status.{member}.{name}")
    return found


# Classes, leases ----------------------------------------------------------------------------------


def priority_class_errors(obj: Object) -> list[FieldError]:
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    found: list[FieldError] = []
    if name.startswith("system-"):
        if name not in _SYSTEM_CLASSES:
            text = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {name} is not a known system priority class"
            )
            found.append(forbidden("metadata.name", text))
    elif value > HIGHEST_USER_PRIORITY:
        text = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        found.append(forbidden("value", text))
    policy = obj.get("preemptionPolicy")
    if policy is not None:
        choices = ("PreemptLowerPriority", "Never")
        found += choice_errors(policy, "preemptionPolicy", choices)
    return found


def priority_class_change_errors(new: Object, old: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if new.get("value", 0) != old.get("value", 0):
        found.append(forbidden("value", "may not be changed in an update."))
    policy = new.get("preemptionPolicy")
    return found + immutable_errors(policy, old.get("preemptionPolicy"), "preemptionPolicy")


def runtime_class_errors(obj: Object) -> list[FieldError]:
    handler = obj.get("handler", "")
    found: list[FieldError] = []
    if not handler:
        found.append(required("handler"))
    else:
        found += texts_at("handler", handler, dns1123_label(handler))
    for name, amount in ((obj.get("overhead") or {}).get("podFixed") or {}).items():
        found += amount_errors(name, amount, key("overhead.limits", name))
    scheduling = obj.get("scheduling") or {}
    found += label_map_errors(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
    tolerations = scheduling.get("tolerations") or []
    return found + toleration_errors(tolerations, "scheduling.tolerations")


def lease_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found: list[FieldError] = []
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        found.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    return found + count_errors(spec, "spec", "leaseTransitions")


# API services -------------------------------------------------------------------------------------


def api_service_errors(obj: Object) -> list[FieldError]:
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    group, version = spec.get("group", ""), spec.get("version", "")
    found: list[FieldError] = []
    if name != f"{version}.{group}":
        text = f'must be `spec.version+"."+spec.group`: "{version}.{group}"'
        found.append(invalid("metadata.name", name, text))
    if group:
        found += texts_at("spec.group", group, dns1123_subdomain(group))
    found += texts_at("spec.version", version, dns1035_label(version))
    for member, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        value = spec.get(member, 0)
        if not 0 < value <= most:
            text = f"must be positive and less than {most}"
            found.append(invalid(f"spec.{member}", value, text))
    return found + _backing_errors(spec)


def _backing_errors(spec: Object) -> list[FieldError]:
    service, careless = spec.get("service"), spec.get("insecureSkipTLSVerify", False)
    found: list[FieldError] = []
    if service is None:
        if spec.get("caBundle"):
            text = "local APIServices may not have a caBundle"
            found.append(invalid("spec.caBundle", "…", text))
        if careless:
            text = "local APIServices may not have insecureSkipTLSVerify"
            found.append(invalid("spec.insecureSkipTLSVerify", True, text))
        return found
    names = ("namespace", "name")
    found += [required(f"spec.service.{name}") for name in names if not service.get(name)]
    port = service.get("port")
    if port is not None and not 1 <= port <= 65535:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        found.append(invalid("spec.service.port", port, text))
    if careless and spec.get("caBundle"):
        text = "may not be true if caBundle is present"
        found.append(invalid("spec.insecureSkipTLSVerify", True, text))
    return found
