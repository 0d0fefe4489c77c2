"""Webhook configurations, admission policies and bindings: what makes one wrong."""

from __future__ import annotations

import re

from instar.api.strings import dns1035_label, dns1123_subdomain, path_segment_name, qualified_name
from instar.crds.validate_conversion import KNOWN_REVIEWS, client_errors, review_version_errors
from instar.fields import (
    FieldError,
    child,
    duplicate,
    forbidden,
    index,
    invalid,
    not_supported,
    required,
)
from instar.plain import Object
from instar.registry.kinds.checks.basics import choice_errors, texts_at
from instar.registry.kinds.checks.expressions import bool_errors, simple_type, text_errors, type_of
from instar.registry.kinds.checks.selectors import selector_errors

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*", re.ASCII)
_RESERVED = frozenset(
    {
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import",
        "in", "let", "loop", "namespace", "null", "package", "return", "true", "var", "void",
        "while",
    }
)  # fmt: skip
_DENY_AND_WARN = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the "
    "API response and headers serves no purpose)"
)
_NOTHING = "validations or auditAnnotations must contain at least one item"


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
        found += _rule_errors(rule, index(child(path, "rules"), position))
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


def _rule_errors(rule: Object, path: str, *, named: bool = False) -> list[FieldError]:
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
    return found + (_name_errors(rule, path) if named else [])


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


def _name_errors(rule: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    names = rule.get("resourceNames") or []
    for position, name in enumerate(names):
        where = index(child(path, "resourceNames"), position)
        found += texts_at(where, name, path_segment_name(name))
        if name in names[:position]:
            found.append(duplicate(where, name))
    return found


def condition_errors(conditions: list[Object], path: str) -> list[FieldError]:
    path = child(path, "matchConditions")
    found: list[FieldError] = []
    names: set[str] = set()
    for position, condition in enumerate(conditions):
        where, name = index(path, position), condition.get("name", "")
        found += bool_errors(condition.get("expression", ""), child(where, "expression"))
        if not name:
            found.append(required(child(where, "name")))
        else:
            found += texts_at(child(where, "name"), name, qualified_name(name))
        if name and name in names:
            found.append(duplicate(child(where, "name"), name))
        names.add(name)
    return found


# Policies -----------------------------------------------------------------------------------------


def policy_errors(obj: Object, *, mutating: bool) -> list[FieldError]:
    spec = obj["spec"]
    found: list[FieldError] = []
    policy = spec.get("failurePolicy")
    found += choice_errors(policy, "spec.failurePolicy", ("Fail", "Ignore"))
    if spec.get("paramKind") is not None:
        found += _parameter_kind_errors(spec["paramKind"])
    constraints = spec.get("matchConstraints")
    if constraints is None:
        found.append(required("spec.matchConstraints"))
    else:
        found += _match_errors(constraints, "spec.matchConstraints", needs_rules=True)
    found += condition_errors(spec.get("matchConditions") or [], "spec")
    for position, variable in enumerate(spec.get("variables") or ()):
        found += _variable_errors(variable, index("spec.variables", position))
    if mutating:
        return found + _mutation_errors(spec)
    return found + _validation_errors(spec, obj["metadata"].get("name", ""))


def _parameter_kind_errors(kind: Object) -> list[FieldError]:
    found: list[FieldError] = []
    version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    if not version:
        found.append(required("spec.paramKind.apiVersion"))
    elif version.count("/") > 1:
        text = f"unexpected GroupVersion string: {version}"
        found.append(invalid("spec.paramKind.apiVersion", version, text))
    if not name:
        found.append(required("spec.paramKind.kind"))
    else:
        texts = dns1035_label(name.lower())
        prefix = "may have mixed case, but should otherwise match: "
        found += [invalid("spec.paramKind.kind", name, f"{prefix}{text}") for text in texts]
    return found


def _match_errors(match: Object, path: str, *, needs_rules: bool) -> list[FieldError]:
    found: list[FieldError] = []
    policy = match.get("matchPolicy")
    found += choice_errors(policy, child(path, "matchPolicy"), ("Equivalent", "Exact"))
    for name in ("namespaceSelector", "objectSelector"):
        found += selector_errors(match.get(name) or {}, child(path, name))
    if needs_rules and not match.get("resourceRules"):
        found.append(required(child(path, "resourceRules")))
    for name in ("resourceRules", "excludeResourceRules"):
        for position, rule in enumerate(match.get(name) or ()):
            found += _rule_errors(rule, index(child(path, name), position), named=True)
    return found


def _variable_errors(variable: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    name, text = variable.get("name", ""), variable.get("expression", "")
    if not name:
        found.append(required(child(path, "name"), "name is not specified"))
    elif _IDENTIFIER.fullmatch(name) is None or name in _RESERVED:
        found.append(invalid(child(path, "name"), name, "must be a valid CEL identifier"))
    if not text.strip():
        found.append(required(child(path, "expression"), "expression is not specified"))
    elif isinstance(problem := type_of(text), str):
        found.append(invalid(child(path, "expression"), text, problem))
    return found


def _validation_errors(spec: Object, name: str) -> list[FieldError]:
    validations, notes = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not validations and not notes:
        return [required(f"spec.{part}", _NOTHING) for part in ("validations", "auditAnnotations")]
    found: list[FieldError] = []
    for position, validation in enumerate(validations):
        path = index("spec.validations", position)
        found += bool_errors(validation.get("expression", ""), child(path, "expression"))
        message = validation.get("message", "")
        if message and not message.strip():
            found.append(invalid(child(path, "message"), message, "must be non-empty if specified"))
        elif "\n" in message:
            found.append(invalid(child(path, "message"), message, "must not contain line breaks"))
        if validation.get("messageExpression"):
            where = child(path, "messageExpression")
            found += text_errors(validation["messageExpression"], where)
        if validation.get("reason") is not None:
            found += choice_errors(validation["reason"], child(path, "reason"), _REASONS)
    for position, note in enumerate(notes):
        found += _note_errors(note, index("spec.auditAnnotations", position), name)
    return found


def _note_errors(note: Object, path: str, policy: str) -> list[FieldError]:
    shown = f"{policy}/{note.get('key', '')}"
    found = texts_at(child(path, "key"), shown, qualified_name(shown))
    text, where = note.get("valueExpression", ""), child(path, "valueExpression")
    if not text.strip():
        return [*found, required(where, "valueExpression is not specified")]
    if isinstance(problem := type_of(text), str):
        return [*found, invalid(where, text, problem)]
    if simple_type(text) not in ("", "string", "null"):
        detail = f"must evaluate to one of [string null_type] but got {simple_type(text)}"
        found.append(invalid(where, text, detail))
    return found


def _mutation_errors(spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if not spec.get("mutations"):
        text = "mutations must contain at least one item"
        found.append(required("spec.mutations", text))
    for position, mutation in enumerate(spec.get("mutations") or ()):
        found += _one_mutation_errors(mutation, index("spec.mutations", position))
    if not spec.get("reinvocationPolicy"):
        found.append(required("spec.reinvocationPolicy"))
    else:
        policy = spec["reinvocationPolicy"]
        found += choice_errors(policy, "spec.reinvocationPolicy", ("IfNeeded", "Never"))
    return found


def _one_mutation_errors(mutation: Object, path: str) -> list[FieldError]:
    type, kinds = mutation.get("patchType", ""), ("ApplyConfiguration", "JSONPatch")
    if not type:
        return [required(child(path, "patchType"))]
    if type not in kinds:
        return [not_supported(child(path, "patchType"), type, kinds)]
    member = "applyConfiguration" if type == kinds[0] else "jsonPatch"
    if mutation.get(member) is None:
        return [required(child(path, member), f"must be specified when patchType is {type}")]
    text, where = mutation[member].get("expression", ""), child(child(path, member), "expression")
    if not text.strip():
        return [required(where, "expression is not specified")]
    if simple_type(text):
        wanted = "Object" if type == kinds[0] else "list(JSONPatch)"
        return [invalid(where, text, f"must evaluate to {wanted} but got {simple_type(text)}")]
    return []


# Bindings -----------------------------------------------------------------------------------------


def binding_errors(obj: Object, *, mutating: bool) -> list[FieldError]:
    spec = obj["spec"]
    name = spec.get("policyName", "")
    found: list[FieldError] = []
    if not name:
        found.append(required("spec.policyName"))
    else:
        found += texts_at("spec.policyName", name, dns1123_subdomain(name))
    if spec.get("paramRef") is not None:
        found += _reference_errors(spec["paramRef"])
    if spec.get("matchResources") is not None:
        found += _match_errors(spec["matchResources"], "spec.matchResources", needs_rules=False)
    return found if mutating else found + _action_errors(spec.get("validationActions") or [])


def _reference_errors(reference: Object) -> list[FieldError]:
    path, found = "spec.paramRef", list[FieldError]()
    name, selector = reference.get("name", ""), reference.get("selector")
    if name and selector is not None:
        text = "name and selector are mutually exclusive"
        found += [forbidden(child(path, part), text) for part in ("name", "selector")]
    elif not name and selector is None:
        found.append(required(path, "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction")
    if not action:
        found.append(required(child(path, "parameterNotFoundAction")))
    else:
        found += choice_errors(action, child(path, "parameterNotFoundAction"), ("Deny", "Allow"))
    return found


def _action_errors(actions: list[str]) -> list[FieldError]:
    path = "spec.validationActions"
    if not actions:
        return [required(path, "at least one validation action is required")]
    found: list[FieldError] = []
    for position, action in enumerate(actions):
        found += choice_errors(action, index(path, position), ("Audit", "Deny", "Warn"))
        if action in actions[:position]:
            found.append(duplicate(index(path, position), action))
    if {"Deny", "Warn"} <= set(actions):
        found.append(invalid(path, actions, _DENY_AND_WARN))
    return found
