"""Bodies in protobuf: what kubectl sent, byte for byte, and no way to crash the reader."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.api.protobuf import MAGIC, UnknownKind, decode_object
from instar.api.protobuf_wire import ProtobufError


def field(number: int, value: bytes | int) -> bytes:
    """One field; lengths and numbers below 128 are all these tests need."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return (
        MAGIC + field(1, field(1, api_version.encode()) + field(2, kind.encode())) + field(2, raw)
    )


def entry(key: str, value: bytes) -> bytes:
    return field(1, key.encode()) + field(2, value)


def test_a_config_map() -> None:
    metadata = (
        field(1, b"cm") + field(2, b"") + field(7, 0) + field(8, b"") + field(11, entry("a", b"b"))
    )
    raw = (
        field(1, metadata)
        + field(2, entry("k", b"v"))
        + field(3, entry("b", b"\x00"))
        + field(4, 0)
    )
    assert decode_object(envelope("v1", "ConfigMap", raw)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cm", "labels": {"a": "b"}},
        "data": {"k": "v"},
        "binaryData": {"b": "AA=="},
        "immutable": False,
    }


def test_a_service_port_is_a_number_or_a_name() -> None:
    by_number = field(3, 80) + field(4, field(1, 0) + field(2, 90))
    by_name = field(3, 80) + field(4, field(1, 1) + field(3, b"web"))
    raw = field(2, field(1, by_number) + field(1, by_name))
    ports = decode_object(envelope("v1", "Service", raw))["spec"]["ports"]
    assert ports == [{"port": 80, "targetPort": 90}, {"port": 80, "targetPort": "web"}]


def test_times_and_pointers_of_a_lease() -> None:
    spec = field(1, b"") + field(2, 15) + field(4, field(1, 1))
    lease = decode_object(envelope("coordination.k8s.io/v1", "Lease", field(2, spec)))
    assert lease["spec"] == {
        "holderIdentity": "",
        "leaseDurationSeconds": 15,
        "renewTime": "1970-01-01T00:00:01.000000Z",
    }


def test_negative_numbers() -> None:
    minus_one = b"\x08" + b"\xff" * 9 + b"\x01"
    found = decode_object(envelope("apps/v1", "DeleteOptions", minus_one))
    assert found["gracePeriodSeconds"] == -1


def test_fields_that_are_not_known_are_left_out() -> None:
    raw = field(15, b"new") + field(14, 1) + field(1, field(1, b"a"))
    assert decode_object(envelope("v1", "Secret", raw))["metadata"] == {"name": "a"}


def test_custom_resources_have_no_such_form() -> None:
    with pytest.raises(UnknownKind, match=r"example\.com/v1, Kind=Widget"):
        decode_object(envelope("example.com/v1", "Widget", b""))


def test_a_body_that_is_something_else() -> None:
    with pytest.raises(ProtobufError, match=r"expected prefix \[107 56 115 0\]"):
        decode_object(b'{"kind":"ConfigMap"}')


@given(st.binary(max_size=200), st.sampled_from(["ConfigMap", "Service", "Event", "Namespace"]))
def test_no_bytes_crash_the_reader(data: bytes, kind: str) -> None:
    with suppress(ProtobufError, UnknownKind):
        decode_object(MAGIC + data)
    with suppress(ProtobufError):
        decode_object(envelope("v1", kind, data[:120]))
