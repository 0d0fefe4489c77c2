"""MutatingAdmissionPolicy over HTTP: the tables of the reference, texts to the letter."""

from __future__ import annotations

from typing import Any

import pytest

from tests.admission.policies.support import Cluster, apply, json_patch

DENIED = "policy 'pol.ref.io' with binding 'bind.ref.io' denied request: "


def test_a_configuration_is_laid_over_the_object(cluster: Cluster) -> None:
    cluster.mutation(
        apply("Object{spec: Object.spec{n: object.spec.n + 1, set: ['a'], m: {'k': 'v'}}}"),
        apply("Object{metadata: Object.metadata{labels: Object.metadata.labels{foo: 'bar'}}}"),
    )
    cluster.bind_mutation()

    made = cluster.create("w", n=4, set=["z"], a="kept").json

    assert made["spec"] == {"n": 5, "set": ["z", "a"], "a": "kept", "m": {"k": "v"}, "d": "given"}
    assert made["metadata"]["labels"] == {"foo": "bar"}


def test_a_json_patch_is_applied_and_each_mutation_sees_the_one_before(cluster: Cluster) -> None:
    cluster.mutation(
        json_patch("[JSONPatch{op: 'add', path: '/spec/n', value: 3}]"),
        json_patch(
            "object.spec.n == 3 ? [JSONPatch{op: 'add', path: '/metadata/labels', value: "
            "{'a/b': 'c'}}, JSONPatch{op: 'replace', path: '/metadata/labels/' + "
            "jsonpatch.escapeKey('a/b'), value: 'd'}] : []"
        ),
    )
    cluster.bind_mutation()

    made = cluster.create("w").json

    assert made["spec"]["n"] == 3
    assert made["metadata"]["labels"] == {"a/b": "d"}


def test_a_patch_whose_test_fails_changes_nothing_and_is_not_an_error(cluster: Cluster) -> None:
    cluster.mutation(
        json_patch(
            "[JSONPatch{op: 'add', path: '/spec/a', value: 'x'}, JSONPatch{op: 'test', path: "
            "'/spec/n', value: 9}]"
        )
    )
    cluster.bind_mutation()

    answer = cluster.create("w", n=1)

    assert answer.status == 201
    assert "a" not in answer.json["spec"]


@pytest.mark.parametrize(
    ("mutation", "text"),
    [
        (
            apply("Object{spec: Object.spec{zzz: 1}}"),
            "error applying patch: failed to convert patch object to typed object: .spec.zzz: "
            "field not declared in schema",
        ),
        (
            apply("Object{spec: Object.spec{n: 'x'}}"),
            "error applying patch: failed to convert patch object to typed object: .spec.n: "
            "expected numeric (int or float), got string",
        ),
        (
            apply("Object{spec: Object.wrong{n: 1}}"),
            'type mismatch: unexpected type name "Object.wrong", expected "Object.spec", which '
            "matches field name path from root Object type",
        ),
        (
            apply("Object{spec: Object.spec{tags: ['x']}}"),
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps "
            "or structs: .spec.tags",
        ),
        (
            json_patch("[JSONPatch{op: 'add', path: '/spec/m/k', value: 'x'}]"),
            'JSON Patch: add operation does not apply: doc is missing path: "/spec/m/k": missing '
            "value",
        ),
        (
            json_patch("[JSONPatch{op: 'remove', path: '/spec/nope'}]"),
            "JSON Patch: error in remove for path: '/spec/nope': Unable to remove nonexistent key: "
            "nope: missing value",
        ),
        (
            json_patch("[JSONPatch{op: 'frob', path: '/spec/nope'}]"),
            "JSON Patch: Unexpected kind: frob",
        ),
        (
            apply("Object{spec: Object.spec{n: object.spec.nope}}"),
            "expression 'Object{spec: Object.spec{n: object.spec.nope}}' resulted in error: no "
            "such key: nope",
        ),
    ],
)
def test_a_mutation_that_fails_denies_in_upstreams_shape(
    cluster: Cluster, mutation: dict[str, Any], text: str
) -> None:
    cluster.mutation(mutation)
    cluster.bind_mutation()

    answer = cluster.create("mp")

    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"{DENIED}{text}",
        "reason": "Invalid",
        "details": {
            "name": "mp",
            "group": cluster.group,
            "kind": "widgets",
            "causes": [{"message": f"{DENIED}{text}"}],
        },
        "code": 403,
    }


def test_every_failure_is_a_cause_unless_it_is_ignored(cluster: Cluster) -> None:
    broken = apply("Object{spec: Object.spec{n: object.spec.nope}}")
    cluster.mutation(broken, broken)
    cluster.mutation(broken, name="lax.ref.io", failurePolicy="Ignore")
    cluster.bind_mutation()
    cluster.bind_mutation(name="lax", policy="lax.ref.io")

    assert len(cluster.create("w").json["details"]["causes"]) == 2


def test_a_fault_of_the_configuration_is_forbidden(cluster: Cluster) -> None:
    cluster.mutation(apply("Object{}"), paramKind={"apiVersion": "nope.io/v1", "kind": "Foo"})
    cluster.bind_mutation(paramRef={"name": "x", "parameterNotFoundAction": "Deny"})

    answer = cluster.create("w")

    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert answer.json["message"] == (
        'policy "pol.ref.io" denied request: failed to configure policy: failed to find resource '
        "referenced by paramKind: 'nope.io/v1, Kind=Foo'"
    )


def test_a_field_removed_by_a_mutation_is_defaulted_again(cluster: Cluster) -> None:
    cluster.mutation(json_patch("[JSONPatch{op: 'remove', path: '/spec/d'}]"))
    cluster.bind_mutation()

    assert cluster.create("w", d="other").json["spec"]["d"] == "given"


def test_the_result_is_validated(cluster: Cluster) -> None:
    cluster.mutation(json_patch("[JSONPatch{op: 'add', path: '/spec/n', value: 'text'}]"))
    cluster.bind_mutation()

    answer = cluster.create("w")

    assert answer.status == 422
    assert "spec.n: Invalid value" in answer.json["message"]


def test_fields_set_by_a_mutation_have_no_owner(cluster: Cluster) -> None:
    cluster.mutation(apply("Object{spec: Object.spec{a: 'set'}}"))
    cluster.bind_mutation()

    made = cluster.create("w", n=1).json

    owned = made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
    assert made["spec"]["a"] == "set"
    assert "f:a" not in owned
    assert "f:n" in owned


@pytest.mark.parametrize(("policy", "ends_at"), [("Never", 1), ("IfNeeded", 2)])
def test_a_policy_that_wants_to_see_changes_runs_twice(
    cluster: Cluster, policy: str, ends_at: int
) -> None:
    cluster.mutation(
        apply("Object{spec: Object.spec{n: object.spec.n + 1}}"), reinvocationPolicy=policy
    )
    cluster.bind_mutation()

    assert cluster.create("w", n=0).json["spec"]["n"] == ends_at


def test_conditions_and_variables_work_as_for_validation(cluster: Cluster) -> None:
    cluster.mutation(
        apply("Object{spec: Object.spec{n: variables.next}}"),
        variables=[{"name": "next", "expression": "object.spec.n + 1"}],
        matchConditions=[{"name": "small", "expression": "object.spec.n < 5"}],
    )
    cluster.bind_mutation()

    assert cluster.create("a", n=1).json["spec"]["n"] == 2
    assert cluster.create("b", n=5).json["spec"]["n"] == 5


def test_validating_policies_see_what_mutating_ones_left(cluster: Cluster) -> None:
    cluster.mutation(apply("Object{spec: Object.spec{a: 'mutated'}}"))
    cluster.bind_mutation()
    cluster.policy("object.spec.a == 'mutated' && has(object.metadata.uid)", name="after.ref.io")
    cluster.bind(policy="after.ref.io")

    assert cluster.create("w", a="sent").status == 201


def test_on_create_an_object_has_no_uid_yet(cluster: Cluster) -> None:
    expression = "has(object.metadata.uid) ? Object{spec: Object.spec{a: 'has'}} : Object{}"
    cluster.mutation(apply(expression))
    cluster.bind_mutation()

    assert "a" not in cluster.create("w").json["spec"]


def test_updates_are_mutated_and_deletes_are_not(cluster: Cluster) -> None:
    cluster.create("w", n=1)
    cluster.mutation(
        apply("Object{spec: Object.spec{a: 'touched'}}"),
        matchConstraints=cluster.rules("*"),
    )
    cluster.bind_mutation()
    merge = "application/merge-patch+json"

    patched = cluster.server.request(
        "PATCH", cluster.path("w"), {"spec": {"n": 2}}, content_type=merge
    )

    assert patched.json["spec"]["a"] == "touched"
    assert cluster.server.request("DELETE", cluster.path("w")).status == 200


def test_the_scale_of_a_custom_resource_cannot_be_mutated(cluster: Cluster) -> None:
    cluster.create("w", replicas=1)
    rules = cluster.rules("UPDATE", resources=["widgets/scale"])
    cluster.mutation(
        apply("Object{spec: Object.spec{replicas: 2}}"),
        json_patch("[JSONPatch{op: 'replace', path: '/spec/replicas', value: 2}]"),
        matchConstraints=rules,
    )
    cluster.bind_mutation()
    merge = "application/merge-patch+json"

    answer = cluster.server.request(
        "PATCH", cluster.path("w") + "/scale", {"spec": {"replicas": 3}}, content_type=merge
    )

    assert [cause["message"] for cause in answer.json["details"]["causes"]] == [
        f"{DENIED}error applying patch: failed to convert patch object to typed object: no "
        "corresponding type for autoscaling/v1, Kind=Scale",
        f"{DENIED}request to convert CR to an invalid group/version: autoscaling/v1",
    ]


def test_an_equivalent_version_is_mutated_and_converted_back(cluster: Cluster) -> None:
    cluster.mutation(apply("Object{spec: Object.spec{a: object.apiVersion}}"))
    cluster.bind_mutation()

    made = cluster.create("w", version="v2").json

    assert made["apiVersion"] == f"{cluster.group}/v2"
    assert made["spec"]["a"] == f"{cluster.group}/v1"


def test_of_two_versions_only_the_last_ones_change_is_kept(cluster: Cluster) -> None:
    cluster.mutation(apply("Object{spec: Object.spec{a: 'first'}}"), name="a.ref.io")
    cluster.mutation(
        apply("Object{spec: Object.spec{m: {'b': 'second'}}}"),
        name="b.ref.io",
        matchConstraints=cluster.rules("CREATE", apiVersions=["v2"]),
    )
    cluster.bind_mutation(name="a", policy="a.ref.io")
    cluster.bind_mutation(name="b", policy="b.ref.io")

    spec = cluster.create("w").json["spec"]

    assert spec["m"] == {"b": "second"}
    assert "a" not in spec


def test_built_in_kinds_are_mutated_and_typed(cluster: Cluster) -> None:
    rules = [
        {
            "apiGroups": ["apps"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["deployments"],
        }
    ]
    cluster.mutation(
        apply(
            "Object{spec: Object.spec{template: Object.spec.template{spec: "
            "Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: "
            "'sidecar', image: 'i'}]}}}}"
        ),
        matchConstraints={"resourceRules": rules},
    )
    cluster.bind_mutation()
    labels = {"app": "x"}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "mutated"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "m"}]},
            },
        },
    }

    answer = cluster.server.request("POST", "/apis/apps/v1/namespaces/default/deployments", body)

    assert answer.status == 201, answer.text
    containers = answer.json["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in containers] == ["main", "sidecar"]
    assert containers[1]["imagePullPolicy"] == "Always"
    cluster.server.request("DELETE", "/apis/apps/v1/namespaces/default/deployments/mutated")
