"""Validates LabelSelectors, and checks that a selector matches the labels of its template.

Called by the rules of workloads, networking and admission.
"""

from __future__ import annotations

from typing import Any

from instar.base.field_errors import FieldError, child, forbidden, index, invalid, required
from instar.base.json_values import Object
from instar.kube.api.label_selector import selector_of
from instar.kube.api.string_rules import label_value, qualified_name
from instar.kube.builtin_rules.basics import texts_at

VALUES_NEEDED = "must be specified when `operator` is 'In' or 'NotIn'"
VALUES_FORBIDDEN = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
NO_OPERATOR = "not a valid selector operator"
MISMATCH = "`selector` does not match template `labels`"


def selector_errors(selector: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    where = child(path, "matchLabels")
    for key, value in (selector.get("matchLabels") or {}).items():
        found += texts_at(where, key, qualified_name(key))
        found += texts_at(where, value, label_value(value))
    where = child(path, "matchExpressions")
    for position, expression in enumerate(selector.get("matchExpressions") or ()):
        found += _expression_errors(expression, index(where, position))
    return found


def _expression_errors(expression: Object, path: str) -> list[FieldError]:
    values, operator = expression.get("values") or [], expression.get("operator", "")
    found: list[FieldError] = []
    if operator in ("In", "NotIn"):
        if not values:
            found.append(required(child(path, "values"), VALUES_NEEDED))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            found.append(forbidden(child(path, "values"), VALUES_FORBIDDEN))
    else:
        found.append(invalid(child(path, "operator"), operator, NO_OPERATOR))
    found += texts_at(
        child(path, "key"), expression.get("key", ""), qualified_name(expression.get("key", ""))
    )
    for position, value in enumerate(values):
        found += texts_at(index(child(path, "values"), position), value, label_value(value))
    return found


def is_empty(selector: Object) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def is_convertible(selector: Object) -> bool:
    """Return whether upstream can convert it to requirements."""
    return not selector_errors(selector, "")


def in_go_order(selector: Object | None) -> Any:
    """Return the selector with its members in the order in which Go prints them."""
    if selector is None:
        return None
    names = ("key", "operator", "values")
    shown: Object = {}
    if selector.get("matchLabels"):
        shown["matchLabels"] = dict(sorted(selector["matchLabels"].items()))
    if selector.get("matchExpressions"):
        shown["matchExpressions"] = [
            {name: one[name] for name in names if name in one}
            for one in selector["matchExpressions"]
        ]
    return shown


def label_errors(selector: Object | None, labels: Any, path: str) -> list[FieldError]:
    """Check that the selector matches the labels at ``path``, the template's. None matches
    nothing; an empty one is always satisfied."""
    matcher = selector_of(selector)
    if matcher is not None and matcher.matches(labels or {}):
        return []
    shown = dict(sorted(labels.items())) if labels else None
    return [invalid(f"{path}.metadata.labels", shown, MISMATCH)]
