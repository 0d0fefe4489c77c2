"""Writing policies and bindings: expressions are compiled, and what is wrong is told to the letter.

What recordings of a kube-apiserver show is replayed in ``tests/builtins``; this is the reference's
table of the rest.
"""

from __future__ import annotations

from typing import Any

import pytest

from instar.base.json_values import Object
from tests.admission.policies.support import REGISTRATION, apply, json_patch
from tests.support.server import LiveServer

ASKING = "authorizer == null ? '' : ''"
RULES = {
    "resourceRules": [
        {"apiGroups": ["x"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["xs"]}
    ]
}
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}


def refusal(server: LiveServer, kind: str, spec: Object) -> str:
    """What a create is refused for, after the object's name; empty where it is not."""
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "written"},
        "spec": spec,
    }
    answer = server.request("POST", f"{REGISTRATION}/{PLURALS[kind]}?dryRun=All", body)
    if answer.status == 201:
        return ""
    assert answer.status == 422, answer.text
    message: str = answer.json["message"]
    return message.partition('" is invalid: ')[2]


def validating(**spec: Any) -> Object:
    return {"matchConstraints": RULES, "validations": [{"expression": "true"}], **spec}


def mutating(*mutations: Object, **spec: Any) -> Object:
    return {
        "matchConstraints": RULES,
        "reinvocationPolicy": "Never",
        "mutations": list(mutations) or [apply("Object{}")],
        **spec,
    }


def undeclared(name: str, source: str, column: int = 1) -> str:
    dots = "." * (column - 1)
    return (
        f"compilation failed: ERROR: <input>:1:{column}: undeclared reference to '{name}' (in "
        f"container '')\n | {source}\n | {dots}^"
    )


@pytest.mark.parametrize(
    ("validation", "text"),
    [
        ({"expression": "true"}, ""),
        ({"expression": " "}, "expression: Required value: expression is not specified"),
        (
            {"expression": "object.spec.flag"},
            'expression: Invalid value: "object.spec.flag": must evaluate to bool but got dyn',
        ),
        (
            {"expression": "params.x == 1"},
            f'expression: Invalid value: "params.x == 1": {undeclared("params", "params.x == 1")}',
        ),
        (
            {"expression": "variables.x == 1"},
            'expression: Invalid value: "variables.x == 1": '
            f"{undeclared('variables', 'variables.x == 1')}",
        ),
        (
            {"expression": "request.foo == 1"},
            'expression: Invalid value: "request.foo == 1": compilation failed: ERROR: '
            "<input>:1:8: undefined field 'foo'\n | request.foo == 1\n | .......^",
        ),
        (
            {"expression": "true", "messageExpression": "object.x"},
            'messageExpression: Invalid value: "object.x": must evaluate to string but got dyn',
        ),
        (
            {"expression": "true", "messageExpression": ASKING},
            f'messageExpression: Invalid value: "{ASKING}": {undeclared("authorizer", ASKING)}',
        ),
        (
            {"expression": "true", "messageExpression": "  "},
            'messageExpression: Invalid value: "  ": must be non-empty if specified',
        ),
        (
            {"expression": "true", "message": "  "},
            'message: Invalid value: "  ": must be non-empty if specified',
        ),
        (
            {"expression": "true", "reason": "Unauthorized"},
            'reason: Unsupported value: "Unauthorized": supported values: "Forbidden", "Invalid", '
            '"RequestEntityTooLarge"',
        ),
    ],
)
def test_validations(server: LiveServer, validation: Object, text: str) -> None:
    found = refusal(server, "ValidatingAdmissionPolicy", validating(validations=[validation]))

    assert found == (f"spec.validations[0].{text}" if text else "")


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ([{"name": "a", "expression": "1"}, {"name": "b", "expression": "variables.a + 1"}], ""),
        ([{"name": "a", "expression": "1"}, {"name": "a", "expression": "'x'"}], ""),
        (
            [{"name": "a-b", "expression": "1"}],
            'spec.variables[0].name: Invalid value: "a-b": must be a valid CEL identifier',
        ),
        (
            [{"name": "for", "expression": "1"}],
            'spec.variables[0].name: Invalid value: "for": must be a valid CEL identifier',
        ),
        (
            [{"name": "a", "expression": ""}],
            "spec.variables[0].expression: Required value: expression is not specified",
        ),
        (
            [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}],
            'spec.variables[0].expression: Invalid value: "variables.b": compilation failed: '
            "ERROR: <input>:1:10: undefined field 'b'\n | variables.b\n | .........^",
        ),
        (
            [{"name": "a", "expression": "1"}, {"name": "b", "expression": "variables.a == 'x'"}],
            "spec.variables[1].expression: Invalid value: \"variables.a == 'x'\": compilation "
            "failed: ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(int, "
            "string)'\n | variables.a == 'x'\n | ............^",
        ),
    ],
)
def test_variables(server: LiveServer, variables: list[Object], text: str) -> None:
    found = refusal(server, "ValidatingAdmissionPolicy", validating(variables=variables))

    assert found == text


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"matchConditions": [{"name": "a"}]},
            "spec.matchConditions[0].expression: Required value",
        ),
        (
            {"matchConditions": [{"expression": "true"}]},
            "spec.matchConditions[0].name: Required value",
        ),
        (
            {"matchConditions": [{"name": "a", "expression": " 1 "}]},
            'spec.matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got '
            "int",
        ),
        (
            {"matchConditions": [{"name": f"c{n}", "expression": "true"} for n in range(65)]},
            "spec.matchConditions: Too many: 65: must have at most 64 items",
        ),
        (
            {
                "variables": [{"name": "x", "expression": "1"}],
                "matchConditions": [{"name": "a", "expression": "variables.x == 1"}],
            },
            'spec.matchConditions[0].expression: Invalid value: "variables.x == 1": '
            f"{undeclared('variables', 'variables.x == 1')}",
        ),
        (
            {"auditAnnotations": [{"key": "a", "valueExpression": " "}]},
            "spec.auditAnnotations[0].valueExpression: Required value: valueExpression is not "
            "specified",
        ),
        (
            {"auditAnnotations": [{"key": "a", "valueExpression": "'x'"}] * 2},
            'spec.auditAnnotations[1].key: Duplicate value: "a"',
        ),
        (
            {
                "matchConstraints": {
                    "resourceRules": [
                        {**RULES["resourceRules"][0], "resourceNames": ["a", "a", "b/c"]}
                    ]
                }
            },
            '[spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "a", '
            'spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: "b/c": may '
            "not contain '/']",
        ),
        (
            {"paramKind": {"apiVersion": "v1", "kind": "1x"}},
            'spec.paramKind.kind: Invalid value: "1x": may have mixed case, but should otherwise '
            "match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character (e.g. "
            "'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        ),
    ],
)
def test_policies(server: LiveServer, spec: Object, text: str) -> None:
    assert refusal(server, "ValidatingAdmissionPolicy", validating(**spec)) == text


@pytest.mark.parametrize(
    ("mutation", "text"),
    [
        (apply("Object{spec: Object.spec{a: 1}}"), ""),
        (json_patch("object.x == 1 ? [JSONPatch{op: 'add'}] : []"), ""),
        ({}, "patchType: Required value"),
        (
            {"patchType": "JSONPatch"},
            "jsonPatch: Required value: must be specified when patchType is JSONPatch",
        ),
        (
            {**json_patch("[JSONPatch{}]"), "applyConfiguration": {"expression": "Object{}"}},
            'applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when '
            "patchType is JSONPatch",
        ),
        (
            apply("true"),
            'applyConfiguration.expression: Invalid value: "true": must evaluate to Object but got '
            "bool",
        ),
        (
            json_patch("[]"),
            'jsonPatch.expression: Invalid value: "[]": must evaluate to list(JSONPatch) but got '
            "list(dyn)",
        ),
        (
            json_patch("[JSONPatch{op: 1}]"),
            'jsonPatch.expression: Invalid value: "[JSONPatch{op: 1}]": compilation failed: ERROR: '
            "<input>:1:14: expected type of field 'op' is 'string' but provided type is 'int'\n | "
            "[JSONPatch{op: 1}]\n | .............^",
        ),
    ],
)
def test_mutations(server: LiveServer, mutation: Object, text: str) -> None:
    found = refusal(server, "MutatingAdmissionPolicy", mutating(mutation))

    assert found == (f"spec.mutations[0].{text}" if text else "")


def test_deletions_cannot_be_mutated(server: LiveServer) -> None:
    rules = {"resourceRules": [{**RULES["resourceRules"][0], "operations": ["CREATE", "DELETE"]}]}
    told = 'Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"'

    policy = refusal(server, "MutatingAdmissionPolicy", mutating(matchConstraints=rules))
    bound = {"policyName": "p", "matchResources": rules}
    binding = refusal(server, "MutatingAdmissionPolicyBinding", bound)

    assert policy == f"spec.matchConstraints.resourceRules.operations: {told}"
    assert binding == f"spec.matchResources.resourceRules.operations: {told}"


@pytest.mark.parametrize("kind", PLURALS)
def test_a_reserved_name_is_taken_with_a_warning(server: LiveServer, kind: str) -> None:
    spec: Object = {"policyName": "p"}
    if not kind.endswith("Binding"):
        spec = mutating() if kind.startswith("Mutating") else validating()
    elif kind.startswith("Validating"):
        spec["validationActions"] = ["Deny"]
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "a.static.k8s.io"},
        "spec": spec,
    }

    answer = server.request("POST", f"{REGISTRATION}/{PLURALS[kind]}?dryRun=All", body)

    assert answer.status == 201, answer.text
    assert answer.warnings == [
        '299 - "metadata.name: names ending with \\".static.k8s.io\\" are reserved for static '
        'manifest-based configurations and cannot be managed via the API"'
    ]
