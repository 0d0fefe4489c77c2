"""Validates FlowSchemas and PriorityLevelConfigurations.

Called by ``server/registry/kinds/flowcontrol.py``.
"""

from __future__ import annotations

from instar.base.field_errors import (
    FieldError,
    child,
    forbidden,
    index,
    invalid,
    not_supported,
    required,
)
from instar.base.json_values import Object
from instar.kube.api.string_rules import dns1123_label
from instar.kube.builtin_rules.basics import choice_errors
from instar.kube.builtin_rules.go_internal_text import internal

EXEMPT_SCHEMA: Object = {
    "priorityLevelConfiguration": {"name": "exempt"},
    "matchingPrecedence": 1,
    "rules": [
        {
            "subjects": [{"kind": "Group", "group": {"name": "system:masters"}}],
            "resourceRules": [
                {
                    "verbs": ["*"],
                    "apiGroups": ["*"],
                    "resources": ["*"],
                    "clusterScope": True,
                    "namespaces": ["*"],
                }
            ],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }
    ],
}
_VERBS = (
    "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch",
)  # fmt: skip
_MOST_QUEUES = 10_000_000
_SUBJECTS = (("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group"))
_NAMESPACE_TEXT = "each member of this list must be '*' or a DNS-1123 label; "


def flow_schema_errors(obj: Object) -> list[FieldError]:
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    found: list[FieldError] = []
    if name == "exempt" and spec != EXEMPT_SCHEMA:
        shown = internal("flowcontrol.apiserver.k8s.io/v1#FlowSchemaSpec", _in_go_order(spec))
        found.append(invalid("spec", shown, "spec of 'exempt' must equal the fixed value"))
        return found
    precedence = spec.get("matchingPrecedence", 0)
    if precedence <= 0:
        found.append(invalid("spec.matchingPrecedence", precedence, "must be a positive value"))
    if precedence > 10000:
        text = "must not be greater than 10000"
        found.append(invalid("spec.matchingPrecedence", precedence, text))
    if precedence == 1 and name != "exempt":
        text = "only the schema named 'exempt' may have matchingPrecedence 1"
        found.append(invalid("spec.matchingPrecedence", precedence, text))
    method = spec.get("distinguisherMethod")
    choices = ("ByNamespace", "ByUser")
    if method is not None and method.get("type") not in choices:
        shown = {"Type": method.get("type", "")}
        found.append(not_supported("spec.distinguisherMethod.type", shown, choices))
    if not (spec.get("priorityLevelConfiguration") or {}).get("name"):
        text = "must reference a priority level"
        found.append(required("spec.priorityLevelConfiguration.name", text))
    for position, rule in enumerate(spec.get("rules") or ()):
        found += _rule_errors(rule, index("spec.rules", position))
    return found


def _in_go_order(spec: Object) -> Object:
    names = ("priorityLevelConfiguration", "matchingPrecedence", "distinguisherMethod", "rules")
    return {name: spec[name] for name in names if name in spec}


def _rule_errors(rule: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if not rule.get("subjects"):
        found.append(required(child(path, "subjects"), "subjects must contain at least one value"))
    for position, subject in enumerate(rule.get("subjects") or ()):
        where, kind = index(child(path, "subjects"), position), subject.get("kind", "")
        members = dict(_SUBJECTS)
        if kind not in members:
            found += choice_errors(kind, child(where, "kind"), sorted(members))
        elif subject.get(members[kind]) is None:
            member = members[kind]
            text = f"{member} is required when subject kind is '{kind}'"
            found.append(required(child(where, member), text))
        else:
            found += _subject_errors(subject[members[kind]], child(where, members[kind]), kind)
        for of, member in _SUBJECTS:
            if kind in members and of != kind and subject.get(member) is not None:
                text = f"{member} is forbidden when subject kind is not '{of}'"
                found.append(forbidden(child(where, member), text))
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        text = "at least one of resourceRules and nonResourceRules has to be non-empty"
        found.append(required(path, text))
    for name in ("resourceRules", "nonResourceRules"):
        for position, part in enumerate(rule.get(name) or ()):
            found += _policy_rule_errors(part, index(child(path, name), position), name)
    return found


def _subject_errors(subject: Object, path: str, kind: str) -> list[FieldError]:
    found = [] if subject.get("name") else [required(child(path, "name"))]
    if kind == "ServiceAccount" and not subject.get("namespace"):
        text = "must specify namespace for service account"
        found.append(required(child(path, "namespace"), text))
    return found


def _policy_rule_errors(part: Object, path: str, kind: str) -> list[FieldError]:
    found: list[FieldError] = []
    verbs = part.get("verbs") or []
    if not verbs:
        found.append(required(child(path, "verbs"), "verbs must contain at least one value"))
    elif "*" in verbs:
        found += _wildcard_errors(verbs, child(path, "verbs"), "verbs")
    elif not set(verbs) <= set(_VERBS):
        found.append(not_supported(child(path, "verbs"), verbs, _VERBS))
    if kind != "resourceRules":
        return found + _url_errors(part.get("nonResourceURLs") or [], path)
    for name, one, many in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        if not part.get(name):
            text = f"resource rules must supply at least one {one}"
            found.append(required(child(path, name), text))
        else:
            found += _wildcard_errors(part[name], child(path, name), many)
    return found + _namespace_errors(part, child(path, "namespaces"))


def _wildcard_errors(values: list[str], path: str, words: str) -> list[FieldError]:
    text = f"if '*' is present, must not specify other {words}"
    return [invalid(path, values, text)] if "*" in values and len(values) > 1 else []


def _url_errors(urls: list[str], path: str) -> list[FieldError]:
    where = child(path, "nonResourceURLs")
    if not urls:
        return [required(where, "nonResourceURLs must contain at least one value")]
    return _wildcard_errors(urls, where, "non-resource URLs")


def _namespace_errors(part: Object, path: str) -> list[FieldError]:
    names = part.get("namespaces") or []
    if not names and not part.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        return [required(path, text)]
    if "*" in names:
        return _wildcard_errors(names, path, "namespaces")
    return [
        invalid(index(path, position), name, f"{_NAMESPACE_TEXT}{text}")
        for position, name in enumerate(names)
        for text in dns1123_label(name)
    ]


def priority_level_errors(obj: Object) -> list[FieldError]:
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    type, limited, exempt = spec.get("type", ""), spec.get("limited"), spec.get("exempt")
    found: list[FieldError] = []
    if type in ("Exempt", "Limited") and (type == "Exempt") != (name == "exempt"):
        text = "must be 'Exempt' if and only if `name` is 'exempt'"
        found.append(invalid("spec.type", type, text))
    if type == "Exempt":
        if limited is not None:
            text = "must be nil if the type is not Limited"
            found.append(forbidden("spec.limited", text))
    elif type == "Limited":
        if exempt is not None:
            found.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            found.append(required("spec.limited", "must not be empty when type is Limited"))
        else:
            found += _limited_errors(limited)
    elif not type:
        found.append(required("spec.type"))
    else:
        found.append(not_supported("spec.type", type, ("Exempt", "Limited")))
    return found


def _limited_errors(limited: Object) -> list[FieldError]:
    found: list[FieldError] = []
    path = "spec.limited"
    shares = limited.get("nominalConcurrencyShares")
    if shares is not None and shares < 0:
        text = "must be a non-negative integer"
        found.append(invalid(f"{path}.nominalConcurrencyShares", shares, text))
    response = limited.get("limitResponse") or {}
    found += _response_errors(response, f"{path}.limitResponse")
    lendable = limited.get("lendablePercent")
    if lendable is not None and not 0 <= lendable <= 100:
        text = "must be between 0 and 100, inclusive"
        found.append(invalid(f"{path}.lendablePercent", lendable, text))
    return found


def _response_errors(response: Object, path: str) -> list[FieldError]:
    type, queuing = response.get("type", ""), response.get("queuing")
    if type == "Reject":
        if queuing is None:
            return []
        text = "must be nil if limited.limitResponse.type is not Limited"
        return [forbidden(f"{path}.queuing", text)]
    if not type:
        return [required(f"{path}.type")]
    if type != "Queue":
        return [not_supported(f"{path}.type", type, ("Queue", "Reject"))]
    if queuing is None:
        text = "must not be empty if limited.limitResponse.type is Limited"
        return [required(f"{path}.queuing", text)]
    found: list[FieldError] = []
    queues, hand = queuing.get("queues", 0), queuing.get("handSize", 0)
    if queuing.get("queueLengthLimit", 0) <= 0:
        where = f"{path}.queuing.queueLengthLimit"
        found.append(invalid(where, queuing.get("queueLengthLimit", 0), "must be positive"))
    if queues <= 0:
        found.append(invalid(f"{path}.queuing.queues", queues, "must be positive"))
    elif queues > _MOST_QUEUES:
        text = f"must not be greater than {_MOST_QUEUES}"
        found.append(invalid(f"{path}.queuing.queues", queues, text))
    if hand <= 0:
        found.append(invalid(f"{path}.queuing.handSize", hand, "must be positive"))
    elif hand > queues:
        text = f"should not be greater than queues ({queues})"
        found.append(invalid(f"{path}.queuing.handSize", hand, text))
    return found
