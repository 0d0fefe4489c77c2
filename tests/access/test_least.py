"""Least privilege from use: the roles that cover it, no more; and why somebody may or may not."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from instar.kube.access.attributes import Attributes, User
from instar.kube.access.rbac.explanations import explain
from instar.kube.access.rbac.least_privilege import (
    RequestUse,
    grants,
    manifests,
    not_covered,
    rules_for,
)
from instar.kube.access.rbac.policy import RbacPolicy
from instar.kube.access.rbac.rules import PolicyRule, matches, rules_of
from instar.server.registry.insight.access import AccessRecord

words = st.sampled_from(["get", "list", "create", "use"])
uses = st.lists(
    st.builds(
        RequestUse,
        words,
        st.sampled_from(["", "ex.io"]),
        st.sampled_from(["foos", "bars"]),
        st.sampled_from(["", "status"]),
        st.sampled_from(["", "a", "b"]),
        st.just(""),
    )
    | st.tuples(words, st.sampled_from(["/metrics", "/x"])).map(
        lambda two: RequestUse(two[0], path=two[1])
    ),
    max_size=12,
)


@given(uses)
def test_rules_cover_the_recorded_requests_and_nothing_else(done: list[RequestUse]) -> None:
    rules = rules_for(done)
    for use in done:
        assert any(matches(rule, use.attributes()) for rule in rules)
    did = {use._replace(namespace="") for use in done}
    for verb in ("get", "list", "create", "use", "delete"):
        for group in ("", "ex.io"):
            for resource in ("foos", "bars"):
                for subresource in ("", "status"):
                    other = RequestUse(verb, group, resource, subresource)
                    covered = any(matches(rule, other.attributes()) for rule in rules)
                    assert covered == (other in did)


@given(uses)
def test_manifests_grant_it_where_it_was_done(done: list[RequestUse]) -> None:
    policy = RbacPolicy()
    for obj in manifests(done, "n", "system:serviceaccount:d:robot", everywhere=False):
        place = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        (policy.put_binding if obj["kind"].endswith("Binding") else policy.put_role)(place, obj)
    robot = User("system:serviceaccount:d:robot")
    for use in done:
        assert explain(policy, use.attributes()._replace(user=robot)).allowed


def test_resources_that_need_the_same_share_a_rule() -> None:
    done = [
        RequestUse(verb, "ex.io", name) for verb in ("watch", "get") for name in ("foos", "bars")
    ]
    done += [RequestUse("get", "", "pods")]
    assert rules_for(done) == [
        PolicyRule(("get",), ("",), ("pods",)),
        PolicyRule(("get", "watch"), ("ex.io",), ("bars", "foos")),
    ]


def test_permissions_of_default_roles_need_no_role() -> None:
    everybody = [PolicyRule(("get",), urls=("/api", "/apis/*"))]
    done = [RequestUse("get", path="/apis/ex.io/v1"), RequestUse("get", path="/metrics")]
    assert not_covered(done, everybody) == [done[1]]


def test_a_namespace_is_a_matter_of_the_cluster() -> None:
    [role, binding] = manifests(
        [RequestUse("get", "", "namespaces", "", "a")], "n", "u", everywhere=False
    )
    assert (role["kind"], binding["kind"]) == ("ClusterRole", "ClusterRoleBinding")
    assert rules_of(role) == (PolicyRule(("get",), ("",), ("namespaces",)),)


def test_writing_roles_is_reported() -> None:
    group = "rbac.authorization.k8s.io"
    assert grants([RequestUse("create", group, "roles")])
    assert not grants([RequestUse("get", group, "roles"), RequestUse("create", "", "pods")])


# --- explain -------------------------------------------------------------------------------------


def policy(**objects: Any) -> RbacPolicy:
    made = RbacPolicy()
    rules = [{"verbs": ["get", "list"], "apiGroups": ["ex.io"], "resources": ["foos"]}]
    made.put_role(("", "read"), {"rules": rules})
    binding = {
        "roleRef": {"kind": "ClusterRole", "name": objects.get("role", "read")},
        "subjects": [{"kind": "User", "name": "carol"}],
    }
    made.put_binding((objects.get("namespace", ""), "b"), binding)
    return made


CAROL = User("carol", ("system:authenticated",))
FOOS = Attributes(CAROL, "list", "ex.io", "", "foos", "", "a")


def test_an_explanation_names_the_rule_that_allows() -> None:
    found = explain(policy(), FOOS)
    assert found.allowed
    [reason] = found.reasons
    assert (reason.grant.bound, reason.position) == ('ClusterRoleBinding "b"', 1)


def test_a_rule_that_lacks_one_condition_is_named_with_that_condition() -> None:
    def unfit(**other: Any) -> tuple[str, ...]:
        found = explain(policy(), FOOS._replace(**other))
        assert not found.allowed
        return found.near[0].unfit if found.near else ()

    assert unfit(verb="delete") == ("the verb delete",)
    assert unfit(resource="bars") == ("the resource bars",)
    assert unfit(subresource="status") == ("the resource foos/status",)
    assert unfit(group="other.io") == ('the group "other.io"',)
    assert unfit(verb="delete", group="other.io") == ()


def test_missing_roles_and_other_namespaces_are_named() -> None:
    assert explain(policy(role="nosuch"), FOOS).missing == (
        'clusterrole.rbac.authorization.k8s.io "nosuch" not found',
    )
    found = explain(policy(namespace="b"), FOOS, ("a", "b", "c"))
    assert (found.allowed, found.elsewhere) == (False, ("b",))


def test_masters_need_no_rule() -> None:
    root = FOOS._replace(user=User("root", ("system:masters",)))
    assert explain(RbacPolicy(), root).by_group == "system:masters"


# --- the record ----------------------------------------------------------------------------------


def test_the_record_forgets_the_oldest_and_says_since_when_it_is_whole() -> None:
    now = [0.0]
    record = AccessRecord(of_several=False, clock=lambda: now[0], most=4)
    for number in range(5):
        now[0] += 1
        record.note(FOOS._replace(verb=f"v{number}"))
        record.note(FOOS._replace(verb=f"v{number}"))
    document = record.document("carol")
    assert document["since"] == "1970-01-01T00:00:02.000Z"
    assert [(line["verb"], line["count"]) for line in document["uses"]] == [
        ("v2", 2),
        ("v3", 2),
        ("v4", 2),
    ]
    assert record.document("ed")["uses"] == []
    record.note(FOOS._replace(namespace="x" * 1000))
    assert len(record.document("")["uses"]) == 3
