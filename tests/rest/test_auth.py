"""Who may ask: tokens, certificates, what is open to everyone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rest.support import failed
from tests.support.server import LiveServer, live_server


@pytest.mark.parametrize(
    "path", ["/livez", "/readyz", "/healthz", "/version", "/version/", "/readyz?verbose"]
)
def test_health_and_version_are_open(server: LiveServer, path: str) -> None:
    assert server.request("GET", path, token=None).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/apis",
        "/api/v1/namespaces",
        "/apis/nope.io/v1/foos",
        "/openapi/v2",
        "/metrics",
        "/",
        "/livez/ping",
    ],
)
def test_everything_else_needs_a_credential(server: LiveServer, path: str) -> None:
    wrong = server.request("GET", path, token="wrong")
    failed(wrong, 401, "Unauthorized", "Unauthorized")
    assert server.request("GET", path, token=None).status == 403


def test_without_anonymous_access_a_request_needs_a_credential() -> None:
    with live_server(anonymous=False) as server:
        for path in ("/livez", "/version", "/api", "/metrics"):
            failed(server.request("GET", path, token=None), 401, "Unauthorized", "Unauthorized")


def test_always_allow_does_not_allow_anonymous_requests() -> None:
    with live_server(authorization="AlwaysAllow") as server:
        assert server.request("GET", "/api", token=None).status == 401
        assert server.request("GET", "/api").status == 200


def test_a_token_of_the_token_file_names_its_user(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text('secret,alice,uid-1,"dev,ops"\n')
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    with live_server(token_file=file) as server:
        answer = server.request(
            "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, token="secret"
        )
    info = answer.json["status"]["userInfo"]
    assert (info["username"], info["uid"]) == ("alice", "uid-1")
    assert {"dev", "ops", "system:authenticated"} <= set(info["groups"])


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Basic abc", 403),
        ("Bearer", 403),
        ("Bearer ", 403),
        ("bearer  x", 403),
        ("\xff", 403),
        ("bearer x", 401),
        ("Bearer \xff", 401),
    ],
)
def test_a_wrong_token_is_401_and_a_missing_one_is_anonymous(
    server: LiveServer, header: str, status: int
) -> None:
    answer = server.request("GET", "/api", token=None, headers={"Authorization": header})
    assert answer.status == status


def test_access_reviews(server: LiveServer) -> None:
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = server.request("POST", path, body)
    assert (answer.status, answer.json["status"]["allowed"]) == (201, True)
    rules = {**body, "kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    assert server.request("POST", path, rules).json["status"]["incomplete"] is False


@pytest.mark.parametrize("spec", [None, 5, [], {"resourceAttributes": []}, {"token": 5}])
@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ("authorization.k8s.io", "SelfSubjectAccessReview"),
        ("authorization.k8s.io", "SelfSubjectRulesReview"),
        ("authentication.k8s.io", "TokenReview"),
        ("authentication.k8s.io", "SelfSubjectReview"),
    ],
)
def test_reviews_with_nonsense_never_fail(
    server: LiveServer, group: str, kind: str, spec: object
) -> None:
    body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
    answer = server.request("POST", f"/apis/{group}/v1/{kind.lower()}s", body)
    assert answer.status in (201, 400, 422), answer.text


def test_token_reviews(server: LiveServer) -> None:
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": server.token},
    }
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    status = server.request("POST", path, body).json["status"]
    assert (status["authenticated"], status["user"]["username"]) == (True, "kubernetes-admin")
    body["spec"] = {"token": "wrong"}
    assert server.request("POST", path, body).json["status"].get("authenticated", False) is False


def test_an_unknown_authorization_mode_is_an_error_at_start() -> None:
    for text in ("ABAC", "RBAC,rbac", "", "RBAC,RBAC", "Webhook"):
        with pytest.raises(ValueError, match="authorization"), live_server(authorization=text):
            pass
