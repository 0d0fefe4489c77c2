"""Type checking: what expressions are told of their objects' schemas, in the policy's status."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from tests.admission.policies.support import REGISTRATION, Cluster
from tests.rest.support import Collection

GROUP, KIND = "admissionregistration.k8s.io", "ValidatingAdmissionPolicy"
POLICY = f"{REGISTRATION}/validatingadmissionpolicies/pol.ref.io"


def status(cluster: Cluster, generation: int = 1) -> Object:
    """As soon as the policy was looked at."""
    policies = Collection(cluster.server, GROUP, "validatingadmissionpolicies", KIND, "")
    with policies.watch("&fieldSelector=metadata.name=pol.ref.io&timeoutSeconds=20") as stream:
        while (event := stream.event()) is not None:
            found: Object = event["object"].get("status") or {}
            if found.get("observedGeneration") == generation:
                return found
    raise AssertionError(f"generation {generation} was not looked at")


def warnings(cluster: Cluster) -> list[Any]:
    found: list[Any] = status(cluster)["typeChecking"].get("expressionWarnings", [])
    return found


def test_a_policy_without_mistakes_has_an_empty_type_checking(cluster: Cluster) -> None:
    cluster.policy("object.spec.n > 3 && object.metadata.labels['a'] == 'b'")

    assert status(cluster) == {"observedGeneration": 1, "typeChecking": {}}


def test_fields_that_are_not_there_are_reported(cluster: Cluster) -> None:
    cluster.policy(
        validations=[
            {"expression": 'object.spec.nope == "a"', "messageExpression": "object.spec.n + 'x'"},
            {"expression": "true"},
            {"expression": "variables.n == 'x'"},
        ],
        variables=[{"name": "n", "expression": "object.spec.n"}],
    )

    kind = f"{cluster.group}/v1, Kind=Widget"
    assert warnings(cluster) == [
        {
            "fieldRef": "spec.validations[0].expression",
            "warning": f"{kind}: ERROR: <input>:1:12: undefined field 'nope'\n"
            ' | object.spec.nope == "a"\n | ...........^\n',
        },
        {
            "fieldRef": "spec.validations[0].messageExpression",
            "warning": f"{kind}: ERROR: <input>:1:15: found no matching overload for '_+_' applied "
            "to '(int, string)'\n | object.spec.n + 'x'\n | ..............^\n",
        },
        {
            "fieldRef": "spec.validations[2].expression",
            "warning": f"{kind}: ERROR: <input>:1:13: found no matching overload for '_==_' "
            "applied to '(int, string)'\n | variables.n == 'x'\n | ............^\n",
        },
    ]


def test_every_kind_of_the_rules_is_checked_in_order(cluster: Cluster) -> None:
    rules = cluster.rules("*", apiVersions=["v2", "v1", "v9"], resources=["widgets", "widgets/*"])
    rules["resourceRules"].append(
        {
            "apiGroups": ["apps"],
            "apiVersions": ["v1"],
            "operations": ["*"],
            "resources": ["deployments"],
        }
    )
    rules["resourceRules"].append({**rules["resourceRules"][0], "apiGroups": ["*"]})
    cluster.policy("object.spec.nope == 1", matchConstraints=rules)

    [found] = warnings(cluster)

    kinds = [
        line.partition(": ERROR")[0] for line in found["warning"].splitlines() if "ERROR" in line
    ]
    assert kinds == [
        "apps/v1, Kind=Deployment",
        f"{cluster.group}/v1, Kind=Widget",
        f"{cluster.group}/v2, Kind=Widget",
    ]


def test_parameters_have_types_too(cluster: Cluster) -> None:
    cluster.policy("params.data.x == 1", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})

    [found] = warnings(cluster)

    assert "no matching overload for '_==_' applied to '(string, int)'" in found["warning"]


def test_a_changed_policy_is_checked_again(cluster: Cluster) -> None:
    cluster.policy("object.spec.nope == 1")
    assert warnings(cluster)

    merge = "application/merge-patch+json"
    patch = {"spec": {"validations": [{"expression": "object.spec.n == 1"}]}}
    cluster.server.request("PATCH", POLICY, patch, content_type=merge)

    assert status(cluster, 2) == {"observedGeneration": 2, "typeChecking": {}}
