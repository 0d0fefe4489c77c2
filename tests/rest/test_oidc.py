"""Tokens of an issuer elsewhere, against a server: believed, mapped, refused, and the file read
again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.base.certificates import new_private_key
from instar.server.access.identities import JwtSettings
from instar.server.identity.keys import signing_key
from instar.server.identity.oidc import trusted_issuers
from tests.rest.support import failed
from tests.support.issuer import LocalIssuer, local_issuer
from tests.support.server import Answer, LiveServer, live_server
from tests.support.waiting import eventually

WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews"


def config(issuer: LocalIssuer, **more: Any) -> Any:
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [
            {
                "issuer": {
                    "url": issuer.url,
                    "certificateAuthority": issuer.authority,
                    "audiences": ["kube", "other"],
                    "audienceMatchPolicy": "MatchAny",
                },
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": "oidc:"},
                    "groups": {"expression": "claims.?roles.orValue([])"},
                    "uid": {"expression": "claims.?oid.orValue('')"},
                    "extra": [
                        {
                            "key": "example.com/tenant",
                            "valueExpression": "claims.?tenant.orValue('')",
                        }
                    ],
                },
                "claimValidationRules": [
                    {"expression": "claims.sub != 'evil'", "message": "no evil"}
                ],
                "userValidationRules": [
                    {"expression": "!user.username.startsWith('oidc:system:')", "message": "m"}
                ],
                **more,
            }
        ],
    }


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalIssuer]:
    with local_issuer(tmp_path_factory.mktemp("issuer")) as found:
        yield found


@pytest.fixture(scope="module")
def trusting(issuer: LocalIssuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    file = tmp_path_factory.mktemp("config") / "authentication.yaml"
    file.write_text(json.dumps(config(issuer)))
    with live_server(tokens_of_others=JwtSettings(config=file)) as server:
        eventually(lambda: whoami(server, issuer.token()).status == 201)
        yield server


def whoami(server: LiveServer, token: str) -> Answer:
    return server.request("POST", WHOAMI, {}, token=token)


def error(server: LiveServer, token: str) -> str:
    answer = server.request("POST", REVIEW, {"spec": {"token": token}})
    assert "authenticated" not in answer.json["status"]
    return str(answer.json["status"]["error"])


def test_claims_become_a_user(trusting: LiveServer, issuer: LocalIssuer) -> None:
    token = issuer.token(roles=["dev", "ops"], oid="o1", tenant="t1")
    assert whoami(trusting, token).json["status"]["userInfo"] == {
        "username": "oidc:jane",
        "uid": "o1",
        "groups": ["dev", "ops", "system:authenticated"],
        "extra": {
            "authentication.kubernetes.io/credential-id": ["JTI=id-1"],
            "example.com/tenant": ["t1"],
        },
    }
    plain = whoami(trusting, issuer.token(sub="joe", jti=None)).json["status"]["userInfo"]
    assert plain == {"username": "oidc:joe", "groups": ["system:authenticated"]}


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"aud": ["zzz"]}, 'oidc: expected audience in ["kube" "other"] got ["zzz"]'),
        ({"aud": None}, 'oidc: expected audience in ["kube" "other"] got []'),
        (
            {"exp": 1_700_000_000},
            "oidc: verify token: oidc: token is expired (Token Expiry: 2023-11-14 22:13:20 +0000 "
            "UTC)",
        ),
        ({"exp": None}, "token is expired"),
        ({"exp": "soon"}, "token is expired"),
        ({"nbf": 9_000_000_000}, "before the nbf (not before) time: 2255-03-14"),
        ({"sub": None}, 'oidc: parse username claims "sub": claim not present'),
        ({"sub": 5}, "it is no string"),
        (
            {"sub": "evil"},
            "oidc: error evaluating claim validation expression: validation expression 'claims.sub "
            "!= 'evil'' failed: no evil",
        ),
        ({"sub": "system:x"}, "oidc: error evaluating user info validation rule"),
        ({"roles": [1]}, "expression must return a string or a list of strings"),
    ],
)
def test_a_token_that_is_not_good_is_refused(
    trusting: LiveServer, issuer: LocalIssuer, claims: dict[str, Any], text: str
) -> None:
    token = issuer.token(**claims)
    failed(whoami(trusting, token), 401, "Unauthorized", "Unauthorized")
    assert text in error(trusting, token)


def test_a_strangers_signature_is_refused(trusting: LiveServer, issuer: LocalIssuer) -> None:
    own = issuer.key
    try:
        issuer.key = signing_key(new_private_key())
        forged = issuer.token()
    finally:
        issuer.key = own
    assert "failed to verify id token signature" in error(trusting, forged)
    header, payload, _ = issuer.token().split(".")
    assert "failed to verify" in error(trusting, f"{header}.{payload}.AAAA")


def test_a_token_of_an_unknown_issuer_is_rejected(
    trusting: LiveServer, issuer: LocalIssuer
) -> None:
    assert error(trusting, issuer.token(iss="https://else")) == "invalid bearer token"


def test_rotated_keys_are_found(
    issuer: LocalIssuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("instar.server.identity.oidc.issuer._LEAST_SECONDS", 0.0)
    file = tmp_path / "authentication.yaml"
    file.write_text(json.dumps(config(issuer)))
    with live_server(tokens_of_others=JwtSettings(config=file)) as server:
        eventually(lambda: whoami(server, issuer.token()).status == 201)
        own = issuer.key
        try:
            issuer.key = signing_key(new_private_key())
            assert whoami(server, issuer.token()).status == 201
        finally:
            issuer.key = own


def test_a_changed_file_is_read_again_and_a_broken_one_changes_nothing(
    issuer: LocalIssuer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(
        trusted_issuers.TrustedIssuers.__init__,
        "__kwdefaults__",
        {"load": None, "look_seconds": 0.05},
    )
    file = tmp_path / "authentication.yaml"
    file.write_text(json.dumps(config(issuer)))
    with live_server(tokens_of_others=JwtSettings(config=file)) as server:
        token = issuer.token()
        eventually(lambda: whoami(server, token).status == 201)
        file.write_text("jwt: [")
        eventually(lambda: "stays as it was" in caplog.text)
        assert whoami(server, token).status == 201
        rules = [{"expression": "false", "message": "closed"}]
        file.write_text(json.dumps(config(issuer, claimValidationRules=rules)))
        eventually(lambda: whoami(server, token).status == 401)


def test_an_unreachable_issuer_authenticates_no_token_and_the_server_starts(tmp_path: Path) -> None:
    with local_issuer(tmp_path / "issuer") as issuer:
        issuer.claimed = "https://another"
        flags = {
            **dict.fromkeys(("username_prefix", "groups_claim", "groups_prefix"), ""),
            "issuer_url": issuer.url,
            "client_id": "kube",
            "username_claim": "sub",
            "ca_file": tmp_path / "issuer" / "ca.crt",
            "signing_algs": "ES256",
            "required_claim": [],
        }
        with live_server(tokens_of_others=JwtSettings(oidc=flags)) as server:
            eventually(lambda: bool(issuer.asked))
            assert whoami(server, issuer.token()).status == 401
            assert "oidc: authenticator not initialized" in error(server, issuer.token())
            assert server.request("GET", "/api").status == 200


def test_a_configuration_that_is_wrong_keeps_the_server_from_starting(tmp_path: Path) -> None:
    file = tmp_path / "authentication.yaml"
    file.write_text("kind: AuthenticationConfiguration\nnope: 1\n")
    with (
        pytest.raises(ValueError, match="authentication configuration file"),
        live_server(tokens_of_others=JwtSettings(config=file)),
    ):
        pass
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(ValueError), live_server(tokens_of_others=JwtSettings(config=path)):
            pass


def test_anonymous_requests_only_where_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "authentication.yaml"
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": True, "conditions": [{"path": "/healthz"}]},
    }
    file.write_text(json.dumps(document))
    with live_server(tokens_of_others=JwtSettings(config=file)) as server:
        assert server.request("GET", "/healthz", token=None).status == 200
        for path in ("/readyz", "/livez", "/healthz/", "/api"):
            assert server.request("GET", path, token=None).status == 401
    with (
        pytest.raises(ValueError, match="--anonymous-auth flag cannot be set"),
        live_server(tokens_of_others=JwtSettings(config=file), anonymous=True),
    ):
        pass
