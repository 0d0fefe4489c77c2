"""Parameters of policies: by name and by selector, of built-in and custom kinds, and none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.admission.policies.support import Cluster

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
DENIED = "ValidatingAdmissionPolicy 'pol.ref.io' with binding 'bind.ref.io' denied request: "


def reference(**given: Any) -> dict[str, Any]:
    return {"parameterNotFoundAction": "Deny", **given}


def told(cluster: Cluster, name: str = "w", **spec: Any) -> str:
    """What a refusal says after naming the policy; empty where there is none."""
    answer = cluster.create(name, **spec)
    if answer.status == 201:
        return ""
    message: str = answer.json["message"]
    return message.partition("denied request: ")[2]


def test_a_parameter_is_found_by_name_in_the_namespace_of_the_request(cluster: Cluster) -> None:
    cluster.config_map("limits", {"max": "5"})
    cluster.policy(
        "object.spec.n <= int(params.data.max)",
        "params.kind == 'ConfigMap' && params.apiVersion == 'v1'",
        paramKind=CONFIG_MAP,
    )
    cluster.bind(paramRef=reference(name="limits"))

    assert told(cluster, n=6) == "failed expression: object.spec.n <= int(params.data.max)"
    assert told(cluster, n=5) == ""


def test_a_change_of_a_parameter_is_seen_by_the_next_request(cluster: Cluster) -> None:
    cluster.config_map("limits", {"max": "5"})
    cluster.policy("object.spec.n <= int(params.data.max)", paramKind=CONFIG_MAP)
    cluster.bind(paramRef=reference(name="limits"))
    assert told(cluster, n=6)

    path = "/api/v1/namespaces/default/configmaps/limits"
    merge = "application/merge-patch+json"
    cluster.server.request("PATCH", path, {"data": {"max": "6"}}, content_type=merge)

    assert told(cluster, n=6) == ""


def test_every_selected_parameter_must_be_satisfied(cluster: Cluster) -> None:
    for name, most in (("one", "5"), ("two", "3"), ("three", "1")):
        labels = {} if name == "three" else {"limits": "yes"}
        cluster.config_map(name, {"max": most}, labels=labels)
    validation = {
        "expression": "object.spec.n <= int(params.data.max)",
        "messageExpression": "'more than ' + params.metadata.name",
    }
    cluster.policy(validations=[validation], paramKind=CONFIG_MAP)
    cluster.bind(paramRef=reference(selector={"matchLabels": {"limits": "yes"}}))

    assert told(cluster, n=4) == "more than two"
    assert told(cluster, n=3) == ""


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("Allow", ""),
        (
            "Deny",
            "failed to configure binding: no params found for policy binding with `Deny` "
            "parameterNotFoundAction",
        ),
    ],
)
def test_the_binding_decides_what_happens_without_a_parameter(
    cluster: Cluster, action: str, expected: str
) -> None:
    cluster.policy("false", paramKind=CONFIG_MAP)
    cluster.bind(paramRef={"name": "nobody", "parameterNotFoundAction": action})

    assert told(cluster) == expected


def test_a_binding_without_a_reference_gives_null(cluster: Cluster) -> None:
    cluster.policy("params == null", paramKind=CONFIG_MAP)
    cluster.bind()

    assert told(cluster) == ""


def test_an_unserved_parameter_kind_is_an_error_of_the_policy(cluster: Cluster) -> None:
    cluster.policy("true", paramKind={"apiVersion": "nope.io/v1", "kind": "Foo"})
    cluster.bind("Warn", paramRef=reference(name="x"))

    message = cluster.create("w").json["message"]

    assert message.partition("is forbidden: ")[2] == (
        "ValidatingAdmissionPolicy 'pol.ref.io' denied request: failed to configure policy: failed "
        "to find resource referenced by paramKind: 'nope.io/v1, Kind=Foo'"
    )


def test_a_policy_that_ignores_failures_ignores_those_of_configuration(cluster: Cluster) -> None:
    cluster.policy(
        "false", paramKind={"apiVersion": "nope.io/v1", "kind": "Foo"}, failurePolicy="Ignore"
    )
    cluster.bind(paramRef=reference(name="x"))

    assert told(cluster) == ""


def test_custom_resources_are_parameters_at_the_version_the_policy_names(
    cluster: Cluster,
) -> None:
    cluster.create("limits", n=5)
    cluster.policy(
        f"params.apiVersion == '{cluster.group}/v2' && object.spec.n <= params.spec.n",
        paramKind={"apiVersion": f"{cluster.group}/v2", "kind": "Widget"},
    )
    cluster.bind(paramRef=reference(name="limits"))

    assert told(cluster, n=6)
    assert told(cluster, n=5) == ""


def test_a_namespace_makes_no_sense_for_a_kind_without_one(cluster: Cluster) -> None:
    cluster.policy("true", paramKind={"apiVersion": "v1", "kind": "Namespace"})
    cluster.bind(paramRef=reference(name="default", namespace="default"))

    assert told(cluster) == (
        "failed to configure binding: paramRef.namespace must not be provided for a "
        "cluster-scoped `paramKind`"
    )


def test_a_cluster_scoped_request_needs_the_namespace_of_its_parameter_in_the_binding(
    cluster: Cluster,
) -> None:
    rules = [
        {
            "apiGroups": ["scheduling.k8s.io"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["priorityclasses"],
        }
    ]
    cluster.policy("true", paramKind=CONFIG_MAP, matchConstraints={"resourceRules": rules})
    cluster.bind(paramRef=reference(name="x"))
    body = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "params-test"},
        "value": 1,
    }

    answer = cluster.server.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)

    assert answer.json["message"].partition("denied request: ")[2] == (
        "failed to configure binding: cannot use namespaced paramRef in policy binding that "
        "matches cluster-scoped resources"
    )


def test_mutations_have_parameters_too(cluster: Cluster) -> None:
    cluster.config_map("values", {"a": "from params"})
    cluster.mutation(
        {
            "patchType": "ApplyConfiguration",
            "applyConfiguration": {"expression": "Object{spec: Object.spec{a: params.data.a}}"},
        },
        paramKind=CONFIG_MAP,
    )
    cluster.bind_mutation(paramRef=reference(name="values"))

    assert cluster.create("w").json["spec"]["a"] == "from params"
