"""Default roles of Kubernetes' components, which let the real ones run on this server."""

from __future__ import annotations

import time

import pytest

from instar.cli.serving.authentication_flags import new_user
from instar.kube.access.rbac.rules import rules_of
from instar.server.registry.controllers.roles.controller_rules import CONTROLLER_ROLES
from instar.server.registry.controllers.roles.defaults import (
    component_bindings,
    component_roles,
    default_bindings,
    default_roles,
)
from instar.server.registry.controllers.roles.rule_lines import rule_from_line, rules_by_role
from tests.support.server import live_server

_RBAC = "/apis/rbac.authorization.k8s.io/v1"


def test_there_are_as_many_default_roles_and_bindings_as_in_kubernetes() -> None:
    made = [*default_roles(), *default_bindings(), *component_roles(), *component_bindings()]

    assert len(made) == 133
    names = {
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in made
    }
    assert len(names) == 133


def test_every_binding_names_a_role_that_is_there() -> None:
    roles = {
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        for one in [*default_roles(), *component_roles()]
    }

    for binding in [*default_bindings(), *component_bindings()]:
        ref, namespace = binding["roleRef"], binding["metadata"].get("namespace")
        assert (ref["kind"], namespace, ref["name"]) in roles


def test_a_rule_line_is_read_with_its_short_words() -> None:
    assert rule_from_line("read update | core apps | pods | one two") == {
        "verbs": ["get", "list", "update", "watch"],
        "apiGroups": ["", "apps"],
        "resources": ["pods"],
        "resourceNames": ["one", "two"],
    }
    assert rule_from_line("get | /healthz /api/*") == {
        "verbs": ["get"],
        "nonResourceURLs": ["/api/*", "/healthz"],
    }


def test_a_long_rule_continues_in_the_next_line() -> None:
    block = (
        "one\n    get | core | pods\n        services\n    events\ntwo\n    list | core | pods\n"
    )

    assert rules_by_role(block) == {
        "one": ("get | core | pods services", "events"),
        "two": ("list | core | pods",),
    }


def test_every_rule_of_a_controller_can_be_evaluated() -> None:
    for lines in rules_by_role(CONTROLLER_ROLES).values():
        role = {"rules": [rule_from_line(line) for line in lines]}
        assert len(rules_of(role)) == len(lines)


def test_a_server_creates_the_roles_of_components() -> None:
    path = f"{_RBAC}/clusterroles/system:controller:deployment-controller"
    with live_server(storage="memory:", authorization="RBAC") as server:
        until = time.monotonic() + 10.0
        while server.request("GET", path).status != 200 and time.monotonic() < until:
            time.sleep(0.02)
        role = server.request("GET", path).json

    assert {"apiGroups": ["apps", "extensions"], "resources": ["deployments/status"],
            "verbs": ["update"]} in role["rules"]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name", "groups"),
    [
        ("jane=f", "jane", ()),
        ("jane:dev,ops=f", "jane", ("dev", "ops")),
        ("jane:system:masters=f", "jane", ("system:masters",)),
        ("system:kube-scheduler=f", "system:kube-scheduler", ()),
        ("system:node:n1:system:nodes=f", "system:node:n1", ("system:nodes",)),
        ("system:serviceaccount:a:b=f", "system:serviceaccount:a:b", ()),
    ],
)
def test_a_user_flag_takes_names_of_kubernetes_own_users(
    text: str, name: str, groups: tuple[str, ...]
) -> None:
    user = new_user(text)

    assert (user.name, user.groups) == (name, groups)
