"""Which requests a validating policy is asked about, and at which version it sees their objects."""

from __future__ import annotations

from tests.admission.policies.support import Cluster
from tests.admission.policies.test_validating import denial


def test_a_binding_narrows_what_its_policy_means(cluster: Cluster) -> None:
    cluster.policy("false")
    cluster.bind(matchResources={"objectSelector": {"matchLabels": {"strict": "yes"}}})

    assert cluster.create("a").status == 201
    labelled = cluster.widget("b")
    labelled["metadata"]["labels"] = {"strict": "yes"}
    assert cluster.server.request("POST", cluster.path(), labelled).status == 422


def test_rules_may_name_objects_and_leave_some_out(cluster: Cluster) -> None:
    rules = cluster.rules("*", resourceNames=["a", "b"])
    rules["excludeResourceRules"] = cluster.rules("*", resourceNames=["b"])["resourceRules"]
    cluster.policy("false", matchConstraints=rules)
    cluster.bind()

    assert [cluster.create(name).status for name in "abc"] == [422, 201, 201]


def test_an_equivalent_version_is_shown_as_the_policy_wants_it(cluster: Cluster) -> None:
    cluster.policy(
        f"object.apiVersion == '{cluster.group}/v1' && request.kind.version == 'v1' && "
        "request.requestKind.version == 'v2'",
        "request.requestKind.version == 'v1'",
    )
    cluster.bind()

    answer = cluster.create("vp", version="v2")

    assert answer.json["message"] == denial(
        cluster, "vp", "failed expression: request.requestKind.version == 'v1'"
    )


def test_an_exact_policy_does_not_see_other_versions(cluster: Cluster) -> None:
    cluster.policy("false", matchConstraints={**cluster.rules(), "matchPolicy": "Exact"})
    cluster.bind()

    assert cluster.create("a", version="v2").status == 201
    assert cluster.create("b").status == 422


def test_updates_patches_and_deletes_are_seen_with_the_old_object(cluster: Cluster) -> None:
    cluster.create("w", n=3)
    cluster.policy(
        "request.operation == 'DELETE' ? oldObject.spec.n != 3 && object == null : "
        "object.spec.n >= oldObject.spec.n",
        matchConstraints=cluster.rules("UPDATE", "DELETE"),
    )
    cluster.bind()
    path, merge = cluster.path("w"), "application/merge-patch+json"

    def patched(n: int) -> int:
        body = {"spec": {"n": n}}
        return cluster.server.request("PATCH", path, body, content_type=merge).status

    assert cluster.server.request("DELETE", path).status == 422
    assert cluster.server.request("DELETE", cluster.path()).status == 422
    assert patched(2) == 422
    assert patched(4) == 200
    assert cluster.server.request("DELETE", path).status == 200


def test_subresources_are_seen_where_rules_name_them(cluster: Cluster) -> None:
    cluster.create("w", n=3, replicas=1)
    rules = cluster.rules("UPDATE", resources=["widgets/status", "widgets/scale"])
    cluster.policy(
        "request.subResource == 'scale' ? object.spec.replicas < 5 && object.kind == 'Scale' : "
        "object.status.s != 'bad'",
        matchConstraints=rules,
    )
    cluster.bind()
    merge = "application/merge-patch+json"

    def patch(part: str, body: object) -> int:
        path = cluster.path("w") + part
        return cluster.server.request("PATCH", path, body, content_type=merge).status

    assert patch("/status", {"status": {"s": "bad"}}) == 422
    assert patch("/status", {"status": {"s": "good"}}) == 200
    assert patch("/scale", {"spec": {"replicas": 9}}) == 422
    assert patch("/scale", {"spec": {"replicas": 4}}) == 200
    assert patch("", {"spec": {"n": 9}}) == 200


def test_a_rule_does_not_matter_for_other_kinds(cluster: Cluster) -> None:
    cluster.policy(
        "false",
        matchConstraints=cluster.rules("*", apiGroups=["*"], apiVersions=["*"], resources=["*/*"]),
        matchConditions=[
            {"name": "ours", "expression": f"request.resource.group == '{cluster.group}'"}
        ],
    )
    cluster.bind()

    assert cluster.create("a").status == 422
    cluster.config_map("fine", {})


def test_built_in_kinds_and_definitions_are_judged_too(cluster: Cluster) -> None:
    rules = [
        {
            "apiGroups": ["", "apiextensions.k8s.io"],
            "apiVersions": ["*"],
            "operations": ["CREATE"],
            "resources": ["configmaps", "customresourcedefinitions"],
        }
    ]
    cluster.policy(
        "!object.metadata.name.startsWith('bad')", matchConstraints={"resourceRules": rules}
    )
    cluster.bind()
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad"}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "bads.other.io"},
        "spec": {
            "group": "other.io",
            "scope": "Namespaced",
            "names": {"plural": "bads", "kind": "Bad"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }

    core = cluster.server.request("POST", "/api/v1/namespaces/default/configmaps", body)
    crd = cluster.server.request(
        "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition
    )

    assert core.json["message"].startswith('configmaps "bad" is forbidden: ')
    assert crd.json["message"].startswith(
        'customresourcedefinitions.apiextensions.k8s.io "bads.other.io" is forbidden: '
    )


def test_policies_themselves_are_never_judged(cluster: Cluster) -> None:
    everything = cluster.rules("*", apiGroups=["*"], apiVersions=["*"], resources=["*"])
    cluster.policy(
        "false",
        matchConstraints=everything,
        matchConditions=[
            {"name": "own", "expression": "request.resource.group.endsWith('registration.k8s.io')"}
        ],
    )
    cluster.bind()

    cluster.policy("true", name="another.ref.io")
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hooks"},
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

    assert cluster.server.request("POST", path, configuration).status == 422
