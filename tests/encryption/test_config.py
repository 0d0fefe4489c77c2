# ruff: noqa: E501  (a refusal is one line, and is compared as one)
"""What an EncryptionConfiguration may say, and in which words it is refused."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from instar.wire.storage.encryption.config import (
    EncryptionConfigError,
    IdentityProvider,
    Keyed,
    Kms,
    read,
)

SECRET = b64encode(bytes(32)).decode()
KEY = {"name": "key1", "secret": SECRET}
CBC = {"aescbc": {"keys": [KEY]}}
UNIX = {"apiVersion": "v2", "name": "n", "endpoint": "unix:///x.sock"}


def document(*rules: Any) -> dict[str, Any]:
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration"}
    return {**head, "resources": list(rules)}


def rule(*providers: Any, resources: tuple[str, ...] = ("secrets",)) -> dict[str, Any]:
    return {"resources": list(resources), "providers": list(providers)}


def refusal(value: Any) -> str:
    with pytest.raises(EncryptionConfigError) as caught:
        read(value)
    return str(caught.value)


def test_rules_keep_their_order_and_their_providers() -> None:
    kms = {"kms": {**UNIX, "timeout": "1m30s"}}

    found = read(
        document(
            rule(CBC, kms, {"identity": {}}, resources=("secrets", "foos.ex.io")),
            rule({"identity": {}}, resources=("*.*",)),
        )
    )

    assert [str(subject) for subject in found[0].subjects] == ["secrets", "foos.ex.io"]
    keyed, plugin, plain = found[0].providers
    assert isinstance(keyed, Keyed)
    assert keyed.keys[0].secret == bytes(32)
    assert plugin == Kms("n", "/x.sock", 90.0)
    assert plain == IdentityProvider()
    assert [tuple(subject) for subject in found[1].subjects] == [("*", "*")]


P = "resources[0].providers[0]"
AES = f"{P}.aescbc.keys[0]"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (document(), "resources: Required value: at least one resources is required"),
        (
            document({"providers": [CBC]}),
            "resources[0].resources: Required value: at least one resources[0].resources is required",
        ),
        (
            document({"resources": ["secrets"]}),
            "resources[0].providers: Required value: at least one resources[0].providers is required",
        ),
        (
            document(rule({"aescbc": {"keys": []}})),
            f"{P}.aescbc.keys: Required value: at least one keys is required",
        ),
        (
            document(rule({"aescbc": {"keys": [{"name": "k", "secret": "a*b"}]}})),
            f'{AES}.secret: Invalid value: "REDACTED": secrets must be base64 encoded',
        ),
        (
            document(rule({"aescbc": {"keys": [{"name": "k", "secret": "MTIzNDU="}]}})),
            f'{AES}.secret: Invalid value: "REDACTED": secret is not of the expected length, got 5, '
            "expected one of [16 24 32]",
        ),
        (
            document(rule({"aescbc": {"keys": [{"secret": SECRET}]}})),
            f"{AES}.name: Required value: name is a mandatory field for a key",
        ),
        (
            document(
                rule({"secretbox": {"keys": [{"name": "k", "secret": "MTIzNDU2Nzg5MDEyMzQ1Ng=="}]}})
            ),
            f'{P}.secretbox.keys[0].secret: Invalid value: "REDACTED": secret is not of the expected '
            "length, got 16, expected one of [32]",
        ),
        (
            document(rule({**CBC, "identity": {}})),
            f'{P}: Invalid value: "REDACTED": more than one provider specified in a single element, '
            "should split into different list elements",
        ),
        (
            document(rule({})),
            f'{P}: Invalid value: "REDACTED": provider does not contain any of the expected '
            "providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
        ),
        (
            document(rule(CBC, resources=("*",))),
            "resources[0].resources[0]: Invalid value: \"*\": use '*.' to encrypt all the resources "
            "from core API group or *.* to encrypt all resources",
        ),
        (
            document(rule(CBC, resources=("pods.*",))),
            'resources[0].resources[0]: Invalid value: "pods.*": encrypting the same resource across '
            "groups is not supported",
        ),
        (
            document(rule(CBC, resources=("Secrets",))),
            'resources[0].resources[0]: Invalid value: "Secrets": resource name should not contain '
            "capital letters",
        ),
        (
            document(rule(CBC, resources=("secrets", "secrets"))),
            'resources[0].resources: Invalid value: ["secrets","secrets"]: the same resource cannot '
            "be specified multiple times",
        ),
        (
            document(rule(CBC, resources=("secrets", "*."))),
            'resources[0].resources: Invalid value: ["secrets","*."]: using overlapping resources '
            "such as 'secrets' and '*.' in the same resource list is not allowed as they will be "
            "masked",
        ),
        (
            document(rule(CBC, resources=("*.ex.io",)), rule(CBC, resources=("foos.ex.io",))),
            'resource "foos.ex.io" is masked by earlier rule "*.ex.io"',
        ),
        (
            document(rule({"kms": {**UNIX, "endpoint": "tcp://h"}})),
            f'{P}.kms.endpoint: Invalid value: "tcp://h": unsupported scheme "tcp" for KMS provider, '
            "only unix is supported",
        ),
        (
            document(rule({"kms": {**UNIX, "timeout": "0s"}})),
            f'{P}.kms.timeout: Invalid value: "0s": timeout should be a positive value',
        ),
        (
            document(rule({"kms": {**UNIX, "name": "a:b"}})),
            f'{P}.kms.name: Invalid value: "a:b": invalid KMS provider name a:b, must not contain '
            "':'",
        ),
        (
            document(rule({"aescbc": {"keys": [{**KEY, "sekret": "x"}]}})),
            f'strict decoding error: unknown field "{AES}.sekret"',
        ),
        ({"apiVersion": "v1", "kind": "Pod"}, 'no kind "Pod" is registered for version "v1"'),
        ("text", "it is no object"),
        (document("text"), "resources[0]: an object was expected"),
        (document(rule(CBC, resources=(1,))), "resources[0].resources[0]: a string was expected"),  # type: ignore[arg-type]
    ],
)
def test_each_mistake_has_its_words(given: Any, told: str) -> None:
    assert refusal(given) == told


def test_no_secret_is_in_a_refusal() -> None:
    wrong = {"aescbc": {"keys": [{"name": "k", "secret": "aHVudGVyMg=="}]}}

    told = refusal(document(rule(wrong), rule({**wrong, "identity": {}})))

    assert "aHVudGVyMg" not in told
    assert "hunter2" not in told
    assert "aHVudGVyMg" not in repr(read(document(rule(CBC))))
