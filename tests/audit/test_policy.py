"""Which requests a policy covers, and in which words a broken one is refused."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.access.attributes import Attributes, User
from instar.server.audit.policy import AuditLevel, AuditPolicyError, read

CAROL = User("carol", ("devs", "system:authenticated"))
PODS = Attributes(CAROL, "list", "", "v1", "pods", "", "d", "", "/api/v1/namespaces/d/pods")
LOG = PODS._replace(verb="get", subresource="log", name="p")
SCALE = Attributes(CAROL, "update", "apps", "v1", "deployments", "scale", "d", "x")
NODES = Attributes(CAROL, "list", "", "v1", "nodes")
HEALTH = Attributes(CAROL, "get", path="/healthz/ping")


def policy(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **more}


def on(group: str = "", *resources: str, names: tuple[str, ...] = ()) -> dict[str, Any]:
    each = {"group": group, "resources": list(resources), "resourceNames": list(names)}
    return {"resources": [each]}


@pytest.mark.parametrize(
    ("rule", "asked", "covered"),
    [
        ({}, PODS, True),
        ({}, HEALTH, True),
        ({"users": ["carol"]}, PODS, True),
        ({"users": ["car*"]}, PODS, False),
        ({"userGroups": ["ops", "devs"]}, PODS, True),
        ({"userGroups": ["ops"]}, PODS, False),
        ({"verbs": ["get"]}, PODS, False),
        ({"verbs": ["get", "list"]}, PODS, True),
        ({"namespaces": ["d"]}, PODS, True),
        ({"namespaces": ["d"]}, HEALTH, False),
        ({"namespaces": [""]}, NODES, True),
        ({"namespaces": [""]}, PODS, False),
        (on("", "pods"), PODS, True),
        (on("", "pods"), LOG, False),
        (on("", "pods/log"), LOG, True),
        (on("", "pods/log"), PODS, False),
        (on("", "pods/*"), LOG, True),
        (on("", "pods/*"), PODS, True),
        (on("", "*"), LOG, True),
        (on("apps", "*/scale"), SCALE, True),
        (on("", "*/scale"), SCALE, False),
        (on("*", "*/scale"), SCALE, True),
        (on("apps"), SCALE, True),
        (on("apps"), PODS, False),
        (on("", "*"), HEALTH, False),
        (on("", "pods/log", names=("p",)), LOG, True),
        (on("", "pods/log", names=("q",)), LOG, False),
        ({"nonResourceURLs": ["/healthz*"]}, HEALTH, True),
        ({"nonResourceURLs": ["/healthz"]}, HEALTH, False),
        ({"nonResourceURLs": ["*"]}, HEALTH, True),
        ({"nonResourceURLs": ["*"]}, PODS, False),
    ],
)
def test_a_rule_covers_what_upstreams_would(
    rule: dict[str, Any], asked: Attributes, covered: bool
) -> None:
    found = read(policy({"level": "Metadata", **rule})).decide(asked)

    assert (found.level is AuditLevel.METADATA) is covered


def test_the_first_rule_that_covers_decides_and_none_is_nothing() -> None:
    several = policy({"level": "None", "users": ["carol"]}, {"level": "Request"})

    assert read(several).decide(PODS).level is AuditLevel.NONE
    assert read(several).decide(PODS._replace(user=User("dan"))).level is AuditLevel.REQUEST
    assert read(policy({"level": "Request", "users": ["x"]})).decide(PODS).level is AuditLevel.NONE


def test_stages_are_united_and_a_rules_word_on_managed_fields_is_the_last() -> None:
    found = read(
        policy(
            {"level": "Request", "omitStages": ["Panic"], "omitManagedFields": False},
            omitStages=["RequestReceived"],
            omitManagedFields=True,
        )
    ).decide(PODS)

    assert found.omitted == {"RequestReceived", "Panic"}
    assert not found.bare


ALL = '"None", "Metadata", "Request", "RequestResponse"'


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (policy(), "loaded illegal policy with 0 rules"),
        (policy({}), "rules[0].level: Required value"),
        (
            policy({"level": "All"}),
            f'rules[0].level: Unsupported value: "All": supported values: {ALL}',
        ),
        (
            policy({"level": "None", "nonResourceURLs": ["/x"], **on("", "pods")}),
            'rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular '
            "resources and non-resource URLs",
        ),
        (
            policy({"level": "None", "nonResourceURLs": ["x"]}),
            'rules[0].nonResourceURLs[0]: Invalid value: "x": non-resource URL rules must begin '
            "with a '/' character",
        ),
        (
            policy({"level": "None", "nonResourceURLs": ["/a*b"]}),
            "rules[0].nonResourceURLs[0]: Invalid value: \"/a*b\": non-resource URL wildcards '*' "
            "must be the final character of the rule",
        ),
        (
            policy({"level": "None", **on("", names=("a",))}),
            'rules[0].resources[0].resourceNames: Invalid value: ["a"]: using resourceNames '
            "requires at least one resource",
        ),
        (
            policy({"level": "None"}, omitStages=["x"]),
            'omitStages[0]: Invalid value: "x": allowed stages are RequestReceived,ResponseStarted,'
            "ResponseComplete,Panic",
        ),
        (policy({"level": 1}), "rules[0].level: a string was expected"),
        ([], "it is no object"),
    ],
)
def test_each_mistake_has_its_words(document: Any, told: str) -> None:
    with pytest.raises(AuditPolicyError) as caught:
        read(document)

    assert str(caught.value) == told


def test_a_document_of_another_kind_is_not_an_audit_policy() -> None:
    with pytest.raises(AuditPolicyError, match="unknown group version field in policy"):
        read({"apiVersion": "audit.k8s.io/v1beta1", "kind": "Policy", "rules": [{}]})


def test_unknown_fields_are_reported_and_ignored() -> None:
    found = read(policy({"level": "Metadata", "user": ["x"]}, colour="red"))

    assert found.unknown == ("rules[0].user", "colour")
    assert found.decide(PODS).level is AuditLevel.METADATA
