"""Tokens: taken apart, signed, verified; what is foreign, forged or old is nobody's."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from instar.base.certificates import Authority, KeyPair, new_private_key
from instar.kube.access.attributes import User
from instar.server.identity import jwt
from instar.server.identity.issuer import Issuer, KeyFiles
from instar.server.identity.keys import (
    InvalidKey,
    SigningKey,
    keys_of_jwks,
    signing_key,
    verifying_keys,
)
from instar.server.identity.service_accounts import BoundObject, TokenRequestSpec
from instar.server.identity.tokens import StaticTokens, TokenRejected, Tokens

NOW = 1_800_000_000.0
AUDIENCE = "https://kubernetes.default.svc"


def pem_of(key: Any) -> bytes:
    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem


RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@given(st.text(max_size=60) | st.from_regex(r"[A-Za-z0-9_.=-]{0,80}", fullmatch=True))
def test_any_text_can_be_inspected_as_a_token(text: str) -> None:
    found = jwt.read(text)
    assert found is None or isinstance(found.claims, dict)


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (RSA_KEY, "RS256"),
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ec.generate_private_key(ec.SECP521R1()), "ES512"),
    ],
)
def test_signed_tokens_verify_by_pem_and_by_jwk_and_altered_ones_do_not(
    key: Any, algorithm: str
) -> None:
    signer = signing_key(pem_of(key))
    token = jwt.read(signer.token({"a": 1}))
    assert token is not None
    assert (token.algorithm, token.key_id, token.claims) == (algorithm, signer.public.id, {"a": 1})
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    [by_pem] = verifying_keys(public)
    [by_jwk] = keys_of_jwks({"keys": [by_pem.jwk()]})
    assert by_pem.verifies(token)
    assert by_jwk.verifies(token)
    assert by_jwk.id == by_pem.id
    assert not by_pem.verifies(token._replace(signed=token.signed + b"x"))
    assert not by_pem.verifies(token._replace(signature=token.signature[:-1]))
    assert not by_pem.verifies(token._replace(signature=b""))
    for forged in ("none", "", "HS256", "ES256", "RS512", "PS256", "RS257", "XX256"):
        if forged != algorithm:
            header = {**token.header, "alg": forged}
            assert not by_pem.verifies(token._replace(header=header))
    assert not signing_key(new_private_key()).public.verifies(token)


def test_a_certificate_is_a_key_file_and_a_file_may_hold_several_keys() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pair: KeyPair = Authority.make("sa", timedelta(days=1)).pem
    found = verifying_keys(pair.cert + pem_of(key) + pair.key)
    assert len(found) == 3
    assert found[0].id == found[2].id == signing_key(pair.key).public.id


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"rubbish",
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        pem_of(ed25519.Ed25519PrivateKey.generate()),
        pem_of(ec.generate_private_key(ec.SECP256K1())),
    ],
)
def test_an_unreadable_key_is_reported(pem: bytes) -> None:
    with pytest.raises(InvalidKey):
        verifying_keys(pem)
    with pytest.raises(InvalidKey):
        signing_key(pem)


@pytest.mark.parametrize("document", [None, [], {}, {"keys": {}}, "x", {"keys": None}])
def test_an_invalid_jwks_is_reported(document: Any) -> None:
    with pytest.raises(InvalidKey):
        keys_of_jwks(document)


def test_keys_of_a_jwks_that_are_not_understood_are_left_out() -> None:
    good = signing_key(new_private_key()).public
    strange: list[Any] = [
        5,
        {},
        {"kty": "oct", "k": "AAAA"},
        {"kty": "RSA", "n": "!", "e": "AQAB"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {**good.jwk(), "use": "enc"},
    ]
    assert keys_of_jwks({"keys": [*strange, good.jwk()]}) == [good]


# --- tokens of accounts --------------------------------------------------------------------------


ACCOUNT = {"metadata": {"name": "robot", "namespace": "d", "uid": "u1"}}


def issuer(tmp_path: Path, now: float = NOW, stored: Any = None) -> Issuer:
    stored = {"serviceaccounts": ACCOUNT} | (stored or {})
    path = tmp_path / "sa.key"
    if not path.exists():
        path.write_bytes(new_private_key())
    return Issuer(
        names=(AUDIENCE, "https://former"),
        audiences=(AUDIENCE,),
        keys=KeyFiles(path),
        lookup=lambda plural, namespace, name: stored.get(plural),
        now=lambda: now,
        new_id=lambda: "id-1",
    )


def identify(of: Issuer, token: str, *audiences: str) -> User:
    found = asyncio.run(of.identify(token, audiences or (AUDIENCE,)))
    assert found is not None
    return found.user


WISH = TokenRequestSpec("d", "robot", "u1", (AUDIENCE,), 3600)


def test_a_token_names_its_account(tmp_path: Path) -> None:
    ours = issuer(tmp_path)
    user = identify(ours, ours.issue(WISH))
    assert user == User(
        "system:serviceaccount:d:robot",
        ("system:serviceaccounts", "system:serviceaccounts:d", "system:authenticated"),
        "u1",
        {"authentication.kubernetes.io/credential-id": ("JTI=id-1",)},
    )


@pytest.mark.parametrize(
    ("later", "text"),
    [
        (3650, ""),
        (3661, "service account token has expired"),
        (-61, "service account token is not valid yet"),
        (-59, ""),
    ],
)
def test_a_token_has_its_time_and_a_minute(tmp_path: Path, later: float, text: str) -> None:
    token = issuer(tmp_path).issue(WISH)
    then = issuer(tmp_path, NOW + later)
    if not text:
        assert identify(then, token)
        return
    with pytest.raises(TokenRejected, match=text):
        identify(then, token)


def test_a_token_is_for_its_audiences(tmp_path: Path) -> None:
    ours = issuer(tmp_path)
    token = ours.issue(WISH._replace(audiences=("vault",)))
    assert identify(ours, token, "vault", "x")
    with pytest.raises(TokenRejected) as refused:
        identify(ours, token)
    assert str(refused.value) == (
        f'token audiences ["vault"] is invalid for the target audiences ["{AUDIENCE}"]'
    )


@pytest.mark.parametrize(
    ("account", "text"),
    [
        (None, 'serviceaccounts "robot" not found'),
        ({"metadata": {"uid": "u2"}}, r"service account UID \(u2\) does not match claim \(u1\)"),
        (
            {"metadata": {"uid": "u1", "deletionTimestamp": "2020-01-01T00:00:00Z"}},
            "service account token has been invalidated",
        ),
    ],
)
def test_a_token_dies_with_its_account(tmp_path: Path, account: Any, text: str) -> None:
    token = issuer(tmp_path).issue(WISH)
    with pytest.raises(TokenRejected, match=text):
        identify(issuer(tmp_path, stored={"serviceaccounts": account}), token)


@pytest.mark.parametrize("claim", ["pod", "secret", "node"])
def test_a_token_dies_with_what_it_is_bound_to(tmp_path: Path, claim: str) -> None:
    bound = {"metadata": {"name": "b", "uid": "b1"}}
    ours = issuer(tmp_path, stored={f"{claim}s": bound})
    token = ours.issue(WISH._replace(bound=(BoundObject(claim, "b", "b1"),)))
    extra = identify(ours, token).extra
    assert extra.get(f"authentication.kubernetes.io/{claim}-uid", ("b1",)) == ("b1",)
    for there in (None, {"metadata": {"name": "b", "uid": "b2"}}):
        with pytest.raises(TokenRejected, match=r"service account token has been invalidated"):
            identify(issuer(tmp_path, stored={f"{claim}s": there}), token)


def test_a_token_signed_by_a_stranger_is_refused_and_one_of_another_issuer_is_not_ours(
    tmp_path: Path,
) -> None:
    ours = issuer(tmp_path)
    stranger = SigningKey(ec.generate_private_key(ec.SECP256R1()))
    claims = jwt.read(ours.issue(WISH))
    assert claims is not None
    with pytest.raises(TokenRejected, match="invalid signature, no keys found"):
        identify(ours, stranger.token(claims.claims))
    stolen = jwt.unsigned({"alg": "ES256", "kid": ours.keys.signer.public.id}, claims.claims)
    with pytest.raises(TokenRejected, match="invalid signature"):
        identify(ours, jwt.append_signature(stolen, b"\0" * 64))
    for text in ("", "x", "a.b.c", stranger.token({"iss": "https://else"})):
        assert asyncio.run(ours.identify(text, (AUDIENCE,))) is None


def test_a_former_key_still_verifies(tmp_path: Path) -> None:
    before = issuer(tmp_path)
    token = before.issue(WISH)
    (tmp_path / "sa.key").rename(tmp_path / "sa.key.1")
    (tmp_path / "sa.key").write_bytes(new_private_key())
    after = issuer(tmp_path)
    with pytest.raises(TokenRejected):
        identify(after, token)
    keys = KeyFiles(tmp_path / "sa.key", (tmp_path / "sa.key.1",))
    both = replace(after, keys=keys)
    assert identify(both, token)
    assert len(both.jwks()["keys"]) == 2


# --- all of them ---------------------------------------------------------------------------------


def test_a_token_review_is_cached_for_ten_seconds() -> None:
    clock = [0.0]
    static = StaticTokens({"t": User("x")}, (AUDIENCE,))
    tokens = Tokens([static], (AUDIENCE,), lambda: clock[0])
    assert tokens.known("t") is None
    assert asyncio.run(tokens.identify("t")).user.name == "x"
    clock[0] = 9.9
    assert tokens.known("t") is not None
    clock[0] = 10.0
    assert tokens.known("t") is None


def test_a_static_token_is_for_the_api_only() -> None:
    static = StaticTokens({"t": User("x")}, (AUDIENCE,))
    tokens = Tokens([static], (AUDIENCE,))
    assert asyncio.run(tokens.review("t", (AUDIENCE, "y"))).audiences == (AUDIENCE,)
    with pytest.raises(TokenRejected, match=r"^invalid bearer token$"):
        asyncio.run(tokens.review("t", ("vault",)))
    with pytest.raises(TokenRejected, match=r"^invalid bearer token$"):
        asyncio.run(tokens.review("\udcff", (AUDIENCE,)))


@pytest.mark.parametrize("demanded", [["exp"], ["b64"], [], "x", None])
def test_a_token_that_demands_to_be_understood_is_none_of_ours(demanded: Any) -> None:
    content = jwt.unsigned({"alg": "RS256", "crit": demanded}, {"iss": "x"})

    assert jwt.read(jwt.append_signature(content, b"s")) is None
