"""Validates scheduling fields: affinity, tolerations, topology spread, scheduling gates.

Called by ``pod_spec.py`` and the rules of nodes and volumes.
"""

from __future__ import annotations

from instar.base.field_errors import (
    FieldError,
    child,
    duplicate,
    forbidden,
    index,
    invalid,
    not_supported,
    required,
)
from instar.base.json_values import Object
from instar.kube.api.string_rules import dns1123_label, label_value, qualified_name
from instar.kube.builtin_rules.basics import label_name_errors, texts_at
from instar.kube.builtin_rules.selectors import (
    NO_OPERATOR,
    VALUES_FORBIDDEN,
    VALUES_NEEDED,
    selector_errors,
)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT_TEXT = "must be in the range 1-100"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SPREADS = ("DoNotSchedule", "ScheduleAnyway")


def affinity_errors(affinity: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    node = affinity.get("nodeAffinity")
    if node is not None:
        found += _node_affinity_errors(node, child(path, "nodeAffinity"))
    for name in ("podAffinity", "podAntiAffinity"):
        if affinity.get(name) is not None:
            found += _pod_affinity_errors(affinity[name], child(path, name))
    return found


def _node_affinity_errors(affinity: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    needed = affinity.get(_REQUIRED)
    if needed is not None:
        found += node_selector_errors(needed, child(path, _REQUIRED))
    for position, term in enumerate(affinity.get(_PREFERRED) or ()):
        where = index(child(path, _PREFERRED), position)
        found += _weight_errors(term, where)
        found += node_term_errors(term.get("preference") or {}, child(where, "preference"))
    return found


def node_selector_errors(selector: Object, path: str) -> list[FieldError]:
    where, terms = child(path, "nodeSelectorTerms"), selector.get("nodeSelectorTerms") or ()
    if not terms:
        return [required(where, "must have at least one node selector term")]
    found: list[FieldError] = []
    for position, term in enumerate(terms):
        found += node_term_errors(term, index(where, position))
    return found


def node_term_errors(term: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    where = child(path, "matchExpressions")
    for position, expression in enumerate(term.get("matchExpressions") or ()):
        found += _node_expression_errors(expression, index(where, position))
    where = child(path, "matchFields")
    for position, expression in enumerate(term.get("matchFields") or ()):
        found += _field_expression_errors(expression, index(where, position))
    return found


def _node_expression_errors(expression: Object, path: str) -> list[FieldError]:
    operator, values = expression.get("operator", ""), expression.get("values") or []
    found: list[FieldError] = []
    where = child(path, "values")
    if operator in ("In", "NotIn"):
        if not values:
            found.append(required(where, VALUES_NEEDED))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            found.append(forbidden(where, VALUES_FORBIDDEN))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            found.append(required(where, text))
    else:
        found.append(invalid(child(path, "operator"), operator, NO_OPERATOR))
    return found + label_name_errors(expression.get("key", ""), child(path, "key"))


def _field_expression_errors(expression: Object, path: str) -> list[FieldError]:
    operator, values = expression.get("operator", ""), expression.get("values") or []
    found: list[FieldError] = []
    if operator not in ("In", "NotIn"):
        found.append(invalid(child(path, "operator"), operator, NO_OPERATOR))
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.append(required(child(path, "values"), text))
    if expression.get("key") != "metadata.name":
        text = "not a valid field selector key"
        found.append(invalid(child(path, "key"), expression.get("key", ""), text))
    return found


def _pod_affinity_errors(affinity: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, term in enumerate(affinity.get(_REQUIRED) or ()):
        found += _pod_term_errors(term, index(child(path, _REQUIRED), position))
    for position, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        where = index(child(path, _PREFERRED), position)
        found += _weight_errors(weighted, where)
        term = weighted.get("podAffinityTerm") or {}
        found += _pod_term_errors(term, child(where, "podAffinityTerm"))
    return found


def _pod_term_errors(term: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for name in ("labelSelector", "namespaceSelector"):
        if term.get(name) is not None:
            found += selector_errors(term[name], child(path, name))
    for name in term.get("namespaces") or ():
        found += texts_at(child(path, "namespace"), name, dns1123_label(name))
    key, where = term.get("topologyKey", ""), child(path, "topologyKey")
    if not key:
        found.append(required(where, "can not be empty"))
    return found + texts_at(where, key, qualified_name(key))


def _weight_errors(term: Object, path: str) -> list[FieldError]:
    weight = term.get("weight", 0)
    if 1 <= weight <= 100:
        return []
    return [invalid(child(path, "weight"), weight, _WEIGHT_TEXT)]


def toleration_errors(tolerations: list[Object], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, toleration in enumerate(tolerations):
        found += _toleration_errors(toleration, index(path, position))
    return found


def _toleration_errors(toleration: Object, path: str) -> list[FieldError]:
    key, effect = toleration.get("key", ""), toleration.get("effect", "")
    operator, value = toleration.get("operator", ""), toleration.get("value", "")
    where = child(path, "operator")
    found = label_name_errors(key, child(path, "key")) if key else []
    if not key and operator != "Exists":
        text = (
            'operator must be Exists when `key` is empty, which means "match all values and all '
            'keys"'
        )
        found.append(invalid(where, operator, text))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(invalid(child(path, "effect"), effect, text))
    if operator in ("", "Equal"):
        texts = label_value(value)
        found += [invalid(where, value, ";".join(texts))] if texts else []
    elif operator == "Exists":
        if value:
            text = "value must be empty when `operator` is 'Exists'"
            found.append(invalid(where, value, text))
    else:
        found.append(not_supported(where, operator, ("Equal", "Exists")))
    if effect and effect not in _EFFECTS:
        found.append(not_supported(child(path, "effect"), effect, _EFFECTS))
    return found


def spread_errors(constraints: list[Object], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for position, constraint in enumerate(constraints):
        where = index(path, position)
        skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
        unmet = constraint.get("whenUnsatisfiable", "")
        if skew <= 0:
            found.append(invalid(child(where, "maxSkew"), skew, "must be greater than zero"))
        if not key:
            found.append(required(child(where, "topologyKey"), "can not be empty"))
        if unmet not in _SPREADS:
            found.append(not_supported(child(where, "whenUnsatisfiable"), unmet, _SPREADS))
        if (key, unmet) in seen:
            pair = f"{{{key}, {unmet}}}"
            found.append(duplicate(child(where, "{topologyKey, whenUnsatisfiable}"), pair))
        seen.add((key, unmet))
        least = constraint.get("minDomains")
        if least is not None and least <= 0:
            found.append(invalid(child(where, "minDomains"), least, "must be greater than zero"))
        if constraint.get("labelSelector") is not None:
            found += selector_errors(constraint["labelSelector"], child(where, "labelSelector"))
    return found


def gate_errors(gates: list[Object], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, gate in enumerate(gates):
        name, where = gate.get("name", ""), index(path, position)
        found += label_name_errors(name, where)
        if name in seen:
            found.append(duplicate(where, name))
        seen.add(name)
    return found
