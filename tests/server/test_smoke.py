"""The server as a stranger meets it: TLS, credentials, health."""

from __future__ import annotations

from tests.support.server import LiveServer


def test_health_and_version_need_no_credential(server: LiveServer) -> None:
    for path in ("/livez", "/readyz", "/healthz", "/version"):
        assert server.request("GET", path, token=None).status == 200


def test_everything_else_refuses_strangers(server: LiveServer) -> None:
    answer = server.request("GET", "/api/v1/namespaces", token=None)
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")


def test_a_wrong_token_is_refused(server: LiveServer) -> None:
    assert server.request("GET", "/api/v1/namespaces", token="nope").status == 401


def test_the_initial_namespaces_exist(server: LiveServer) -> None:
    names = [
        n["metadata"]["name"] for n in server.request("GET", "/api/v1/namespaces").json["items"]
    ]
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= set(names)
