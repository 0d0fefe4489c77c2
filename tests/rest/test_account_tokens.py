"""Tokens of ServiceAccounts over HTTP: asked for, shown, refused; keys that others can read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.base.json_values import Object
from instar.server.identity import jwt
from instar.server.identity.keys import keys_of_jwks
from tests.rest.support import failed
from tests.support.server import Answer, LiveServer, live_server

CORE = "/api/v1/namespaces/default"
ISSUER = "https://kubernetes.default.svc"


@pytest.fixture(scope="module")
def accounts(server: LiveServer) -> Iterator[LiveServer]:
    for plural, body in (
        ("serviceaccounts", {"metadata": {"name": "sa1"}}),
        ("serviceaccounts", {"metadata": {"name": "sa2"}}),
        ("secrets", {"metadata": {"name": "bindme"}}),
        (
            "pods",
            {
                "metadata": {"name": "p1"},
                "spec": {
                    "serviceAccountName": "sa1",
                    "containers": [{"name": "c", "image": "i"}],
                },
            },
        ),
    ):
        answer = server.request("POST", f"{CORE}/{plural}", body)
        assert answer.status == 201, answer.text
    yield server
    for path in ("serviceaccounts/sa1", "serviceaccounts/sa2", "secrets/bindme"):
        server.request("DELETE", f"{CORE}/{path}")
    server.request("DELETE", f"{CORE}/pods/p1?gracePeriodSeconds=0")


def ask(server: LiveServer, spec: Any = None, name: str = "sa1", **more: Any) -> Answer:
    body = {**({"spec": spec} if spec is not None else {}), **more}
    return server.request("POST", f"{CORE}/serviceaccounts/{name}/token", body)


def token_of(server: LiveServer, **spec: Any) -> str:
    answer = ask(server, spec)
    assert answer.status == 201, answer.text
    token: str = answer.json["status"]["token"]
    return token


def whoami(server: LiveServer, token: str) -> Answer:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    return server.request("POST", path, {}, token=token)


def test_a_token_is_made_and_is_its_accounts(accounts: LiveServer) -> None:
    answer = ask(accounts)
    assert answer.status == 201
    body = answer.json
    assert (body["kind"], body["apiVersion"]) == ("TokenRequest", "authentication.k8s.io/v1")
    assert body["spec"] == {
        "audiences": [ISSUER],
        "expirationSeconds": 3600,
        "boundObjectRef": None,
    }
    shown = jwt.read(body["status"]["token"])
    assert shown is not None
    account = accounts.request("GET", f"{CORE}/serviceaccounts/sa1").json["metadata"]
    assert shown.claims["sub"] == "system:serviceaccount:default:sa1"
    assert shown.claims["kubernetes.io"] == {
        "namespace": "default",
        "serviceaccount": {"name": "sa1", "uid": account["uid"]},
    }
    assert shown.claims["exp"] - shown.claims["iat"] == 3600
    info = whoami(accounts, body["status"]["token"]).json["status"]["userInfo"]
    assert info["username"] == "system:serviceaccount:default:sa1"
    assert info["extra"] == {
        "authentication.kubernetes.io/credential-id": [f"JTI={shown.claims['jti']}"]
    }


def test_a_token_for_another_audience_is_refused(accounts: LiveServer) -> None:
    token = token_of(accounts, audiences=["vault"])
    failed(whoami(accounts, token), 401, "Unauthorized", "Unauthorized")
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    review: Object = {"spec": {"token": token}}
    assert accounts.request("POST", path, review).json["status"]["error"] == (
        '[invalid bearer token, token audiences ["vault"] is invalid for the target audiences '
        f'["{ISSUER}"]]'
    )
    review["spec"]["audiences"] = ["vault"]
    assert accounts.request("POST", path, review).json["status"]["authenticated"] is True


def test_a_bound_token_dies_with_its_object(accounts: LiveServer) -> None:
    made = accounts.request("POST", f"{CORE}/secrets", {"metadata": {"name": "short"}}).json
    reference = {"kind": "Secret", "apiVersion": "v1", "name": "short"}
    token = token_of(accounts, boundObjectRef=reference)
    shown = jwt.read(token)
    assert shown is not None
    expected = {"name": "short", "uid": made["metadata"]["uid"]}
    assert shown.claims["kubernetes.io"]["secret"] == expected
    accounts.request("DELETE", f"{CORE}/secrets/short")
    assert whoami(accounts, token).status == 401


def test_a_token_for_a_pod_lives_on_for_a_year(accounts: LiveServer) -> None:
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p1"}
    answer = ask(accounts, {"boundObjectRef": reference, "expirationSeconds": 3607}).json
    shown = jwt.read(answer["status"]["token"])
    assert shown is not None
    claims = shown.claims
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607
    info = whoami(accounts, answer["status"]["token"]).json["status"]["userInfo"]
    assert info["extra"]["authentication.kubernetes.io/pod-name"] == ["p1"]


@pytest.mark.parametrize(
    ("spec", "name", "more", "code", "reason", "message"),
    [
        ({}, "nosuch", {}, 404, "NotFound", 'serviceaccounts "nosuch" not found'),
        (
            {},
            "sa1",
            {"metadata": {"name": "other"}},
            422,
            "Invalid",
            'TokenRequest.authentication.k8s.io "sa1" is invalid: metadata.name: Invalid value: '
            '"other": must match the service account name if specified',
        ),
        (
            {},
            "sa1",
            {"metadata": {"namespace": "other"}},
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {"expirationSeconds": 599},
            "sa1",
            {},
            422,
            "Invalid",
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
            "value: 599: may not specify a duration less than 10 minutes",
        ),
        (
            {"expirationSeconds": 4294967297},
            "sa1",
            {},
            422,
            "Invalid",
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
            "value: 4294967297: may not specify a duration larger than 2^32 seconds",
        ),
        (
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "nopod"}},
            "sa1",
            {},
            404,
            "NotFound",
            'pods "nopod" not found',
        ),
        (
            {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}},
            "sa1",
            {},
            400,
            "BadRequest",
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            {
                "boundObjectRef": {
                    "kind": "Secret",
                    "apiVersion": "v1",
                    "name": "bindme",
                    "uid": "x",
                }
            },
            "sa1",
            {},
            409,
            "Conflict",
            'Operation cannot be fulfilled on Secret "bindme": the UID in the bound object '
            "reference (x) does not match the UID in record. The object might have been deleted "
            "and then recreated",
        ),
        (
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p1"}},
            "sa2",
            {},
            400,
            "BadRequest",
            'cannot bind token for serviceaccount "sa2" to pod running with different '
            "serviceaccount name.",
        ),
    ],
)
def test_tokens_that_cannot_be_requested_are_refused(
    accounts: LiveServer,
    spec: Object,
    name: str,
    more: Object,
    code: int,
    reason: str,
    message: str,
) -> None:
    failed(ask(accounts, spec, name, **more), code, reason, message)


def test_a_token_is_not_read_only_made(accounts: LiveServer) -> None:
    path = f"{CORE}/serviceaccounts/sa1/token"
    assert accounts.request("GET", path).status == 405
    wrong: list[Any] = [b"", b"rubbish", {"spec": 5}, {"spec": {"expirationSeconds": "x"}}, []]
    for body in wrong:
        answer = accounts.request("POST", path, body)
        assert answer.status == 400, answer.text
    strange: list[Any] = [5, [], {"name": 5}]
    for metadata in strange:
        assert ask(accounts, {}, metadata=metadata).status in (201, 400)


def test_third_parties_verify_tokens_by_the_published_keys(accounts: LiveServer) -> None:
    token = token_of(accounts)
    found = accounts.request("GET", "/.well-known/openid-configuration", token=token)
    assert found.header("cache-control") == "public, max-age=3600"
    assert found.json["issuer"] == ISSUER
    uri = found.json["jwks_uri"]
    assert uri == f"{accounts.url}/openid/v1/jwks"
    answer = accounts.request("GET", "/openid/v1/jwks", token=token)
    assert answer.header("content-type") == "application/jwk-set+json"
    shown = jwt.read(token)
    assert shown is not None
    assert any(key.verifies(shown) for key in keys_of_jwks(answer.json))
    assert accounts.request("GET", "/openid/v1/jwks", token=None).status == 403


def test_keys_stay_and_a_renamed_one_still_verifies(tmp_path: Path) -> None:
    settings = {"storage": f"sqlite:{tmp_path / 'db'}", "cert_dir": tmp_path / "pki"}
    with live_server(**settings) as server:
        body = {"metadata": {"name": "sa1"}}
        assert server.request("POST", f"{CORE}/serviceaccounts", body).status == 201
        token = token_of(server)
    key = tmp_path / "pki" / "sa.key"
    assert key.stat().st_mode & 0o777 == 0o600
    with live_server(**settings) as server:
        assert whoami(server, token).status == 201
    key.rename(tmp_path / "pki" / "sa.key.1")
    with live_server(**settings) as server:
        assert whoami(server, token).status == 201
        new = token_of(server)
    (tmp_path / "pki" / "sa.key.1").unlink()
    with live_server(**settings) as server:
        assert whoami(server, token).status == 401
        assert whoami(server, new).status == 201
