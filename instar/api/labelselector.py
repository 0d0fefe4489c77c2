"""A ``LabelSelector`` object (matchLabels, matchExpressions) as something that can be asked.

The grammar of the query string is ``selectors.py``'s; both end in the same requirements.
"""

from __future__ import annotations

from typing import Any

from instar.api.selectors import LabelSelector, Requirement

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def selector_of(obj: Any) -> LabelSelector | None:
    """None where there is no selector; ``{}`` matches everything. Validated before it is stored,
    so what makes no sense (by another's hand) matches nothing."""
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
