"""ClusterRoles made of others: which rules an ``aggregationRule`` gathers. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from instar.base.json_values import Object
from instar.kube.api.label_selector import selector_of


def aggregated(name: str, role: Object, roles: Mapping[str, Object]) -> list[Object] | None:
    """The rules the role should have, or None when it gathers none.

    Selector by selector, matching roles by name, without itself and without repeating a rule.
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


def gathered(roles: Mapping[str, Object]) -> dict[str, list[Object]]:
    """The rules of every aggregated role once all of them have come to rest.

    A role may gather from roles that gather. Where they do so in a circle, each ends with the
    rules of all; there is an end because rules only travel, and nobody makes new ones.
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
