"""Binary fields of built-in kinds, which have bytes in CBOR and base64 in JSON."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.facts.messages import group_versions, kinds_of
from instar.kube.protobuf.byte_fields import with_bytes


@pytest.mark.parametrize(
    ("api_version", "kind", "obj", "changed"),
    [
        ("v1", "Secret", {"data": {"a": "aGk="}}, {"data": {"a": b"hi"}}),
        (
            "v1",
            "SecretList",
            {"items": [{"data": {"a": "aGk="}, "type": "x"}]},
            {"items": [{"data": {"a": b"hi"}, "type": "x"}]},
        ),
        (
            "v1",
            "ConfigMap",
            {"data": {"a": "aGk="}, "binaryData": {"a": ""}},
            {"data": {"a": "aGk="}, "binaryData": {"a": b""}},
        ),
        (
            "admissionregistration.k8s.io/v1",
            "MutatingWebhookConfiguration",
            {"webhooks": [{"clientConfig": {"caBundle": "aGk="}}, {"name": "x"}]},
            {"webhooks": [{"clientConfig": {"caBundle": b"hi"}}, {"name": "x"}]},
        ),
        ("apps/v1", "Deployment", {"spec": {"x": "aGk="}}, {"spec": {"x": "aGk="}}),
        ("ex.io/v1", "Secret", {"data": {"a": "aGk="}}, {"data": {"a": "aGk="}}),
    ],
)
def test_binary_fields_have_bytes(
    api_version: str, kind: str, obj: dict[str, Any], changed: dict[str, Any]
) -> None:
    before = repr(obj)

    assert with_bytes(api_version, kind, obj) == changed
    assert repr(obj) == before


@pytest.mark.parametrize("value", ["no base64!", 7, None, [], {"a": "%"}])
def test_a_damaged_field_stays_as_it_is(value: Any) -> None:
    obj = {"data": {"a": value}}

    assert with_bytes("v1", "Secret", obj) == obj


def test_every_kind_can_be_changed() -> None:
    """Also those whose messages contain themselves."""
    kinds = [(version, kind) for version in group_versions() for kind in kinds_of(version)]

    assert all(with_bytes(version, kind, {}) == {} for version, kind in kinds)
