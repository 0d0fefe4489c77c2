"""Validates webhook configurations; also rules and match conditions, which policies share.

Called by ``server/registry/kinds/admissionregistration.py`` and ``policies.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from instar.base.field_errors import (
    FieldError,
    child,
    duplicate,
    index,
    invalid,
    required,
    too_many,
)
from instar.base.json_values import Object
from instar.kube.admission.compile import BOOLEAN, compile_expression
from instar.kube.admission.expressions import declared_variables
from instar.kube.api.string_rules import dns1123_subdomain, qualified_name
from instar.kube.builtin_rules.basics import choice_errors, texts_at
from instar.kube.builtin_rules.selectors import selector_errors
from instar.kube.cel.types import Type
from instar.kube.crds.validation.conversion import (
    KNOWN_REVIEWS,
    client_errors,
    review_version_errors,
)

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_MAX_CONDITIONS = 64


def webhook_errors(obj: Object, *, mutating: bool) -> list[FieldError]:
    found: list[FieldError] = []
    names: set[str] = set()
    for position, webhook in enumerate(obj.get("webhooks") or ()):
        path = index("webhooks", position)
        found += _webhook_errors(webhook, path, mutating=mutating)
        name = webhook.get("name", "")
        if name and name in names:
            found.append(duplicate(child(path, "name"), name))
        names.add(name)
    return found


def _webhook_errors(webhook: Object, path: str, *, mutating: bool) -> list[FieldError]:
    found = _domain_errors(webhook.get("name", ""), child(path, "name"))
    for position, rule in enumerate(webhook.get("rules") or ()):
        found += rule_errors(rule, index(child(path, "rules"), position))
    found += choice_errors(
        webhook.get("failurePolicy"), child(path, "failurePolicy"), ("Fail", "Ignore")
    )
    found += choice_errors(
        webhook.get("matchPolicy"), child(path, "matchPolicy"), ("Equivalent", "Exact")
    )
    effects, known = webhook.get("sideEffects"), ("None", "NoneOnDryRun")
    if effects is None:
        found.append(
            required(child(path, "sideEffects"), f"must specify one of {', '.join(known)}")
        )
    else:
        found += choice_errors(effects, child(path, "sideEffects"), known)
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        text = "the timeout value must be between 1 and 30 seconds"
        found.append(invalid(child(path, "timeoutSeconds"), seconds, text))
    for name in ("namespaceSelector", "objectSelector"):
        found += selector_errors(webhook.get(name) or {}, child(path, name))
    client = webhook.get("clientConfig") or {}
    found += client_errors(client, child(path, "clientConfig"), valid_bundle=False)
    found += _review_errors(webhook, child(path, "admissionReviewVersions"))
    if mutating:
        policy = webhook.get("reinvocationPolicy")
        found += choice_errors(policy, child(path, "reinvocationPolicy"), ("IfNeeded", "Never"))
    return found + condition_errors(webhook.get("matchConditions") or [], path)


def _domain_errors(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    found = texts_at(path, name, dns1123_subdomain(name))
    if not found and name.count(".") < 2:
        text = "should be a domain with at least three segments separated by dots"
        found.append(invalid(path, name, text))
    return found


def _review_errors(webhook: Object, path: str) -> list[FieldError]:
    versions = webhook.get("admissionReviewVersions") or []
    if not versions:
        return [required(path, f"must specify one of {', '.join(KNOWN_REVIEWS)}")]
    return review_version_errors(versions, path, True)


def rule_errors(rule: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    operations = rule.get("operations") or []
    where = child(path, "operations")
    if not operations:
        found.append(required(where))
    if "*" in operations and len(operations) > 1:
        text = "if '*' is present, must not specify other operations"
        found.append(invalid(where, operations, text))
    for position, operation in enumerate(operations):
        found += choice_errors(operation, index(where, position), _OPERATIONS)
    for name, words in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name) or []
        if not values:
            found.append(required(child(path, name)))
        if "*" in values and len(values) > 1:
            text = f"if '*' is present, must not specify other {words}"
            found.append(invalid(child(path, name), values, text))
    found += _resource_errors(rule.get("resources") or [], child(path, "resources"))
    scope = rule.get("scope")
    if scope is not None:
        found += choice_errors(scope, child(path, "scope"), ("*", "Cluster", "Namespaced"))
    return found


def _resource_errors(resources: list[str], path: str) -> list[FieldError]:
    if not resources:
        return [required(path)]
    found: list[FieldError] = []
    if "*/*" in resources and len(resources) > 1:
        text = "if '*/*' is present, must not specify other resources"
        found.append(invalid(path, resources, text))
    if "*" in resources and any("/" not in name for name in resources if name != "*"):
        text = "if '*' is present, must not specify other resources without subresources"
        found.append(invalid(path, resources, text))
    found += [
        required(index(path, position)) for position, name in enumerate(resources) if not name
    ]
    return found


def condition_errors(
    conditions: list[Object], path: str, *, params: bool = False
) -> list[FieldError]:
    path = child(path, "matchConditions")
    found: list[FieldError] = []
    if len(conditions) > _MAX_CONDITIONS:
        found.append(too_many(path, len(conditions), _MAX_CONDITIONS))
    names: set[str] = set()
    variables = declared_variables(params=params)
    for position, condition in enumerate(conditions):
        where, name = index(path, position), condition.get("name", "")
        found += _expression_errors(condition, child(where, "expression"), variables)
        if not name:
            found.append(required(child(where, "name")))
        else:
            found += texts_at(child(where, "name"), name, qualified_name(name))
        if name and name in names:
            found.append(duplicate(child(where, "name"), name))
        names.add(name)
    return found


def _expression_errors(
    condition: Object, path: str, variables: Mapping[str, Type]
) -> list[FieldError]:
    text = condition.get("expression", "").strip()
    if not text:
        return [required(path)]
    compiled = compile_expression(text, variables, BOOLEAN)
    return [invalid(path, text, compiled.problem)] if compiled.problem else []
