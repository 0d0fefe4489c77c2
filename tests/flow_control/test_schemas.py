"""Which FlowSchema takes a request."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.access.attributes import ANONYMOUS, Attributes, User
from instar.kube.flow_control.schemas import FlowSchema, classify, flow_schema_of, in_matching_order
from instar.server.registry.controllers.bootstrap.flow_schemas import flow_objects
from tests.flow_control.objects import asked, schema

_MASTERS = ("system:masters", "system:authenticated")
_NODES = ("system:nodes", "system:authenticated")
_ACCOUNTS = ("system:serviceaccounts", "system:authenticated")


def _rule(subject: dict[str, Any], **rules: Any) -> FlowSchema:
    return flow_schema_of(
        {
            "metadata": {"name": "s"},
            "spec": {
                "priorityLevelConfiguration": {"name": "l"},
                "rules": [{"subjects": [subject], **rules}],
            },
        }
    )


_ANY: dict[str, Any] = {
    "resourceRules": [
        {
            "verbs": ["*"],
            "apiGroups": ["*"],
            "resources": ["*"],
            "clusterScope": True,
            "namespaces": ["*"],
        }
    ]
}


@pytest.mark.parametrize(
    ("request_attributes", "expected"),
    [
        (asked(groups=_MASTERS), "exempt"),
        (Attributes(ANONYMOUS, "get", path="/healthz/etcd"), "probes"),
        (Attributes(ANONYMOUS, "get", path="/version"), "global-default"),
        (
            asked(
                "system:kube-scheduler",
                "update",
                group="coordination.k8s.io",
                resource="leases",
                namespace="kube-system",
            ),
            "system-leader-election",
        ),
        (asked("system:kube-scheduler", "list"), "kube-scheduler"),
        (asked("system:node:n", "patch", groups=_NODES, resource="nodes"), "system-node-high"),
        (asked("system:node:n", "list", groups=_NODES), "system-nodes"),
        (asked("system:serviceaccount:team:bot", groups=_ACCOUNTS), "service-accounts"),
        (
            asked("system:serviceaccount:kube-system:dns", groups=_ACCOUNTS),
            "kube-system-service-accounts",
        ),
        (asked("jane"), "global-default"),
        (asked("jane", groups=()), "catch-all"),
    ],
)
def test_the_default_schemas_classify_as_upstream(
    request_attributes: Attributes, expected: str
) -> None:
    schemas = in_matching_order(
        flow_schema_of(each) for each in flow_objects() if each["kind"] == "FlowSchema"
    )

    assert classify(schemas, request_attributes).name == expected


def test_the_lowest_precedence_wins_and_then_the_name() -> None:
    schemas = [schema("b", "l", 5), schema("a", "l", 5), schema("z", "l", 4)]

    assert [each.name for each in in_matching_order(schemas)] == ["z", "a", "b"]


@pytest.mark.parametrize(
    ("subject", "user", "matches"),
    [
        ({"kind": "User", "user": {"name": "ann"}}, User("ann"), True),
        ({"kind": "User", "user": {"name": "*"}}, User("bob"), True),
        ({"kind": "User", "user": {"name": "ann"}}, User("anna"), False),
        ({"kind": "Group", "group": {"name": "g"}}, User("ann", ("g",)), True),
        ({"kind": "Group", "group": {"name": "g"}}, User("ann", ("h",)), False),
        (
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "*"}},
            User("system:serviceaccount:a:x"),
            True,
        ),
        (
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "*"}},
            User("system:serviceaccount:ab:x"),
            False,
        ),
        (
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "x"}},
            User("system:serviceaccount:a:y"),
            False,
        ),
        ({"kind": "Other"}, User("ann"), False),
    ],
)
def test_subjects(subject: dict[str, Any], user: User, matches: bool) -> None:
    assert _rule(subject, **_ANY).matches(Attributes(user, "get", resource="pods")) is matches


@pytest.mark.parametrize(
    ("change", "attributes", "matches"),
    [
        ({"resources": ["pods"]}, {"resource": "pods"}, True),
        ({"resources": ["pods"]}, {"resource": "pods", "subresource": "log"}, False),
        ({"resources": ["pods/log"]}, {"resource": "pods", "subresource": "log"}, True),
        ({"apiGroups": ["apps"]}, {"resource": "pods"}, False),
        ({"verbs": ["list"]}, {"resource": "pods"}, False),
        ({"clusterScope": False}, {"resource": "pods"}, False),
        ({"clusterScope": False}, {"resource": "pods", "namespace": "a"}, True),
        ({"namespaces": ["b"]}, {"resource": "pods", "namespace": "a"}, False),
        ({"namespaces": ["b"]}, {"resource": "pods"}, True),
    ],
)
def test_resource_rules(change: dict[str, Any], attributes: dict[str, Any], matches: bool) -> None:
    rule = {**_ANY["resourceRules"][0], **change}
    found = _rule({"kind": "User", "user": {"name": "*"}}, resourceRules=[rule])

    assert found.matches(Attributes(User("ann"), "get", **attributes)) is matches


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*", "/anything", True),
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/etcd", True),
        ("/healthz", "/healthzz", False),
        ("/apis/*", "/apis/apps", True),
        ("/apis/*", "/api", False),
    ],
)
def test_paths(pattern: str, path: str, matches: bool) -> None:
    rules = {"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": [pattern]}]}
    found = _rule({"kind": "User", "user": {"name": "*"}}, **rules)

    assert found.matches(Attributes(User("ann"), "get", path=path)) is matches
