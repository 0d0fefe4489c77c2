"""Aggregated ClusterRoles: computes the rules that an ``aggregationRule`` collects.

Called by ``server/registry/controllers/roles/controller.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from instar.base.json_values import Object
from instar.kube.api.label_selector import selector_of


def aggregated(name: str, role: Object, roles: Mapping[str, Object]) -> list[Object] | None:
    """Return the rules that the role should have, or None if it has no aggregationRule.

    The rules are collected selector by selector, from the matching roles in order of their names,
    without the role itself and without duplicates.
    """
    rule = role.get("aggregationRule")
    if not isinstance(rule, dict):
        return None
    found: list[Object] = []
    for selector in rule.get("clusterRoleSelectors") or ():
        chosen = selector_of(selector)
        for other in sorted(roles):
            labels = roles[other]["metadata"].get("labels") or {}
            if other == name or chosen is None or not chosen.matches(labels):
                continue
            found += [item for item in roles[other].get("rules") or () if item not in found]
    return found


def aggregate_all(roles: Mapping[str, Object]) -> dict[str, list[Object]]:
    """Return the final rules of every aggregated role.

    A role may aggregate other aggregated roles. In a cycle each gets the rules of all; the
    iteration ends because rules are only copied, never created.
    """
    now = dict(roles)
    aggregating = sorted(name for name, role in roles.items() if role.get("aggregationRule"))
    for _ in range(len(aggregating) + 1):
        moved = False
        for name in aggregating:
            rules = aggregated(name, now[name], now)
            if rules is not None and rules != (now[name].get("rules") or []):
                now[name] = {**now[name], "rules": rules}
                moved = True
        if not moved:
            break
    return {
        name: now[name].get("rules") or []
        for name in aggregating
        if isinstance(now[name].get("aggregationRule"), dict)
    }
