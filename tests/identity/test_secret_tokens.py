"""Tokens held by Secrets: bootstrap tokens, and the legacy tokens of ServiceAccounts."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from instar.base.certificates import new_private_key
from instar.base.json_values import Object
from instar.server.identity.bootstrap_tokens import BootstrapTokens
from instar.server.identity.issuer import KeyFiles
from instar.server.identity.legacy_tokens import (
    INVALID_SINCE,
    LAST_USED,
    LEGACY_ISSUER,
    LegacyTokenMetrics,
    LegacyTokens,
)
from instar.server.identity.tokens import Identified, TokenRejected
from tests.support.server import Answer, LiveServer, live_server

_API = ("https://kubernetes.default.svc",)
_NOW = 1_800_000_000.0
_SECRETS = "/api/v1/namespaces/default/secrets"
_ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
_PRIVATE = "kubernetes.io/serviceaccount"
_MERGE = "application/merge-patch+json"


def _encoded(**values: str) -> dict[str, str]:
    return {
        key.replace("_", "-"): base64.b64encode(text.encode()).decode()
        for key, text in values.items()
    }


def _bootstrap_secret(**values: str) -> Object:
    data = {
        "token_id": "abc123",
        "token_secret": "0123456789abcdef",
        "usage_bootstrap_authentication": "true",
        **values,
    }
    return {
        "metadata": {"name": "bootstrap-token-abc123", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "data": _encoded(**data),
    }


def _identified(
    secret: Object, token: str = "abc123.0123456789abcdef", audiences: tuple[str, ...] = _API
) -> Identified | None:
    held = {("secrets", "kube-system", "bootstrap-token-abc123"): secret}
    tokens = BootstrapTokens(lambda *place: held.get(place), _API, lambda: _NOW)
    return asyncio.run(tokens.identify(token, audiences))


def test_a_bootstrap_token_is_its_user_with_the_groups_of_its_secret() -> None:
    groups = "system:bootstrappers:kubeadm:default-node-token"
    found = _identified(_bootstrap_secret(auth_extra_groups=groups))

    assert found is not None
    assert found.user.name == "system:bootstrap:abc123"
    assert found.user.groups == ("system:bootstrappers", groups, "system:authenticated")
    assert found.seconds == 0.0


@pytest.mark.parametrize(
    "values",
    [
        {"usage_bootstrap_authentication": "false"},
        {"usage_bootstrap_authentication": ""},
        {"token_secret": "0123456789abcdee"},
        {"token_id": "abc124"},
        {"expiration": "2020-01-01T00:00:00Z"},
        {"expiration": "2036-01-01 00:00:00Z"},
        {"expiration": "2036-01-01T00:00:00"},
        {"expiration": "2036-13-01T00:00:00Z"},
        {"auth_extra_groups": "system:masters"},
        {"auth_extra_groups": "system:bootstrappers:a,system:masters"},
        {"auth_extra_groups": "system:bootstrappers:a\n"},
    ],
)
def test_a_bootstrap_secret_that_is_not_valid_authenticates_no_one(values: dict[str, str]) -> None:
    assert _identified(_bootstrap_secret(**values)) is None


@pytest.mark.parametrize("change", [{"type": "Opaque"}, {"data": None}, {"data": {"token-id": 5}}])
def test_a_secret_of_another_shape_is_no_bootstrap_token(change: Object) -> None:
    assert _identified({**_bootstrap_secret(), **change}) is None


def test_a_bootstrap_secret_that_is_being_deleted_is_void() -> None:
    secret = _bootstrap_secret()
    secret["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert _identified(secret) is None


def test_a_bootstrap_token_is_for_the_api_only() -> None:
    assert _identified(_bootstrap_secret(), audiences=("vault",)) is None
    assert _identified(_bootstrap_secret(), token="abc123.short") is None
    assert _identified(_bootstrap_secret(expiration="2036-01-01T00:00:00+02:00")) is not None


class _Account:
    """A ServiceAccount with a token in a Secret, as a token controller makes it."""

    def __init__(self, folder: Path) -> None:
        key = folder / "sa.key"
        key.write_bytes(new_private_key())
        self.keys = KeyFiles(key)
        self.account: Object = {"metadata": {"name": "sa", "namespace": "n", "uid": "u1"}}
        self.secret: Object = {"metadata": {"name": "tok", "namespace": "n"}}
        self.token = self.sign()
        self.noted: list[tuple[str, str]] = []
        self.metrics = LegacyTokenMetrics()

    def sign(self, **claims: Any) -> str:
        own = {"namespace": "n", "secret.name": "tok"}
        own |= {"service-account.name": "sa", "service-account.uid": "u1"}
        private = {f"{_PRIVATE}/{name}": value for name, value in own.items()}
        all_claims = {"iss": LEGACY_ISSUER, "sub": "system:serviceaccount:n:sa", **private}
        self.token = self.keys.signer.token({**all_claims, **claims})
        self.secret["data"] = _encoded(token=self.token)
        return self.token

    def identify(self, audiences: tuple[str, ...] = _API) -> Identified | None:
        held = {("secrets", "n", "tok"): self.secret, ("serviceaccounts", "n", "sa"): self.account}

        async def note(namespace: str, name: str) -> None:
            self.noted.append((namespace, name))

        several = LegacyTokens(
            self.keys, _API, lambda *place: held.get(place) or None, note, self.metrics
        )
        return asyncio.run(several.identify(self.token, audiences))


@pytest.fixture
def legacy(tmp_path: Path) -> _Account:
    return _Account(tmp_path)


def test_a_legacy_token_is_its_account_and_its_use_is_noted(legacy: _Account) -> None:
    found = legacy.identify()

    assert found is not None
    assert (found.user.name, found.user.uid) == ("system:serviceaccount:n:sa", "u1")
    assert found.audiences == _API
    assert found.notes.annotations == (
        ("authentication.k8s.io/legacy-token", "system:serviceaccount:n:sa"),
        ("authentication.k8s.io/legacy-token-manual-secret", "tok"),
    )
    assert legacy.noted == [("n", "tok")]
    assert [each.value() for each in (legacy.metrics.used, legacy.metrics.manual)] == [1, 1]


def test_a_token_that_the_account_lists_is_warned_about(legacy: _Account) -> None:
    legacy.account["secrets"] = [{"name": "tok"}]

    found = legacy.identify()

    assert found is not None
    assert "TokenRequest API" in found.notes.warnings[0]
    assert legacy.metrics.automatic.value() == 1


def _rejected(legacy: _Account, audiences: tuple[str, ...] = _API) -> TokenRejected:
    with pytest.raises(TokenRejected) as refused:
        legacy.identify(audiences)
    return refused.value


def test_a_token_marked_as_invalid_is_rejected_and_its_use_is_noted(legacy: _Account) -> None:
    legacy.secret["metadata"]["labels"] = {INVALID_SINCE: "2026-01-01"}

    refused = _rejected(legacy)

    assert "has been marked invalid" in str(refused)
    key = "authentication.k8s.io/legacy-token-invalidated"
    assert dict(refused.notes.annotations)[key] == "tok/n"
    assert legacy.noted == [("n", "tok")]


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"sub": ""}, "sub claim is missing"),
        ({f"{_PRIVATE}/namespace": ""}, "namespace claim is missing"),
        ({f"{_PRIVATE}/secret.name": 5}, "secretName claim is missing"),
        ({f"{_PRIVATE}/service-account.name": ""}, "serviceAccountName claim is missing"),
        ({f"{_PRIVATE}/service-account.uid": ""}, "serviceAccountUID claim is missing"),
        ({"sub": "system:serviceaccount:n:other"}, "sub claim is invalid"),
        ({f"{_PRIVATE}/service-account.uid": "u2"}, "ServiceAccount UID (u1) does not match"),
        ({f"{_PRIVATE}/secret.name": "gone"}, "Token has been invalidated"),
    ],
)
def test_a_legacy_token_with_other_claims_is_rejected(
    legacy: _Account, claims: Object, text: str
) -> None:
    legacy.sign(**claims)

    assert text in str(_rejected(legacy))
    assert legacy.noted == []


def test_a_legacy_token_ends_with_its_secret_its_account_and_its_key(legacy: _Account) -> None:
    legacy.secret["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert str(_rejected(legacy)) == "Token has been invalidated"

    del legacy.secret["metadata"]["deletionTimestamp"]
    legacy.secret["data"] = _encoded(token="another")
    assert str(_rejected(legacy)) == "Token does not match server's copy"

    legacy.sign()
    legacy.account["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert str(_rejected(legacy)) == "ServiceAccount n/sa has been deleted"

    legacy.account = {}
    assert str(_rejected(legacy)) == 'serviceaccounts "sa" not found'
    assert "target audiences" in str(_rejected(legacy, ("vault",)))

    legacy.token = f"{legacy.token[:-8]}AAAAAAAA"
    assert str(_rejected(legacy)) == "invalid signature"


def _who(server: LiveServer, token: str) -> Answer:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    return server.request("POST", path, {}, token=token)


def test_a_server_accepts_a_legacy_token_until_its_secret_is_gone(tmp_path: Path) -> None:
    legacy = _Account(tmp_path)
    with live_server(storage="memory:", cert_dir=tmp_path) as server:
        uid = server.request("POST", _ACCOUNTS, {"metadata": {"name": "sa"}}).json["metadata"][
            "uid"
        ]
        named = {"namespace": "default", "service-account.uid": uid}
        claims = {f"{_PRIVATE}/{name}": value for name, value in named.items()}
        token = legacy.sign(sub="system:serviceaccount:default:sa", **claims)
        server.request(
            "POST", _SECRETS, {"metadata": {"name": "tok"}, "data": _encoded(token=token)}
        )

        assert _who(server, token).json["status"]["userInfo"]["username"].endswith(":default:sa")
        labels = server.request("GET", f"{_SECRETS}/tok").json["metadata"]["labels"]
        assert list(labels) == [LAST_USED]
        assert (
            "serviceaccount_legacy_manual_token_uses_total 1"
            in server.request("GET", "/metrics").text
        )

        server.request(
            "PATCH", f"{_ACCOUNTS}/sa", {"secrets": [{"name": "tok"}]}, content_type=_MERGE
        )
        assert "auto-generated" in _who(server, token).warnings[0]

        server.request("DELETE", f"{_SECRETS}/tok")
        assert _who(server, token).status == 401


def test_bootstrap_tokens_are_accepted_where_the_flag_allows_them() -> None:
    secret, token = _bootstrap_secret(), "abc123.0123456789abcdef"
    statuses = []
    for allowed in (False, True):
        with live_server(storage="memory:", bootstrap_tokens=allowed) as server:
            server.request("POST", "/api/v1/namespaces/kube-system/secrets", secret)
            statuses.append(_who(server, token).status)

    assert statuses == [401, 201]
