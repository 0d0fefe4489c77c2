"""RBAC, pure: which rule matches what, whom a binding reaches, what a grant may hold."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.errors import Forbidden
from instar.kube.access.attributes import Attributes, User
from instar.kube.access.authorizers import Authorizer, Authorizers, authorize
from instar.kube.access.rbac.aggregation import aggregate_all, aggregated
from instar.kube.access.rbac.authorizer import RbacAuthorizer
from instar.kube.access.rbac.policy import RbacPolicy
from instar.kube.access.rbac.rules import PolicyRule, matches, uncovered_rules
from tests.support.counting import calls_of

CAROL = User("carol", ("devs", "system:authenticated"))


def asked(verb: str = "get", resource: str = "", user: User = CAROL, **more: str) -> Attributes:
    resource, _, subresource = resource.partition("/")
    return Attributes(user, verb, resource=resource, subresource=subresource, **more)


@pytest.mark.parametrize(
    ("resources", "wanted", "expected"),
    [
        (["pods"], "pods", True),
        (["pods"], "pods/status", False),
        (["pods/*"], "pods/status", False),
        (["*"], "pods/status", True),
        (["*/scale"], "deployments/scale", True),
        (["*/scale"], "scale", False),
        (["pods/status"], "pods", False),
    ],
)
def test_resources_and_subresources(resources: list[str], wanted: str, expected: bool) -> None:
    rule = PolicyRule(("get",), ("",), tuple(resources))
    assert matches(rule, asked("get", wanted)) is expected


@pytest.mark.parametrize(
    ("rule", "path", "expected"),
    [
        ("*", "/anything", True),
        ("/foo*", "/foo", True),
        ("/foo*", "/foobar", True),
        ("/bar/*", "/bar/x/y", True),
        ("/bar/*", "/bar", False),
        ("/q*x", "/qax", False),
        ("/q*x", "/q*x", True),
        ("/foo***", "/foobar", True),
    ],
)
def test_paths(rule: str, path: str, expected: bool) -> None:
    assert matches(PolicyRule(("get",), urls=(rule,)), asked("get", path=path)) is expected


def test_a_rule_with_names_refuses_requests_without_one() -> None:
    rule = PolicyRule(("*",), ("*",), ("foos",), ("a",))
    assert matches(rule, asked("get", "foos", name="a"))
    assert not matches(rule, asked("get", "foos", name="b"))
    assert not matches(rule, asked("list", "foos"))


def binding(kind: str, name: str, role: tuple[str, str], *subjects: dict[str, str]) -> Any:
    return {
        "kind": kind,
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role[0], "name": role[1]},
        "subjects": list(subjects),
    }


def role(name: str, *rules: dict[str, Any], **more: Any) -> Any:
    return {"metadata": {"name": name, **more.pop("metadata", {})}, "rules": list(rules), **more}


READ = {"verbs": ["get", "list"], "apiGroups": ["ex.io"], "resources": ["foos"]}
GROUP_DEVS = {"kind": "Group", "name": "devs"}
ROBOT = {"kind": "ServiceAccount", "name": "robot"}


READERS = binding("ClusterRoleBinding", "b", ("ClusterRole", "read"), GROUP_DEVS)


def authorizer(**stored: Any) -> RbacAuthorizer:
    policy = policy_of(**stored)
    return RbacAuthorizer(lambda: policy)


def policy_of(
    cluster_roles: Any = (), roles: Any = (), cluster_bindings: Any = (), bindings: Any = ()
) -> RbacPolicy:
    """Objects by key: ``name``, or ``namespace/name``."""
    policy = RbacPolicy()
    for key, obj in (dict(cluster_roles) | dict(roles)).items():
        namespace, _, name = key.rpartition("/")
        policy.put_role((namespace, name), obj)
    for key, obj in (dict(cluster_bindings) | dict(bindings)).items():
        namespace, _, name = key.rpartition("/")
        policy.put_binding((namespace, name), obj)
    return policy


def allowed(authorizer: Authorizer, wanted: Attributes) -> bool:
    decision = authorizer.decide(wanted)
    return decision is not None and decision.allowed


def reason(authorizer: Authorizer, wanted: Attributes) -> str:
    decision = authorizer.decide(wanted)
    assert decision is not None
    return decision.reason


def test_a_cluster_binding_reaches_every_namespace_and_a_role_binding_its_own() -> None:
    everywhere = authorizer(
        cluster_roles={"read": role("read", READ)},
        cluster_bindings={
            "b": binding("ClusterRoleBinding", "b", ("ClusterRole", "read"), GROUP_DEVS)
        },
    )
    inside = authorizer(
        cluster_roles={"read": role("read", READ)},
        bindings={"d/b": binding("RoleBinding", "b", ("ClusterRole", "read"), GROUP_DEVS)},
    )
    wanted = asked("list", "foos", group="ex.io", namespace="d")
    assert allowed(everywhere, wanted)
    assert allowed(everywhere, wanted._replace(namespace=""))
    assert allowed(inside, wanted)
    assert not allowed(inside, wanted._replace(namespace=""))
    assert not allowed(inside, wanted._replace(namespace="other"))
    assert reason(inside, wanted) == (
        'RBAC: allowed by RoleBinding "b/d" of ClusterRole "read" to Group "devs"'
    )


def test_a_service_account_without_namespace_is_of_the_bindings() -> None:
    rules = authorizer(
        roles={"d/read": role("read", READ)},
        bindings={"d/b": binding("RoleBinding", "b", ("Role", "read"), ROBOT)},
    )
    robot = User("system:serviceaccount:d:robot")
    wanted = asked("get", "foos", robot, group="ex.io", namespace="d", name="x")
    assert reason(rules, wanted) == (
        'RBAC: allowed by RoleBinding "b/d" of Role "read" to ServiceAccount "robot/d"'
    )


def test_missing_roles_are_the_reason_of_a_refusal() -> None:
    rules = authorizer(
        cluster_bindings={
            "a": binding("ClusterRoleBinding", "a", ("ClusterRole", "nosuch"), GROUP_DEVS)
        },
        bindings={"d/b": binding("RoleBinding", "b", ("Role", "nosuchrole"), GROUP_DEVS)},
    )
    with pytest.raises(Forbidden) as refused:
        asyncio.run(authorize(rules, asked("list", "foos", group="ex.io", namespace="d")))
    assert refused.value.message == (
        'foos.ex.io is forbidden: User "carol" cannot list resource "foos" in API group "ex.io" '
        'in the namespace "d": RBAC: [clusterrole.rbac.authorization.k8s.io "nosuch" not found, '
        'role.rbac.authorization.k8s.io "nosuchrole" not found]'
    )


def test_masters_may_everything() -> None:
    root = User("root", ("system:masters",))
    assert allowed(Authorizers([authorizer()]), asked("delete", "foos", root))


def test_a_change_of_policy_is_seen_at_once() -> None:
    policy = RbacPolicy()
    rules = RbacAuthorizer(lambda: policy)
    wanted = asked("get", "foos", group="ex.io")
    assert not allowed(rules, wanted)
    policy.put_role(("", "read"), role("read", READ))
    policy.put_binding(("", "b"), READERS)
    assert allowed(rules, wanted)
    policy.drop_binding(("", "b"))
    assert not allowed(rules, wanted)
    policy.put_binding(("", "b"), READERS)
    policy.drop_role(("", "read"))
    assert not allowed(rules, wanted)


def test_a_policy_read_anew_forgets_what_was_decided_by_the_former() -> None:
    policies = [policy_of({"read": role("read", READ)}, {}, {"b": READERS})]
    rules = RbacAuthorizer(lambda: policies[-1])
    wanted = asked("get", "foos", group="ex.io")
    assert allowed(rules, wanted)
    policies.append(RbacPolicy())
    policies[-1].generation = policies[0].generation
    assert not allowed(rules, wanted)


def test_a_binding_of_very_many_subjects_is_taken_in_one_pass() -> None:
    class Name(str):
        """Counts how often a name is compared with another one."""

        compared = 0

        def __eq__(self, other: object) -> bool:
            Name.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [Name(f"u{number}") for number in range(25_000)]
    subjects = [{"kind": "User", "name": name} for name in [*names, *names]]
    many = binding("ClusterRoleBinding", "b", ("ClusterRole", "read"), *subjects)
    policy = RbacPolicy()
    policy.put_binding(("", "b"), many)
    assert Name.compared <= 2 * len(subjects), "comparing each with each takes 300 million"
    [grant] = policy.grants(User("u24999"), "")
    assert grant.position == 24_999
    policy.drop_binding(("", "b"))
    assert policy.grants(User("u24999"), "") == []


@pytest.mark.parametrize("subjects", [None, "x", [1, None], [{"kind": "Robot", "name": "carol"}]])
@pytest.mark.parametrize("reference", [None, "x", {"kind": "Foo", "name": "read"}])
def test_a_stored_binding_that_makes_no_sense_grants_nothing(
    subjects: object, reference: object
) -> None:
    policy = policy_of({"read": role("read", READ)})
    policy.put_binding(("", "b"), {"subjects": subjects, "roleRef": reference})
    assert not allowed(RbacAuthorizer(lambda: policy), asked("get", "foos", group="ex.io"))


def test_a_binding_that_names_the_user_twice_counts_once_by_its_first_subject() -> None:
    user = {"kind": "User", "name": "carol"}
    policy = policy_of(
        {"read": role("read", READ)},
        cluster_bindings={
            "b": binding("ClusterRoleBinding", "b", ("ClusterRole", "read"), GROUP_DEVS, user)
        },
    )
    [grant] = policy.grants(CAROL, "")
    assert grant.subject_kind == "Group"


def test_rules_that_the_user_lacks_are_reported_one_by_one() -> None:
    owned = [PolicyRule(("get",), ("",), ("configmaps",)), PolicyRule(("get",), urls=("/ok/*",))]
    wanted = [
        PolicyRule(("get", "list", "watch"), ("",), ("configmaps",)),
        PolicyRule(("get",), ("ex.io",), ("foos",), ("a",)),
        PolicyRule(("get",), urls=("/x", "/ok/this")),
    ]
    assert [str(rule) for rule in uncovered_rules(owned, wanted)] == [
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["list" "watch"]}',
        '{APIGroups:["ex.io"], Resources:["foos"], ResourceNames:["a"], Verbs:["get"]}',
        '{NonResourceURLs:["/x"], Verbs:["get"]}',
    ]


words = st.sampled_from(["*", "get", "list", "pods", "pods/status", "*/status", "ex.io", ""])
tuples = st.lists(words, min_size=1, max_size=3).map(tuple)
rules = st.builds(PolicyRule, tuples, tuples, tuples, st.just(()) | tuples)


@given(st.lists(rules, max_size=3))
def test_a_user_may_grant_the_rules_of_its_own_roles(owned: list[PolicyRule]) -> None:
    assert uncovered_rules(owned, owned) == []


@given(st.lists(rules, max_size=3), rules)
def test_rules_that_cover_others_allow_nothing_new(
    owned: list[PolicyRule], wanted: PolicyRule
) -> None:
    if uncovered_rules(owned, [wanted]):
        return
    for verb in ("get", "list", "other"):
        for group in ("ex.io", "", "other"):
            for resource in ("pods", "pods/status", "x/status", "x"):
                for name in ("", "pods", "get"):
                    question = asked(verb, resource, group=group, name=name)
                    if matches(wanted, question):
                        assert any(matches(rule, question) for rule in owned)


def test_aggregation_gathers_by_selector_then_name_without_repeating() -> None:
    label = {"labels": {"to-view": "true"}}
    one, two = {**READ, "verbs": ["get"]}, {**READ, "verbs": ["watch"]}
    rule = {"clusterRoleSelectors": [{"matchLabels": {"to-view": "true"}}]}
    view = role("view", aggregationRule=rule, metadata=label)
    roles = {
        "view": view,
        "b": role("b", two, one, metadata=label),
        "a": role("a", one, metadata=label),
        "other": role("other", READ),
    }
    assert aggregated("view", view, roles) == [one, two]
    assert aggregated("a", roles["a"], roles) is None


def test_roles_that_gather_each_other_come_to_rest_with_the_rules_of_both() -> None:
    def gathers(name: str, mine: str, theirs: str, *rules: Any) -> Any:
        rule = {"clusterRoleSelectors": [{"matchLabels": {theirs: "true"}}]}
        labels = {"labels": {mine: "true"}}
        return role(name, *rules, aggregationRule=rule, metadata=labels)

    one = {**READ, "verbs": ["get"]}
    roles = {"a": gathers("a", "x", "y", one), "b": gathers("b", "y", "x")}
    assert aggregate_all(roles) == {"a": [], "b": []}
    roles["c"] = role("c", one, metadata={"labels": {"x": "true"}})
    assert aggregate_all(roles) == {"a": [one], "b": [one]}


def test_a_known_decision_costs_little() -> None:
    rules = authorizer(
        cluster_roles={"read": role("read", READ)},
        cluster_bindings={
            "b": binding("ClusterRoleBinding", "b", ("ClusterRole", "read"), GROUP_DEVS)
        },
    )
    wanted = asked("list", "foos", group="ex.io", namespace="d")
    first = calls_of(lambda: rules.decide(wanted))
    assert calls_of(lambda: rules.decide(wanted)) < first
    assert calls_of(lambda: rules.decide(wanted)) < 12


def _many_rules(bindings: int) -> RbacPolicy:
    """A role of very many rules; as many other roles like it as there are bindings."""
    verbs = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    policy = RbacPolicy()
    for number in range(bindings):
        rules = [{**verbs, "resourceNames": [f"x{number}-{n}"]} for n in range(5000)]
        policy.put_role(("t", f"r{number}"), {"rules": rules})
        bound = binding("RoleBinding", f"b{number}", ("Role", f"r{number}"), GROUP_DEVS)
        policy.put_binding(("t", f"b{number}"), bound)
    return policy


def test_a_role_that_many_bindings_name_is_looked_at_once() -> None:
    policy = _many_rules(1)
    once = RbacAuthorizer(lambda: policy)
    request = Attributes(User("u", ("devs",)), "get", "", "v1", "pods", "", "t", "x0-7", "/")
    first = calls_of(lambda: once.decide(request))
    for number in range(100):
        same = binding("RoleBinding", f"c{number}", ("Role", "r0"), GROUP_DEVS)
        policy.put_binding(("t", f"c{number}"), same)

    assert calls_of(lambda: once.decide(request)) < 2 * first


@pytest.mark.anyio
async def test_what_very_many_rules_decide_is_decided_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = _many_rules(12)
    decides = RbacAuthorizer(lambda: policy)
    request = Attributes(User("u", ("devs",)), "get", "", "v1", "pods", "", "t", "x11-7", "/")

    assert decides.decide(request) is None
    decision = await decides.ask(request)

    assert decision.allowed
    assert 'RoleBinding "b11/t"' in decision.reason
    assert not (await decides.ask(request._replace(name="other"))).allowed
    assert decides.decide(request) == decision  # it is known now
    policy.drop_binding(("t", "b11"))
    assert not (await decides.ask(request)).allowed
