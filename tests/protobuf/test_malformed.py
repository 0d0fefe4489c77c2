"""Bytes that are no message: upstream's sentences, and never anything but a typed refusal."""

from __future__ import annotations

from base64 import b64decode
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.facts.messages import group_versions, kinds_of
from instar.kube.protobuf.envelope import MAGIC, decode_object, encode_object, wrap_message
from instar.kube.protobuf.errors import EnvelopeError, MessageError, ProtobufError, UnknownKind
from instar.kube.protobuf.json_forms import LIMIT
from instar.kube.protobuf.watch import decode_frame, frames
from instar.kube.protobuf.wire import END_GROUP, START_GROUP, tag
from tests.protobuf.messages import config_map, crd_with, double, entry, field
from tests.support.builtins import recorded
from tests.support.counting import calls_of

KINDS = [(version, kind) for version in group_versions() for kind in kinds_of(version)]
REFUSALS = (ProtobufError, UnknownKind)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x0a", "unexpected EOF"),
        (b"\x0a\x05abc", "unexpected EOF"),
        (field(1, b"\x0a\x03a"), "unexpected EOF"),
        (field(2, b"\x0a\x03a"), "unexpected EOF"),
        (b"\xff" * 11, "proto: integer overflow"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "proto: negative length found during unmarshaling"),
        (b"\x00\x00", "proto: ConfigMap: illegal tag 0 (wire type 0)"),
        (tag(1, END_GROUP), "proto: ConfigMap: wiretype end group for non-group"),
        (tag(90, 6) + b"\x00", "proto: illegal wireType 6"),
        (tag(90, START_GROUP), "unexpected EOF"),
        (field(1, 7), "proto: wrong wireType = 0 for field ObjectMeta"),
        (field(1, field(1, 7)), "proto: wrong wireType = 0 for field Name"),
        (field(4, b"x"), "proto: wrong wireType = 2 for field Immutable"),
    ],
)
def test_a_message_that_breaks_off_or_lies_is_refused(raw: bytes, text: str) -> None:
    with pytest.raises(MessageError) as caught:
        decode_object(config_map(raw))
    assert str(caught.value) == text
    assert (caught.value.version, caught.value.kind) == ("v1", "ConfigMap")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "empty data"),
        (MAGIC, "empty body"),
        (b'{"kind":"ConfigMap"}', "expected prefix [107 56 115 0]"),
        (MAGIC + b"\x0a\x05v1", "unexpected EOF"),
        (MAGIC + b"\x12", "unexpected EOF"),
        (MAGIC + field(1, field(1, 3)), "proto: wrong wireType = 0 for field"),
    ],
)
def test_no_envelope(body: bytes, text: str) -> None:
    with pytest.raises(EnvelopeError) as caught:
        decode_object(body)
    assert text in str(caught.value)


def test_a_quantity_must_be_one() -> None:
    quota = field(2, field(1, entry("cpu", field(1, b"many"))))
    with pytest.raises(MessageError, match="quantities must match"):
        decode_object(wrap_message("v1", "ResourceQuota", quota))


@pytest.mark.parametrize("bits", ["000000000000f07f", "000000000000f8ff"])
def test_numbers_json_cannot_say_are_refused(bits: str) -> None:
    with pytest.raises(MessageError, match="unsupported value"):
        decode_object(crd_with(double(9, bytes.fromhex(bits))))


def test_times_beyond_the_calendar_are_refused() -> None:
    for seconds in (2**62, -(2**62)):
        with pytest.raises(MessageError, match="out of range"):
            decode_object(config_map(field(1, field(8, field(1, seconds)))))


def test_raw_json_must_be_json() -> None:
    with pytest.raises(MessageError):
        decode_object(wrap_message("apps/v1", "ControllerRevision", field(2, field(1, b"{"))))


@pytest.mark.parametrize("inner", [b"1", b"12345678901234567890"])
@pytest.mark.parametrize("depth", [300, 900, 5000])
def test_raw_json_nests_no_deeper_than_it_can_be_written(inner: bytes, depth: int) -> None:
    raw = b'{"a":' * depth + inner + b"}" * depth
    with pytest.raises(MessageError):
        decode_object(wrap_message("apps/v1", "ControllerRevision", field(2, field(1, raw))))


def nested_schema(depth: int) -> bytes:
    schema = b""
    for _ in range(depth):
        schema = field(29, entry("a", schema))
    return schema


def test_schemas_nest_only_so_deep_both_ways() -> None:
    body = crd_with(nested_schema(LIMIT - 10))
    deep: dict[str, Any] = decode_object(body)
    assert decode_object(encode_object(deep)) == deep
    with pytest.raises(MessageError, match="exceeded max depth"):
        decode_object(crd_with(nested_schema(LIMIT + 1)))
    deep["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "properties": {"a": deep["spec"]["versions"][0]["schema"]["openAPIV3Schema"]},
        "not": {"not": {"not": {}}},
    }
    for _ in range(10):
        schema = deep["spec"]["versions"][0]["schema"]
        schema["openAPIV3Schema"] = {"properties": {"a": schema["openAPIV3Schema"]}}
    with pytest.raises(MessageError, match="exceeded max depth"):
        encode_object(deep)


def test_groups_within_groups_are_skipped_without_end() -> None:
    depth = 100_000
    raw = tag(900, START_GROUP) * depth + tag(900, END_GROUP) * depth
    assert decode_object(config_map(raw))["metadata"] == {}


def test_reading_takes_calls_in_proportion_to_size() -> None:
    """Very many tiny fields, or the same field over and over, are read in one pass."""

    def read(times: int) -> None:
        raw = field(2, entry("k", b"v")) * times + field(900, b"") * times
        assert decode_object(config_map(raw))["data"] == {"k": "v"}

    read(1)  # compiles the reader
    assert calls_of(lambda: read(20_000)) < 11 * calls_of(lambda: read(2_000))


def samples() -> list[bytes]:
    """Real messages of many kinds, where they are at hand."""
    lines = [param.values[0] for param in recorded("protobuf", lambda line: "protobuf" in line)]
    found = [b64decode(line["protobuf"]) for line in lines if line]
    small = [body for body in found if len(body) < 12_000]
    return small or [config_map(field(1, field(1, b"a")) + field(2, entry("k", b"v")))]


SAMPLES = samples()


@given(st.binary(max_size=300), st.sampled_from(KINDS))
def test_random_bytes_never_crash_the_reader(data: bytes, kind: tuple[str, str]) -> None:
    with suppress(*REFUSALS):
        decode_object(data)
    with suppress(*REFUSALS):
        decode_object(MAGIC + data)
    with suppress(*REFUSALS):
        decode_object(wrap_message(*kind, data))
    with suppress(*REFUSALS):
        decode_frame(data)
    list(frames(data))


@given(st.sampled_from(SAMPLES), st.data())
def test_a_message_cut_short_never_crashes_the_reader(body: bytes, data: st.DataObject) -> None:
    with suppress(*REFUSALS):
        decode_object(body[: data.draw(st.integers(0, len(body)))])


@given(st.sampled_from(SAMPLES), st.data())
def test_a_message_with_changed_bytes_never_crashes_the_reader(
    body: bytes, data: st.DataObject
) -> None:
    changed = bytearray(body)
    for _ in range(data.draw(st.integers(1, 5))):
        changed[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(*REFUSALS):
        obj = decode_object(bytes(changed))
        # What could be read can be written, and read again as the same.
        assert decode_object(encode_object(obj)) == obj


@given(
    st.sampled_from(KINDS),
    st.dictionaries(
        st.sampled_from(["metadata", "spec", "status", "data", "items", "type", "rules", "value"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text() | st.floats(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
    ),
)
def test_an_object_that_does_not_fit_its_kind_is_refused(
    kind: tuple[str, str], content: dict[str, Any]
) -> None:
    with suppress(*REFUSALS):
        encode_object({**content, "apiVersion": kind[0], "kind": kind[1]})
