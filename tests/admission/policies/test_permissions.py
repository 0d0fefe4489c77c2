"""Who writes a policy must be allowed to read what it reads: a policy is no way to see secrets."""

from __future__ import annotations

from typing import Any

import pytest

from instar.base.json_values import Object
from tests.admission.policies.support import REGISTRATION
from tests.rest.rbac import as_, binding, given, guarded, role, rule, user
from tests.support.server import LiveServer

__all__ = ["given", "guarded"]

POLICIES, BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
CAROL = "user &{carol carol-uid [devs system:authenticated] map[]}"
RULES = {
    "resourceRules": [
        {
            "apiGroups": ["ex.io"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["foos"],
        }
    ]
}
POLICY: Object = {"matchConstraints": RULES, "validations": [{"expression": "true"}]}
OF_SECRETS: Object = {**POLICY, "paramKind": {"apiVersion": "v1", "kind": "Secret"}}
BY_NAME = {"name": "s", "parameterNotFoundAction": "Allow"}
BY_SELECTOR = {"selector": {}, "parameterNotFoundAction": "Allow"}


@pytest.fixture(autouse=True)
def writer(given: Any) -> None:
    """Carol may write policies, and nothing else."""
    given(
        role("policies", rule("*", f"{POLICIES} {BINDINGS}", "admissionregistration.k8s.io")),
        binding("carol-policies", "ClusterRole/policies", user("carol")),
    )


def written(server: LiveServer, plural: str, spec: Object, who: str = "carol") -> str:
    """What is wrong with it, after the object's name; empty where nothing is."""
    kind = "ValidatingAdmissionPolicy" + ("Binding" if plural == BINDINGS else "")
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "written"},
        "spec": spec,
    }
    answer = as_(server, who, "POST", f"{REGISTRATION}/{plural}?dryRun=All", body)
    if answer.status == 201:
        return ""
    assert answer.status == 422, answer.text
    message: str = answer.json["message"]
    return message.partition('" is invalid: ')[2]


def bound(ref: Object, policy: str = "of-secrets") -> Object:
    return {"policyName": policy, "validationActions": ["Deny"], "paramRef": ref}


def test_a_policy_without_parameters_needs_nothing(guarded: LiveServer) -> None:
    assert written(guarded, POLICIES, POLICY) == ""


def test_a_policy_needs_its_writer_to_read_every_parameter(guarded: LiveServer, given: Any) -> None:
    assert written(guarded, POLICIES, OF_SECRETS) == (
        f'spec.paramKind: Forbidden: {CAROL} must have "get" permission on all objects of the '
        "referenced paramKind (kind=Secret, apiVersion=v1)"
    )
    given(
        role("reads", rule("get", "secrets")),
        binding("carol-reads", "ClusterRole/reads", user("carol")),
    )
    assert written(guarded, POLICIES, OF_SECRETS) == ""


def test_a_binding_needs_its_writer_to_read_what_it_names(guarded: LiveServer, given: Any) -> None:
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "of-secrets"},
        "spec": OF_SECRETS,
    }
    path = f"{REGISTRATION}/{POLICIES}"
    assert guarded.request("POST", path, policy).status == 201

    by_name = written(guarded, BINDINGS, bound(BY_NAME))
    by_selector = written(guarded, BINDINGS, bound(BY_SELECTOR))
    given(
        role("lists", rule("list", "secrets")),
        binding("carol-lists", "ClusterRole/lists", user("carol")),
    )
    allowed = written(guarded, BINDINGS, bound(BY_SELECTOR))
    guarded.request("DELETE", f"{path}/of-secrets")

    def told(verb: str) -> str:
        who = f'{CAROL} does not have "{verb}" permission'
        return f"spec.paramRef: Forbidden: {who} on the object referenced by paramRef"

    assert (by_name, by_selector) == (told("get"), told("list"))
    assert allowed == ""


def test_a_binding_of_an_unknown_policy_needs_everything(guarded: LiveServer) -> None:
    assert written(guarded, BINDINGS, bound(BY_NAME, "zzz")) == (
        "spec.paramRef: Forbidden: unable to get policy zzz to determine minimum required "
        f'permissions and {CAROL} does not have "get" permission for all groups, versions and '
        "resources"
    )
