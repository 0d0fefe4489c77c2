"""Which issuers are believed: what is wrong with a configuration is told at the start, by field."""

from __future__ import annotations

from typing import Any

import pytest

from instar.server.identity.oidc.config import InvalidAuthentication, read_config
from instar.server.identity.oidc.flags import issuer_of_flags
from instar.server.identity.oidc.trusted_issuers import TrustedIssuers

OWN = ("https://kubernetes.default.svc",)
USERNAME = {"claim": "sub", "prefix": "oidc:"}


def document(*jwt: Any, **more: Any) -> Any:
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": list(jwt),
        **more,
    }


def jwt(issuer: Any = None, mappings: Any = None, **more: Any) -> Any:
    return {
        "issuer": {"url": "https://issuer.example", "audiences": ["kube"], **(issuer or {})},
        "claimMappings": {"username": USERNAME, **(mappings or {})},
        **more,
    }


def trouble(config: Any) -> str:
    with pytest.raises(InvalidAuthentication) as refused:
        TrustedIssuers(read_config(config, OWN), OWN)
    return str(refused.value)


def test_a_whole_configuration_is_read() -> None:
    read = read_config(
        document(
            jwt(
                {"audiences": ["a", "b"], "audienceMatchPolicy": "MatchAny"},
                {
                    "groups": {"claim": "groups", "prefix": ""},
                    "uid": {"claim": "oid"},
                    "extra": [{"key": "example.com/tenant", "valueExpression": "claims.tenant"}],
                },
                claimValidationRules=[
                    {"claim": "hd", "requiredValue": "x"},
                    {"expression": "claims.exp - claims.nbf <= 86400", "message": "m"},
                ],
                userValidationRules=[{"expression": "!user.username.startsWith('system:')"}],
            ),
            anonymous={"enabled": True, "conditions": [{"path": "/healthz"}]},
        ),
        OWN,
    )
    [issuer] = read.issuers
    assert issuer.audiences == ("a", "b")
    assert read.anonymous is not None
    assert read.anonymous.paths == ("/healthz",)
    TrustedIssuers(read, OWN)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ([], "no object"),
        ({"kind": "X"}, "expected kind AuthenticationConfiguration"),
        (document(jwt(), more=1), 'strict decoding error: unknown field "more"'),
        (
            document(jwt({"uri": "x"})),
            'strict decoding error: unknown field "jwt[0].issuer.uri"',
        ),
        (document(5), "jwt[0] must be an object"),
        (document(jwt({"audiences": "kube"})), "jwt[0].issuer.audiences must be a list of strings"),
        (document(jwt({"url": ""})), "jwt[0].issuer.url: Required value: URL is required"),
        (
            document(jwt({"url": "http://x"})),
            'jwt[0].issuer.url: Invalid value: "http://x": URL scheme must be https',
        ),
        (
            document(jwt({"url": "https://u:p@x"})),
            "URL must not contain a username or password",
        ),
        (document(jwt({"url": "https://x?y"})), "URL must not contain a query"),
        (document(jwt({"url": "https://x#y"})), "URL must not contain a fragment"),
        (
            document(jwt({"url": OWN[0]})),
            f"URL must not overlap with disallowed issuers: [{OWN[0]}]",
        ),
        (document(jwt(), jwt()), "jwt[1].issuer.url: Duplicate value"),
        (
            document(jwt({"discoveryURL": "https://issuer.example"})),
            "discoveryURL must be different from URL",
        ),
        (
            document(jwt({"audiences": []})),
            "at least one jwt[0].issuer.audiences is required",
        ),
        (
            document(jwt({"audiences": ["a", "b"]})),
            "audienceMatchPolicy must be MatchAny for multiple audiences",
        ),
        (document(jwt({"certificateAuthority": "x"})), "jwt[0].issuer.certificateAuthority"),
        (
            document(jwt(mappings={"username": {"claim": "sub"}})),
            "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim "
            "is set",
        ),
        (
            document(jwt(mappings={"username": {"claim": "a", "expression": "b", "prefix": ""}})),
            "claim and expression can't both be set",
        ),
        (document(jwt(mappings={"username": {}})), "claim or expression is required"),
        (
            document(jwt(mappings={"username": {"expression": "claims."}})),
            "claimMappings.username.expression: Invalid value",
        ),
        (
            document(jwt(mappings={"username": {"expression": "1"}})),
            "must evaluate to string",
        ),
        (
            document(jwt(mappings={"username": {"expression": "claims.email"}})),
            "claims.email_verified must be used",
        ),
        (
            document(jwt(mappings={"extra": [{"key": "Example.com/A", "valueExpression": "'x'"}]})),
            "must be lowercase",
        ),
        (
            document(jwt(mappings={"extra": [{"key": "a.k8s.io/x", "valueExpression": "'x'"}]})),
            "reserved for Kubernetes use",
        ),
        (
            document(jwt(claimValidationRules=[{"expression": "1 + 1"}])),
            "must evaluate to bool",
        ),
        (
            document(anonymous={"enabled": False, "conditions": [{"path": "/x"}]}),
            "enabled should be set to true when conditions are defined",
        ),
        (document(anonymous={"enabled": "yes"}), "anonymous.enabled must be true or false"),
    ],
)
def test_errors_name_the_wrong_field(config: Any, text: str) -> None:
    assert text in trouble(config)


FLAGS: dict[str, Any] = {
    "issuer_url": "https://issuer.example",
    "client_id": "kube",
    "username_claim": "sub",
    "username_prefix": "",
    "groups_claim": "",
    "groups_prefix": "",
    "ca_file": None,
    "signing_algs": "RS256",
    "required_claim": [],
}


@pytest.mark.parametrize(
    ("claim", "prefix", "expected"),
    [
        ("sub", "", "https://issuer.example#"),
        ("email", "", ""),
        ("sub", "-", ""),
        ("sub", "x:", "x:"),
    ],
)
def test_the_prefix_of_flags(claim: str, prefix: str, expected: str) -> None:
    flags = {**FLAGS, "username_claim": claim, "username_prefix": prefix}
    issuer = issuer_of_flags(flags, OWN)
    assert issuer is not None
    assert issuer.username.prefix == expected


def test_flags_come_together_or_not_at_all() -> None:
    assert issuer_of_flags({**FLAGS, "issuer_url": "", "client_id": ""}, OWN) is None
    for wrong in (
        {"client_id": ""},
        {"issuer_url": ""},
        {"issuer_url": "http://x"},
        {"signing_algs": "HS256"},
        {"required_claim": ["x"]},
    ):
        with pytest.raises(InvalidAuthentication):
            issuer_of_flags({**FLAGS, **wrong}, OWN)
