"""Objects as messages: what no recording shows."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.facts.messages import group_versions, kinds_of
from instar.kube.protobuf.envelope import (
    decode_object,
    encode_message,
    encode_object,
    has_message,
    wrap_message,
)
from instar.kube.protobuf.errors import MessageError, UnknownKind
from tests.protobuf.messages import entry, field

KINDS = [(version, kind) for version in group_versions() for kind in kinds_of(version)]


def config_map(**content: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", **content}


def test_null_is_unset() -> None:
    nulls = config_map(metadata=None, data=None, immutable=None)
    assert encode_object(nulls) == encode_object(config_map())


def test_a_null_value_of_bytes_is_an_entry_without_a_value() -> None:
    written = encode_message("v1", "ConfigMap", {"binaryData": {"a": None, "b": ""}})
    assert written.endswith(field(3, field(1, b"a")) + field(3, entry("b", b"")))


def test_maps_are_written_by_sorted_keys() -> None:
    data = {"é": "three", "b": "two", "a": "one"}
    written = encode_message("v1", "ConfigMap", {"data": data})
    assert written.index(b"one") < written.index(b"two") < written.index(b"three")


def test_line_ends_within_base64_are_passed_over() -> None:
    found = decode_object(encode_object(config_map(binaryData={"a": "AA\r\nEC\n"})))
    assert found["binaryData"] == {"a": "AAEC"}


def test_unknown_fields_are_left_out() -> None:
    assert encode_object(config_map(x=1, metadata={"y": 2})) == encode_object(config_map())


def test_half_a_surrogate_pair_is_replaced_as_where_go_reads_json() -> None:
    found = decode_object(encode_object(config_map(data={"a": "x\ud800y"})))
    assert found["data"] == {"a": "x\ufffdy"}


def test_the_zero_time_is_written_as_absent() -> None:
    written = encode_object(config_map(metadata={"creationTimestamp": "0001-01-01T00:00:00Z"}))
    assert written == encode_object(config_map())


@pytest.mark.parametrize(
    ("time", "kept"),
    [
        ("2024-02-29T12:00:00+02:00", "2024-02-29T10:00:00Z"),
        ("2024-02-29T12:00:00.999Z", "2024-02-29T12:00:00Z"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"),
    ],
)
def test_times_are_kept_in_whole_seconds_of_utc(time: str, kept: str) -> None:
    found = decode_object(encode_object(config_map(metadata={"creationTimestamp": time})))
    assert found["metadata"] == {"creationTimestamp": kept}


@pytest.mark.parametrize(
    "content",
    [
        {"data": "text"},
        {"data": {"a": 1}},
        {"metadata": []},
        {"metadata": {"generation": "1"}},
        {"metadata": {"creationTimestamp": "yesterday"}},
        {"metadata": {"creationTimestamp": "2024-01-01T00:00:00"}},
        {"metadata": {"finalizers": 3}},
        {"binaryData": {"a": "!"}},
    ],
)
def test_values_that_do_not_fit_are_refused_with_a_typed_error(content: dict[str, Any]) -> None:
    with pytest.raises(MessageError, match="does not fit ConfigMap"):
        encode_object(config_map(**content))


def test_custom_resources_have_no_message() -> None:
    assert not has_message("example.com/v1", "Widget")
    with pytest.raises(UnknownKind):
        encode_object({"apiVersion": "example.com/v1", "kind": "Widget"})


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_every_kind_has_a_message_that_survives_being_empty(version: str, kind: str) -> None:
    empty = decode_object(wrap_message(version, kind, b""))
    assert decode_object(encode_object(empty)) == empty


@given(
    st.dictionaries(st.text(), st.text()),
    st.lists(st.text()),
    st.integers(-(2**63), 2**63 - 1),
    st.binary(),
)
def test_what_is_written_is_read_again(
    labels: dict[str, str], finalizers: list[str], number: int, blob: bytes
) -> None:
    metadata: dict[str, Any] = {"annotations": labels, "finalizers": finalizers}
    metadata["deletionGracePeriodSeconds"] = number
    obj = config_map(metadata=metadata, binaryData={"b": b64encode(blob).decode()})
    found = decode_object(encode_object(obj))
    assert found["metadata"].get("annotations", {}) == labels
    assert found["metadata"].get("finalizers", []) == finalizers
    assert found["metadata"]["deletionGracePeriodSeconds"] == number
    assert found["binaryData"] == obj["binaryData"]
