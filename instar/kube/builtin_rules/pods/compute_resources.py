"""Validates resource requests and limits, and compares quantities.

Called by the rules of containers, quotas and volumes, and by the LimitRanger plugin.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from instar.base.field_errors import FieldError, child, forbidden, invalid, key, required
from instar.base.json_values import Object
from instar.kube.api.string_rules import qualified_name
from instar.kube.builtin_rules.basics import NOT_NEGATIVE, texts_at
from instar.kube.quantities import split_quantity

_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD_RESOURCES = _CONTAINER_RESOURCES | {
    "requests.cpu", "requests.memory", "requests.ephemeral-storage", "limits.cpu",
    "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas", "services",
    "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims", "storage",
    "requests.storage", "services.nodeports", "services.loadbalancers",
}  # fmt: skip
_HUGE_PAGES = "hugepages-"
_MAX_EXPONENT = 400
"""Larger powers of ten are compared as this one."""


@lru_cache(maxsize=1024)
def quantity_value(text: str) -> Fraction:
    """Return the amount as a number; extreme exponents are capped."""
    digits, ten, two = split_quantity(text)
    ten = max(-_MAX_EXPONENT, min(_MAX_EXPONENT, ten))
    tens = Fraction(10**ten) if ten >= 0 else Fraction(1, 10**-ten)
    return Fraction(digits) * tens * Fraction(1024**two)


def is_standard(name: str) -> bool:
    return name in _STANDARD_RESOURCES or name.startswith(
        (_HUGE_PAGES, "requests." + _HUGE_PAGES, "limits." + _HUGE_PAGES)
    )


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def may_overcommit(name: str) -> bool:
    """Return whether a limit may be higher than its request."""
    return is_native(name) and not name.startswith(_HUGE_PAGES)


def amount_errors(name: str, quantity: str, path: str) -> list[FieldError]:
    value = quantity_value(quantity)
    if value < 0:
        return [invalid(path, quantity, NOT_NEGATIVE)]
    if not is_native(name) and value.denominator != 1:
        return [invalid(path, quantity, "must be an integer")]
    return []


def name_errors(name: str, path: str) -> list[FieldError]:
    if name in _CONTAINER_RESOURCES:
        return []
    found = texts_at(path, name, qualified_name(name))
    if found:
        return found
    if "/" not in name:
        if not is_standard(name):
            found.append(invalid(path, name, "must be a standard resource type or fully qualified"))
        if name not in _CONTAINER_RESOURCES and not name.startswith(_HUGE_PAGES):
            found.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        found.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return found


def is_extended(name: str) -> bool:
    """Return whether the name is an extended resource, as device plugins offer."""
    if is_native(name):
        return False
    return not name.startswith("requests.") and not qualified_name(f"requests.{name}")


def requirement_errors(resources: Object, path: str) -> list[FieldError]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    where_limits, where_requests = child(path, "limits"), child(path, "requests")
    found: list[FieldError] = []
    for name, quantity in limits.items():
        where = key(where_limits, name)
        found += [*name_errors(name, where), *amount_errors(name, quantity, where)]
    for name, quantity in requests.items():
        where = key(where_requests, name)
        found += [*name_errors(name, where), *amount_errors(name, quantity, where)]
        limit = limits.get(name)
        if limit is not None:
            found += _over_limit(name, quantity, limit, where_requests)
        elif not may_overcommit(name):
            text = "Limit must be set for non overcommitable resources"
            found.append(required(where_limits, text))
    named = {*limits, *requests}
    huge = any(name.startswith(_HUGE_PAGES) for name in named)
    if huge and not named & {"cpu", "memory"}:
        found.append(forbidden(path, "HugePages require cpu or memory"))
    return found


def _over_limit(name: str, quantity: str, limit: str, path: str) -> list[FieldError]:
    if quantity == limit:
        return []
    amount, most = quantity_value(quantity), quantity_value(limit)
    if amount != most and not may_overcommit(name):
        return [invalid(path, quantity, f"must be equal to {name} limit of {limit}")]
    if amount > most:
        return [invalid(path, quantity, f"must be less than or equal to {name} limit of {limit}")]
    return []
