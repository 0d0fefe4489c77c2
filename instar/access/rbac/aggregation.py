"""ClusterRoles made of others: which rules an ``aggregationRule`` gathers. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from instar.api.labelselector import selector_of
from instar.plain import Object


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
