"""Granting: nobody gives by a role or binding what they do not hold themselves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest.rbac import GROUP, as_, binding, given, guarded, path_of, role, rule, user
from tests.rest.support import MERGE, failed
from tests.support.server import LiveServer

__all__ = ["given", "guarded"]


@pytest.fixture
def ed_manages_roles(given: Any) -> None:
    given(
        role("rolemgr", rule("*", "roles rolebindings clusterroles clusterrolebindings", GROUP)),
        role("cm", rule("get", "configmaps")),
        binding("rolemgr", "ClusterRole/rolemgr", user("ed")),
        binding("cm", "ClusterRole/cm", user("ed")),
    )
    # "*" holds escalate and bind, too: tests that need a manager without them use carol.
    given(
        role(
            "careful",
            rule(
                "create get update patch delete",
                "roles rolebindings clusterroles clusterrolebindings",
                GROUP,
            ),
            rule("get", "configmaps"),
        ),
        binding("careful", "ClusterRole/careful", user("carol")),
    )


@pytest.mark.usefixtures("ed_manages_roles")
def test_a_user_cannot_grant_permissions_it_does_not_have(guarded: LiveServer) -> None:
    wanted = role(
        "r1",
        rule("get list watch", "configmaps"),
        rule("get", "foos", "ex.io", resourceNames=["a"]),
        namespace="default",
    )
    failed(
        as_(guarded, "carol", "POST", path_of(wanted), wanted),
        403,
        "Forbidden",
        'roles.rbac.authorization.k8s.io "r1" is forbidden: user "carol" '
        '(groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not '
        "currently held:\n"
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["list" "watch"]}\n'
        '{APIGroups:["ex.io"], Resources:["foos"], ResourceNames:["a"], Verbs:["get"]}',
    )
    held = role("r2", rule("get", "configmaps"), namespace="default")
    assert as_(guarded, "carol", "POST", path_of(held), held).status == 201
    change = {"rules": [rule("delete", "configmaps")]}
    patched = as_(guarded, "carol", "PATCH", f"{path_of(held)}/r2", change, content_type=MERGE)
    assert patched.status == 403
    labelled = as_(
        guarded,
        "carol",
        "PATCH",
        f"{path_of(held)}/r2",
        {"metadata": {"labels": {"a": "b"}}},
        content_type=MERGE,
    )
    assert labelled.status == 200
    guarded.request("DELETE", f"{path_of(held)}/r2")


@pytest.mark.usefixtures("ed_manages_roles")
def test_a_user_with_escalate_and_bind_may_grant_anything(guarded: LiveServer) -> None:
    everything = role("all", rule("*", "*", "*"))
    assert as_(guarded, "ed", "POST", path_of(everything), everything).status == 201
    bound = binding("all", "ClusterRole/all", user("ed"))
    assert as_(guarded, "ed", "POST", path_of(bound), bound).status == 201
    for obj in (bound, everything):
        guarded.request("DELETE", f"{path_of(obj)}/all")


@pytest.mark.usefixtures("ed_manages_roles")
def test_a_binding_grants_what_its_role_grants(guarded: LiveServer) -> None:
    wanted = binding("mine", "ClusterRole/cluster-admin", user("carol"))
    answer = as_(guarded, "carol", "POST", path_of(wanted), wanted)
    assert answer.json["message"] == (
        'clusterrolebindings.rbac.authorization.k8s.io "mine" is forbidden: user "carol" '
        '(groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not '
        "currently held:\n"
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n'
        '{NonResourceURLs:["*"], Verbs:["*"]}'
    )
    lost = binding("mine", "ClusterRole/nosuch", user("x"), namespace="default")
    failed(
        as_(guarded, "carol", "POST", path_of(lost), lost),
        404,
        "NotFound",
        'rolebindings.rbac.authorization.k8s.io "nosuch" not found',
    )
    strange = binding("mine", "Foo/x", user("x"), namespace="default")
    answer = as_(guarded, "carol", "POST", path_of(strange), strange)
    assert (answer.status, answer.json["message"]) == (
        500,
        'unsupported role reference kind: "Foo"',
    )
    held = binding("mine", "ClusterRole/cm", user("x"), namespace="default")
    assert as_(guarded, "carol", "POST", path_of(held), held).status == 201
    guarded.request("DELETE", f"{path_of(held)}/mine")


@pytest.mark.usefixtures("ed_manages_roles")
def test_gathering_rules_needs_all_of_them(guarded: LiveServer) -> None:
    selectors = [{"matchLabels": {"a": "b"}}]
    wanted = role("agg1", aggregationRule={"clusterRoleSelectors": selectors})
    failed(
        as_(guarded, "carol", "POST", path_of(wanted), wanted),
        403,
        "Forbidden",
        'clusterroles.rbac.authorization.k8s.io "agg1" is forbidden: must have cluster-admin '
        "privileges to use the aggregationRule",
    )


@pytest.mark.usefixtures("ed_manages_roles")
def test_a_role_too_large_to_compare_is_refused_and_delays_no_request(guarded: LiveServer) -> None:
    many = [f"x{n}" for n in range(2000)]
    wanted = role("big", {"verbs": many, "apiGroups": many, "resources": many})
    answer = as_(guarded, "carol", "POST", path_of(wanted), wanted)
    assert answer.status == 403
    assert "more at once than can be compared" in answer.json["message"]


def test_the_role_of_a_binding_cannot_change(guarded: LiveServer, given: Any) -> None:
    given(binding("fixed", "ClusterRole/view", user("x"), namespace="default"))
    changed = binding("fixed", "ClusterRole/edit", user("x"), namespace="default")
    answer = guarded.request("PUT", f"{path_of(changed)}/fixed", changed)
    assert answer.status == 422
    assert answer.json["details"]["causes"][0]["message"] == (
        'Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole",'
        '"Name":"edit"}: cannot change roleRef'
    )
