"""``LabelSelector`` objects (matchLabels, matchExpressions) as matchers and as text.

Called for selectors in objects: RBAC aggregation, webhook and policy configurations, scale.
Selectors of a query string are parsed by ``selectors.py``; both give the same requirements.
"""

from __future__ import annotations

from typing import Any

from instar.kube.api.selectors import LabelSelector, Requirement

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def selector_of(obj: Any) -> LabelSelector | None:
    """Return the matcher; None for no selector; ``{}`` matches everything.

    Selectors are validated before they are stored; an invalid one (written around the API) matches
    nothing.
    """
    if not isinstance(obj, dict):
        return None
    labels = obj.get("matchLabels") or {}
    found = [
        Requirement(key, "in", frozenset((str(value),))) for key, value in sorted(labels.items())
    ]
    for expression in obj.get("matchExpressions") or ():
        operator = _OPERATORS.get(str(expression.get("operator")), "in")
        values = frozenset(map(str, expression.get("values") or ()))
        found.append(Requirement(str(expression.get("key", "")), operator, values))
    return LabelSelector(tuple(found))


def selector_text(obj: dict[str, Any]) -> str:
    """Return the selector in query syntax, sorted by key: ``app=a,k in (x,y)``."""
    labels = obj.get("matchLabels") or {}
    parts = [(str(key), f"{key}={value}") for key, value in labels.items()]
    for expression in obj.get("matchExpressions") or ():
        key, values = expression.get("key", ""), sorted(expression.get("values") or ())
        text = {
            "In": f"{key} in ({','.join(values)})",
            "NotIn": f"{key} notin ({','.join(values)})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }.get(expression.get("operator"), "")
        parts.append((str(key), str(text)))
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))
