"""Messages by hand, for tests of what no recording shows."""

from __future__ import annotations

from instar.kube.protobuf.envelope import wrap_message
from instar.kube.protobuf.wire import BYTES, FIXED64, VARINT, length_prefixed, tag, varint


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return tag(number, VARINT) + varint(value)
    return tag(number, BYTES) + length_prefixed(value)


def double(number: int, bits: bytes) -> bytes:
    return tag(number, FIXED64) + bits


def entry(key: str, value: bytes) -> bytes:
    return field(1, key.encode()) + field(2, value)


def config_map(raw: bytes) -> bytes:
    return wrap_message("v1", "ConfigMap", raw)


def crd_with(schema: bytes) -> bytes:
    """A CRD whose only version has this openAPIV3Schema."""
    version = field(1, b"v1") + field(4, field(1, schema))
    return wrap_message(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, field(7, version))
    )
