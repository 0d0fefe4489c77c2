"""Validates LimitRanges and ResourceQuotas.

Called by ``server/registry/kinds/limits.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

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
from instar.kube.api.string_rules import qualified_name
from instar.kube.builtin_rules.basics import NOT_NEGATIVE, immutable_errors, texts_at
from instar.kube.builtin_rules.pods.compute_resources import (
    is_standard,
    name_errors,
    quantity_value,
)

_NAMES = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_WHOLE = frozenset(
    {
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
_QUOTA = _WHOLE | {
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage",
    "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage",
}  # fmt: skip
SCOPES = (
    "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass",
    "CrossNamespacePodAffinity", "VolumeAttributesClass",
)  # fmt: skip
_POD_RESOURCES = frozenset(
    {"pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
_SCOPED = {
    **dict.fromkeys(SCOPES, _POD_RESOURCES),
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
"""Scope → the standard resources that it can be applied to."""


def limit_range_errors(obj: Object) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, item in enumerate(obj["spec"].get("limits") or ()):
        path = index("spec.limits", position)
        type = item.get("type", "")
        found += texts_at(child(path, "type"), type, qualified_name(type))
        if type in seen:
            found.append(duplicate(child(path, "type"), type))
        seen.add(type)
        found += _item_errors(item, path, type)
    return found


def _item_errors(item: Object, path: str, type: str) -> list[FieldError]:
    found: list[FieldError] = []
    given = {name: item.get(name) or {} for name in _NAMES}
    for name in ("max", "min"):
        found += _name_errors(given[name], child(path, name), type)
    if type == "Pod":
        for name in ("default", "defaultRequest"):
            if given[name]:
                text = "may not be specified when `type` is 'Pod'"
                found.append(forbidden(child(path, name), text))
    else:
        for name in ("default", "defaultRequest"):
            found += _name_errors(given[name], child(path, name), type)
    if type == "PersistentVolumeClaim" and not given["min"] and not given["max"]:
        text = "either minimum or maximum storage value is required, but neither was provided"
        found.append(required(child(path, "limits"), text))
    found += _name_errors(given["maxLimitRequestRatio"], child(path, "maxLimitRequestRatio"), type)
    for resource in sorted({name for part in given.values() for name in part}):
        found += _order_errors({n: part.get(resource) for n, part in given.items()}, path, resource)
    return found


def _name_errors(part: Mapping[str, str], path: str, type: str) -> list[FieldError]:
    found: list[FieldError] = []
    for name in part:
        where = key(path, name)
        found += name_errors(name, where) if type in ("Container", "Pod") else []
        if type in ("Container", "Pod") and qualified_name(name):
            found.append(invalid(where, name, "must be a standard resource for containers"))
    return found


def _order_errors(values: Mapping[str, str | None], path: str, resource: str) -> list[FieldError]:
    """Check min ≤ defaultRequest ≤ default ≤ max, and a ratio of at least one."""
    found: list[FieldError] = []

    def check_order(left: str, right: str, label: str, words: tuple[str, str], shown: str) -> None:
        one, other = values[left], values[right]
        if one is None or other is None or quantity_value(one) <= quantity_value(other):
            return
        text = f"{words[0]} value {one} is greater than {words[1]} value {other}"
        found.append(invalid(key(child(path, label), resource), values[shown], text))

    check_order("min", "max", "min", ("min", "max"), "min")
    check_order(
        "min", "defaultRequest", "defaultRequest", ("min", "default request"), "defaultRequest"
    )
    check_order(
        "defaultRequest", "max", "defaultRequest", ("default request", "max"), "defaultRequest"
    )
    words = ("default request", "default")
    check_order("defaultRequest", "default", "defaultRequest", words, "defaultRequest")
    check_order("min", "default", "default", ("min", "default"), "min")
    check_order("default", "max", "default", ("default", "max"), "max")
    ratio = values["maxLimitRequestRatio"]
    if ratio is not None and quantity_value(ratio) < 1:
        where = key(child(path, "maxLimitRequestRatio"), resource)
        found.append(invalid(where, ratio, f"ratio {ratio} is less than 1"))
    return found


def quota_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found: list[FieldError] = []
    for name, amount in (spec.get("hard") or {}).items():
        where = key("spec.hard", name)
        found += _quota_name_errors(name, where)
        value = quantity_value(amount)
        if value < 0:
            found.append(invalid(where, amount, NOT_NEGATIVE))
        if name in _WHOLE and value.denominator != 1:
            found.append(invalid(where, amount, "must be an integer"))
    return found + _scope_errors(spec)


def _quota_name_errors(name: str, path: str) -> list[FieldError]:
    wrong = texts_at(path, name, qualified_name(name))
    if wrong:
        return [*wrong, invalid(path, name, "must be a standard resource for quota")]
    if "/" in name:
        return []
    found: list[FieldError] = []
    if not is_standard(name):
        found.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    if name not in _QUOTA and not name.startswith(("hugepages-", "requests.", "limits.")):
        found.append(invalid(path, name, "must be a standard resource for quota"))
    return found


def _scope_errors(spec: Object) -> list[FieldError]:
    scopes = spec.get("scopes") or []
    if not scopes:
        return []
    found: list[FieldError] = []
    for scope in scopes:
        if scope not in SCOPES:
            found.append(invalid("spec.scopes", scopes, "unsupported scope"))
        for name in sorted(spec.get("hard") or {}):
            if name in _QUOTA and name not in _SCOPED.get(scope, _QUOTA):
                text = "unsupported scope applied to resource"
                found.append(invalid("spec.scopes", scopes, text))
    pairs = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
    found += [
        invalid("spec.scopes", scopes, "conflicting scopes")
        for pair in pairs
        if set(pair) <= set(scopes)
    ]
    return found


def quota_change_errors(new: Object, old: Object) -> list[FieldError]:
    after, before = new.get("spec") or {}, old.get("spec") or {}
    return immutable_errors(after.get("scopes"), before.get("scopes"), "spec.scopes")
