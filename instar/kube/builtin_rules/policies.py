"""Validates admission policies and their bindings.

Called by ``server/registry/kinds/admissionregistration.py``. Expressions are compiled as in
``kube/admission/policies``, so that a stored policy can run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

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
from instar.kube.admission.compile import (
    BOOLEAN,
    BUILT_OBJECT,
    JSON_PATCHES,
    TEXT,
    TEXT_OR_NULL,
    AdmissionExpression,
    compile_expression,
)
from instar.kube.admission.expressions import declared_variables, with_variables
from instar.kube.admission.policies.variables import compile_variables
from instar.kube.api.string_rules import (
    dns1035_label,
    dns1123_subdomain,
    path_segment_name,
    qualified_name,
)
from instar.kube.builtin_rules.admission import condition_errors, rule_errors
from instar.kube.builtin_rules.basics import choice_errors, texts_at
from instar.kube.builtin_rules.selectors import selector_errors
from instar.kube.cel.types import Type

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_PATCH_TYPES = ("ApplyConfiguration", "JSONPatch")
_MUTABLE = ("*", "CONNECT", "CREATE", "UPDATE")
"""Operations that a mutating policy may name."""
_MAX_NOTES = 20
_MAX_NOTE_EXPRESSION = 5 * 1024
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
_UNSAID = "expression is not specified"


class _Names(NamedTuple):
    """Variables of a policy's expressions."""

    seen: Mapping[str, Type]
    silent: Mapping[str, Type]
    """Without the authorizer: for message expressions."""


def policy_errors(obj: Object, *, mutating: bool) -> list[FieldError]:
    spec = obj["spec"]
    found: list[FieldError] = []
    policy = spec.get("failurePolicy")
    found += choice_errors(policy, "spec.failurePolicy", ("Fail", "Ignore"))
    params = spec.get("paramKind") is not None
    if params:
        found += _parameter_kind_errors(spec["paramKind"])
    constraints = spec.get("matchConstraints")
    if constraints is None:
        found.append(required("spec.matchConstraints"))
    else:
        found += _match_errors(
            constraints, "spec.matchConstraints", needs_rules=True, mutating=mutating
        )
    found += condition_errors(spec.get("matchConditions") or [], "spec", params=params)
    names, wrong = _variable_errors(spec, params=params)
    found += wrong
    if mutating:
        return found + _mutation_errors(spec, names)
    return found + _validation_errors(spec, obj["metadata"].get("name", ""), names)


def _parameter_kind_errors(kind: Object) -> list[FieldError]:
    found: list[FieldError] = []
    version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    path = "spec.paramKind.apiVersion"
    if not version:
        found.append(required(path))
    elif version.count("/") > 1:
        found.append(invalid(path, version, f"unexpected GroupVersion string: {version}"))
    else:
        found += _group_version_errors(version, path)
    if not name:
        found.append(required("spec.paramKind.kind"))
    else:
        texts = dns1035_label(name.lower())
        if texts:
            text = f"may have mixed case, but should otherwise match: {','.join(texts)}"
            found.append(invalid("spec.paramKind.kind", name, text))
    return found


def _group_version_errors(api_version: str, path: str) -> list[FieldError]:
    group, _, version = api_version.rpartition("/")
    found: list[FieldError] = []
    wrong = dns1123_subdomain(group) if group else []
    if wrong:
        found.append(invalid(path, group, ",".join(wrong)))
    if not version:
        found.append(invalid(path, api_version, "version must be specified"))
    elif wrong := dns1035_label(version):
        found.append(invalid(path, version, ",".join(wrong)))
    return found


def _match_errors(
    match: Object, path: str, *, needs_rules: bool, mutating: bool
) -> list[FieldError]:
    found: list[FieldError] = []
    policy = match.get("matchPolicy")
    found += choice_errors(policy, child(path, "matchPolicy"), ("Equivalent", "Exact"))
    for name in ("namespaceSelector", "objectSelector"):
        found += selector_errors(match.get(name) or {}, child(path, name))
    for name in ("resourceRules", "excludeResourceRules"):
        for position, rule in enumerate(match.get(name) or ()):
            where = index(child(path, name), position)
            found += [*_name_errors(rule, where), *rule_errors(rule, where)]
    if needs_rules and not match.get("resourceRules"):
        found.append(required(child(path, "resourceRules")))
    if mutating:
        where = child(child(path, "resourceRules"), "operations")
        found += [
            not_supported(where, "DELETE", _MUTABLE)
            for rule in match.get("resourceRules") or ()
            for operation in rule.get("operations") or ()
            if operation == "DELETE"
        ]
    return found


def _name_errors(rule: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    names = rule.get("resourceNames") or []
    seen: set[str] = set()
    for position, name in enumerate(names):
        where = index(child(path, "resourceNames"), position)
        found += texts_at(where, name, path_segment_name(name))
        if name in seen:
            found.append(duplicate(where, name))
        seen.add(name)
    return found


# Expressions --------------------------------------------------------------------------------------


def _variable_errors(spec: Object, *, params: bool) -> tuple[_Names, list[FieldError]]:
    """Check the variables; without any, the name ``variables`` is undeclared."""
    variables = spec.get("variables") or []
    seen, silent = (
        declared_variables(params=params),
        declared_variables(params=params, authorizer=False),
    )
    found: list[FieldError] = []
    if not variables:
        return _Names(seen, silent), found
    composed = compile_variables(variables, seen)
    for position, (variable, compiled) in enumerate(zip(variables, composed.listed, strict=True)):
        path = index("spec.variables", position)
        name = variable.get("name", "")
        if not name.strip():
            found.append(required(child(path, "name"), "name is not specified"))
        elif _IDENTIFIER.fullmatch(name) is None or name in _RESERVED:
            found.append(invalid(child(path, "name"), name, "must be a valid CEL identifier"))
        where = child(path, "expression")
        if not compiled.source.strip():
            found.append(required(where, _UNSAID))
        else:
            found += _problem(compiled, where)
    types = composed.types
    return _Names(with_variables(seen, types), with_variables(silent, types)), found


def _problem(compiled: AdmissionExpression, path: str, shown: str = "") -> list[FieldError]:
    if not compiled.problem:
        return []
    return [invalid(path, shown or compiled.source, compiled.problem)]


def _validation_errors(spec: Object, name: str, names: _Names) -> list[FieldError]:
    validations, notes = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not validations and not notes:
        return [required(f"spec.{part}", _NOTHING) for part in ("validations", "auditAnnotations")]
    found: list[FieldError] = []
    for position, validation in enumerate(validations):
        found += _one_validation_errors(validation, index("spec.validations", position), names)
    if len(notes) > _MAX_NOTES:
        text = f"must not have more than {_MAX_NOTES} auditAnnotations"
        found.append(invalid("spec.auditAnnotations", notes, text))
    keys: set[str] = set()
    for position, note in enumerate(notes):
        path, key = index("spec.auditAnnotations", position), note.get("key", "")
        found += _audit_annotation_errors(note, path, name, names)
        if key in keys:
            found.append(duplicate(child(path, "key"), key))
        keys.add(key)
    return found


def _one_validation_errors(validation: Object, path: str, names: _Names) -> list[FieldError]:
    found: list[FieldError] = []
    source, where = validation.get("expression", ""), child(path, "expression")
    if not source.strip():
        found.append(required(where, _UNSAID))
    else:
        found += _problem(compile_expression(source, names.seen, BOOLEAN), where)
    text, where = validation.get("messageExpression", ""), child(path, "messageExpression")
    if text and not text.strip():
        found.append(invalid(where, text, "must be non-empty if specified"))
    elif text:
        found += _problem(compile_expression(text, names.silent, TEXT), where)
    message = validation.get("message", "")
    if message and not message.strip():
        found.append(invalid(child(path, "message"), message, "must be non-empty if specified"))
    elif {"\n", "\r"} & set(message.strip()):
        found.append(invalid(child(path, "message"), message, "must not contain line breaks"))
    if validation.get("reason") is not None:
        found += choice_errors(validation["reason"], child(path, "reason"), _REASONS)
    return found


def _audit_annotation_errors(
    note: Object, path: str, policy: str, names: _Names
) -> list[FieldError]:
    key, found = note.get("key", ""), list[FieldError]()
    if policy:
        shown = f"{policy}/{key}"
        found += texts_at(child(path, "key"), shown, qualified_name(shown))
    else:
        found.append(invalid(child(path, "key"), key, "requires metadata.name be non-empty"))
    text, where = note.get("valueExpression", ""), child(path, "valueExpression")
    trimmed = text.strip()
    if not trimmed:
        return [*found, required(where, "valueExpression is not specified")]
    if len(trimmed.encode()) > _MAX_NOTE_EXPRESSION:
        return [*found, required(where, f"must not exceed {_MAX_NOTE_EXPRESSION} bytes in length")]
    return found + _problem(compile_expression(trimmed, names.seen, TEXT_OR_NULL), where, text)


def _mutation_errors(spec: Object, names: _Names) -> list[FieldError]:
    found: list[FieldError] = []
    if not spec.get("mutations"):
        text = "mutations must contain at least one item"
        found.append(required("spec.mutations", text))
    for position, mutation in enumerate(spec.get("mutations") or ()):
        found += _one_mutation_errors(mutation, index("spec.mutations", position), names)
    if not spec.get("reinvocationPolicy"):
        found.append(required("spec.reinvocationPolicy"))
    else:
        policy = spec["reinvocationPolicy"]
        found += choice_errors(policy, "spec.reinvocationPolicy", ("IfNeeded", "Never"))
    return found


def _one_mutation_errors(mutation: Object, path: str, names: _Names) -> list[FieldError]:
    kind = mutation.get("patchType", "")
    if not kind:
        return [required(child(path, "patchType"))]
    if kind not in _PATCH_TYPES:
        return [not_supported(child(path, "patchType"), kind, _PATCH_TYPES)]
    member, other, returns = "applyConfiguration", "jsonPatch", BUILT_OBJECT
    if kind == "JSONPatch":
        member, other, returns = "jsonPatch", "applyConfiguration", JSON_PATCHES
    found: list[FieldError] = []
    if mutation.get(other) is not None:
        text = f"must not be specified when patchType is {kind}"
        found.append(invalid(child(path, other), f"{{{other}}}", text))
    if mutation.get(member) is None:
        text = f"must be specified when patchType is {kind}"
        return [required(child(path, member), text), *found]
    source, where = mutation[member].get("expression", ""), child(path, f"{member}.expression")
    if not source.strip():
        return [*found, required(where)]
    compiled = compile_expression(source, names.seen, returns, builds=True)
    return found + _problem(compiled, where)


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
        path = "spec.matchResources"
        match = spec["matchResources"]
        found += _match_errors(match, path, needs_rules=False, mutating=mutating)
    return found if mutating else found + _action_errors(spec.get("validationActions") or [])


def _reference_errors(reference: Object) -> list[FieldError]:
    path, found = "spec.paramRef", list[FieldError]()
    name, selector = reference.get("name", ""), reference.get("selector")
    text = "name and selector are mutually exclusive"
    if name:
        found += texts_at(child(path, "name"), name, path_segment_name(name))
        if selector is not None:
            found.append(forbidden(child(path, "name"), text))
    if selector is not None:
        found += selector_errors(selector, child(path, "selector"))
        if name:
            found.append(forbidden(child(path, "selector"), text))
    if not name and selector is None:
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
    seen: set[str] = set()
    for position, action in enumerate(actions):
        found += choice_errors(action, index(path, position), ("Audit", "Deny", "Warn"))
        if action in seen:
            found.append(duplicate(index(path, position), action))
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        found.append(invalid(path, actions, _DENY_AND_WARN))
    return found
