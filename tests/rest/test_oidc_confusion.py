"""Two issuers that a server trusts, one of which plays the other: each speaks for its own users
only, whatever header, key or document it shows."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any

import pytest

from instar.server.access.identities import JwtSettings
from instar.server.identity.jwt import encode_base64url
from tests.rest.test_oidc import config, whoami
from tests.support.issuer import LocalIssuer, local_issuer
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalIssuer]:
    with local_issuer(tmp_path_factory.mktemp("good")) as found:
        yield found


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalIssuer]:
    with local_issuer(tmp_path_factory.mktemp("evil")) as found:
        yield found


@pytest.fixture(scope="module")
def server(
    good: LocalIssuer, evil: LocalIssuer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    document = config(good)
    other = config(evil)["jwt"][0]
    other["claimMappings"]["username"]["prefix"] = "evil:"
    document["jwt"].append(other)
    file = tmp_path_factory.mktemp("config") / "authentication.yaml"
    file.write_text(json.dumps(document))
    with live_server(tokens_of_others=JwtSettings(config=file)) as running:
        eventually(lambda: whoami(running, good.token()).status == 201)
        eventually(lambda: whoami(running, evil.token()).status == 201)
        yield running


def _user(server: LiveServer, token: str) -> str:
    answer = whoami(server, token)
    return "" if answer.status != 201 else str(answer.json["status"]["userInfo"]["username"])


def _signed(header: dict[str, Any], token: str, secret: bytes) -> str:
    """The token's claims under another header, with an HMAC by ``secret``."""
    head = encode_base64url(json.dumps(header).encode())
    text = f"{head}.{token.split('.')[1]}"
    return f"{text}.{encode_base64url(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


def test_each_issuer_speaks_for_its_own_users(
    server: LiveServer, good: LocalIssuer, evil: LocalIssuer
) -> None:
    assert _user(server, good.token(sub="admin")) == "oidc:admin"
    assert _user(server, evil.token(sub="admin")) == "evil:admin"


def test_a_token_in_the_name_of_another_issuer_is_refused(
    server: LiveServer, good: LocalIssuer, evil: LocalIssuer
) -> None:
    """Also where both keys have the same id, and where the name differs in a letter only."""
    for name in (good.url, f"{good.url}/", good.url.upper(), [good.url, evil.url], None):
        assert _user(server, evil.token(iss=name)) == ""
    mixed = evil.token(iss=evil.url, azp=good.url, aud=["kube", good.url])
    assert _user(server, mixed) == "evil:jane"


def test_an_issuer_whose_document_names_another_issuer_gains_nothing(
    server: LiveServer, good: LocalIssuer, evil: LocalIssuer
) -> None:
    evil.claimed = good.url
    try:
        assert _user(server, evil.token(iss=good.url, sub="admin")) == ""
        assert _user(server, evil.token(sub="admin")) in ("evil:admin", "")
    finally:
        evil.claimed = evil.url


def test_a_header_chooses_neither_the_algorithm_nor_the_key(
    server: LiveServer, good: LocalIssuer, evil: LocalIssuer
) -> None:
    token, jwk = good.token(sub="admin"), good.key.public.jwk()
    foreign, kid = evil.key.public.jwk(), str(good.key.public.jwk().get("kid", ""))
    public = json.dumps(jwk).encode()
    headers: list[dict[str, Any]] = [
        {"alg": "HS256", "kid": kid},
        {"alg": "none", "kid": kid},
        {"alg": "None"},
        {"alg": "ES256", "kid": kid, "jwk": foreign},
        {"alg": "ES256", "kid": "../../keys"},
        {"alg": "ES256", "kid": kid, "jku": f"{evil.url}/keys"},
        {"alg": "ES256", "kid": kid, "crit": ["b64"], "b64": False},
        {"alg": ["ES256"], "kid": kid},
    ]
    for header in headers:
        assert _user(server, _signed(header, token, public)) == ""
    for unsigned in ({"alg": "none"}, {"alg": "none", "kid": kid}):
        head = encode_base64url(json.dumps(unsigned).encode())
        assert _user(server, f"{head}.{token.split('.')[1]}.") == ""


def test_the_signature_of_one_token_does_not_fit_another(
    server: LiveServer, good: LocalIssuer, evil: LocalIssuer
) -> None:
    mine, wanted = evil.token(sub="jane").split("."), good.token(sub="admin").split(".")

    assert _user(server, ".".join((wanted[0], wanted[1], mine[2]))) == ""
    assert _user(server, ".".join((mine[0], wanted[1], mine[2]))) == ""
    assert _user(server, ".".join((wanted[0], mine[1], wanted[2]))) == ""
