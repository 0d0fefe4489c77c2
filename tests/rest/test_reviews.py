"""Reviews: who somebody is, what they may do. Answers as kube-apiserver 1.36.4 gave them."""

from __future__ import annotations

from typing import Any

import pytest

from instar.base.json_values import Object
from tests.rest.rbac import as_, binding, given, guarded, role, rule, user
from tests.support.server import Answer, LiveServer

__all__ = ["given", "guarded"]

AUTHZ = "/apis/authorization.k8s.io/v1"


def ask(server: LiveServer, kind: str, spec: Any, who: str = "", **more: Any) -> Answer:
    namespace = more.pop("namespace", "")
    place = f"/namespaces/{namespace}" if namespace else ""
    body = {"spec": spec, **more}
    path = f"{AUTHZ}{place}/{kind.lower()}s"
    return as_(server, who, "POST", path, body) if who else server.request("POST", path, body)


PODS = {"verb": "list", "resource": "pods", "namespace": "default"}


def test_an_answer_says_whether_and_why(guarded: LiveServer, given: Any) -> None:
    given(role("p", rule("list", "pods")), binding("p", "ClusterRole/p", user("carol")))
    spec = {"resourceAttributes": PODS}
    mine = ask(guarded, "SelfSubjectAccessReview", spec, "carol")
    assert mine.status == 201
    assert mine.json["kind"] == "SelfSubjectAccessReview"
    assert mine.json["spec"] == spec
    assert list(mine.json["metadata"]) == ["managedFields"]
    assert mine.json["status"] == {
        "allowed": True,
        "reason": 'RBAC: allowed by ClusterRoleBinding "p" of ClusterRole "p" to User "carol"',
    }
    assert ask(guarded, "SelfSubjectAccessReview", spec).json["status"] == {"allowed": True}
    assert ask(guarded, "SelfSubjectAccessReview", spec, "ed").json["status"] == {"allowed": False}
    theirs = ask(guarded, "SubjectAccessReview", {**spec, "user": "carol"})
    assert theirs.json["status"]["allowed"] is True
    assert ask(guarded, "SubjectAccessReview", {**spec, "user": "carol"}, "ed").status == 403
    local = ask(guarded, "LocalSubjectAccessReview", {**spec, "user": "carol"}, namespace="default")
    assert local.json["status"]["allowed"] is True


def test_groups_are_taken_literally(guarded: LiveServer) -> None:
    spec = {"nonResourceAttributes": {"verb": "get", "path": "/api"}, "user": "x"}
    assert not ask(guarded, "SubjectAccessReview", spec).json["status"]["allowed"]
    spec["groups"] = ["system:authenticated"]
    assert ask(guarded, "SubjectAccessReview", spec).json["status"]["allowed"]


def test_missing_roles_are_reported(guarded: LiveServer, given: Any) -> None:
    given(binding("lost", "ClusterRole/nosuch", user("carol")))
    missing = 'clusterrole.rbac.authorization.k8s.io "nosuch" not found'
    status = ask(guarded, "SelfSubjectAccessReview", {"resourceAttributes": PODS}, "carol").json
    assert status["status"] == {"allowed": False, "reason": f"RBAC: {missing}"}
    rules = ask(guarded, "SelfSubjectRulesReview", {"namespace": "default"}, "carol").json
    assert rules["status"]["evaluationError"] == missing


@pytest.mark.parametrize(
    ("kind", "spec", "metadata", "message"),
    [
        (
            "SelfSubjectAccessReview",
            {},
            {},
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes "
            "or resourceAttributes must be specified",
        ),
        (
            "SelfSubjectAccessReview",
            {"resourceAttributes": PODS, "nonResourceAttributes": {"path": "/api", "verb": "get"}},
            {},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/api","Verb":"get"}: cannot be '
            "specified in combination with resourceAttributes",
        ),
        (
            "SubjectAccessReview",
            {"resourceAttributes": PODS},
            {},
            'spec.user: Invalid value: "": at least one of user or group must be specified',
        ),
        (
            "SelfSubjectAccessReview",
            {"resourceAttributes": {**PODS, "fieldSelector": {}}},
            {},
            "spec.resourceAttributes.fieldSelector.requirements: Required value: when "
            "spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is "
            "required",
        ),
        (
            "LocalSubjectAccessReview",
            {"resourceAttributes": {**PODS, "namespace": "other"}, "user": "x"},
            {},
            'spec.resourceAttributes.namespace: Invalid value: "other": must match '
            "metadata.namespace",
        ),
    ],
)
def test_a_review_that_asks_nothing_is_refused(
    guarded: LiveServer, kind: str, spec: Object, metadata: Object, message: str
) -> None:
    namespace = "default" if kind.startswith("Local") else ""
    answer = ask(guarded, kind, spec, metadata=metadata, namespace=namespace)
    assert answer.status == 422
    assert answer.json["message"] == f'.authorization.k8s.io "" is invalid: {message}'
    assert answer.json["details"]["group"] == "authorization.k8s.io"
    assert "kind" not in answer.json["details"]


def test_a_named_review_is_refused(guarded: LiveServer) -> None:
    answer = ask(
        guarded, "SelfSubjectAccessReview", {"resourceAttributes": PODS}, metadata={"name": "x"}
    )
    assert (answer.status, "must be empty" in answer.json["message"]) == (422, True)


def test_an_invalid_selector_is_reported_and_ignored(guarded: LiveServer) -> None:
    selector = {"rawSelector": "a=b=c,!!"}
    spec = {"resourceAttributes": {**PODS, "labelSelector": selector}}
    assert ask(guarded, "SelfSubjectAccessReview", spec).json["status"] == {
        "allowed": True,
        "evaluationError": "spec.resourceAttributes.labelSelector ignored due to parse error",
    }


def test_rules_are_listed(guarded: LiveServer) -> None:
    answer = ask(guarded, "SelfSubjectRulesReview", {"namespace": "default"}, "ed")
    assert (answer.status, answer.json["metadata"], answer.json["spec"]) == (201, {}, {})
    status = answer.json["status"]
    assert status["incomplete"] is False
    assert {
        "verbs": ["create"],
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["selfsubjectreviews"],
    } in status["resourceRules"]
    admin = ask(guarded, "SelfSubjectRulesReview", {"namespace": "default"}).json["status"]
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    assert everything in admin["resourceRules"]
    empty = ask(guarded, "SelfSubjectRulesReview", {})
    assert (empty.status, empty.json["message"]) == (400, "no namespace on request")


def review_token(server: LiveServer, token: Any, **more: Any) -> Answer:
    body = {"spec": {"token": token, **more}}
    return server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)


def test_a_token_review_names_the_user_of_a_token(guarded: LiveServer) -> None:
    answer = review_token(guarded, "carol-token")
    assert answer.status == 201
    assert answer.json["status"] == {
        "authenticated": True,
        "user": {
            "username": "carol",
            "uid": "carol-uid",
            "groups": ["devs", "system:authenticated"],
        },
        "audiences": ["https://kubernetes.default.svc"],
    }
    wrong = review_token(guarded, "nope").json["status"]
    assert wrong == {"user": {}, "error": "invalid bearer token"}
    elsewhere = review_token(guarded, "carol-token", audiences=["vault"]).json["status"]
    assert elsewhere == {"user": {}, "error": "invalid bearer token"}
    empty = review_token(guarded, "")
    assert (empty.status, empty.json["message"]) == (
        400,
        "token is required for TokenReview in authentication",
    )


def test_whoami(guarded: LiveServer) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = as_(guarded, "carol", "POST", path, {"spec": {"ignored": True}})
    assert answer.status == 201
    assert list(answer.json["metadata"]) == ["creationTimestamp"]
    assert answer.json["status"]["userInfo"]["username"] == "carol"
