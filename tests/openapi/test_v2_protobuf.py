"""The protobuf form of v2, read back with a reader that knows only the wire format."""

from __future__ import annotations

import json
import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from instar.kube.openapi import v2
from instar.kube.openapi.protobuf.v2_document import encode
from tests.openapi.make import custom, established_corpus
from tests.support.crds import version

Message = dict[int, list[Any]]


def read(data: bytes) -> Message:
    """Field number to values: bytes, or numbers for varints and doubles."""
    message: Message = {}
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        value: Any
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        elif tag & 7 == 1:
            (value,) = struct.unpack_from("<d", data, at)
            at += 8
        else:
            length, at = read_varint(data, at)
            value, at = data[at : at + length], at + length
            assert len(value) == length
        message.setdefault(tag >> 3, []).append(value)
    return message


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def pairs(messages: list[bytes]) -> dict[str, bytes]:
    return {read(item)[1][0].decode(): read(item)[2][0] for item in messages}


def definitions(document: dict[str, Any]) -> dict[str, Message]:
    found = pairs(read(read(encode(document))[9][0])[1])
    return {name: read(value) for name, value in found.items()}


def properties(schema: Message) -> dict[str, Message]:
    return {name: read(value) for name, value in pairs(read(schema[25][0])[1]).items()}


def encoded_field(schema: dict[str, Any]) -> Message:
    root = {"type": "object", "properties": {"a": schema}}
    document = v2.document([custom(version(schema=root))], server_version="v1")
    return properties(definitions(document)["com.example.v1.Foo"])["a"]


def test_the_head_of_the_document() -> None:
    message = read(encode({"swagger": "2.0", "info": {"title": "t", "version": "v"}}))

    assert message[1] == [b"2.0"]
    assert read(message[2][0]) == {1: [b"t"], 2: [b"v"]}


def test_keywords_of_a_schema_stand_under_their_numbers() -> None:
    field = encoded_field(
        {
            "type": "string",
            "description": "ü",
            "format": "date",
            "pattern": "^a$",
            "maxLength": 300,
            "enum": ["a"],
            "x-kubernetes-validations": [{"rule": "true"}],
        }
    )

    assert read(field[22][0]) == {1: [b"string"]}
    assert field[4] == ["ü".encode()]
    assert field[2] == [b"date"]
    assert field[13] == [b"^a$"]
    assert field[11] == [300]
    assert read(field[20][0]) == {2: [b"a\n"]}
    assert read(read(field[31][0])[2][0]) == {2: [b'[{"rule": "true"}]\n']}
    assert read(field[31][0])[1] == [b"x-kubernetes-validations"]


def test_simple_extensions_are_written_as_yaml_and_others_as_json() -> None:
    fields = [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}]
    rule = {"rule": "self.a > 1", "message": "no"}
    schema = {"type": "object", "x-kubernetes-validations": [rule]}
    document = v2.document(
        [custom(version(schema=schema, selectableFields=fields))], server_version="v1"
    )

    found = pairs(definitions(document)["com.example.v1.Foo"][31])

    texts = {name: read(value)[2][0].decode() for name, value in found.items()}
    assert texts["x-kubernetes-selectable-fields"] == (
        "- fieldPath: spec.color\n- fieldPath: spec.size\n"
    )
    assert texts["x-kubernetes-group-version-kind"] == (
        "- group: example.com\n  kind: Foo\n  version: v1\n"
    )
    assert json.loads(texts["x-kubernetes-validations"]) == [rule]


def test_bounds_are_doubles_and_zero_is_written() -> None:
    field = encoded_field({"type": "number", "minimum": 0, "maximum": 1.5, "multipleOf": 0.5})

    assert (field[9], field[7], field[6]) == ([0.0], [1.5], [0.5])


def test_items_and_additional_properties_are_wrapped() -> None:
    listed = encoded_field({"type": "array", "items": {"type": "integer"}})
    mapped = encoded_field({"type": "object", "additionalProperties": {"type": "boolean"}})

    assert read(read(read(listed[23][0])[1][0])[22][0]) == {1: [b"integer"]}
    assert read(read(read(mapped[21][0])[1][0])[22][0]) == {1: [b"boolean"]}


def test_operations_carry_parameters_responses_and_their_kind() -> None:
    document = v2.document([custom(scope="Cluster")], server_version="v1")

    paths = pairs(read(read(encode(document))[8][0])[2])
    patch = read(read(paths["/apis/example.com/v1/foos/{name}"])[8][0])

    assert patch[5] == [b"patchExampleComV1Foo"]
    body = read(read(read(patch[8][0])[1][0])[1][0])
    assert body[3] == [b"body"]
    query = read(read(read(read(patch[8][1])[1][0])[2][0])[3][0])
    assert query[4] == [b"dryRun"]
    extensions = {read(item)[1][0] for item in patch[13]}
    assert extensions == {b"x-kubernetes-action", b"x-kubernetes-group-version-kind"}
    assert set(pairs(read(patch[9][0])[1])) == {"200", "401"}


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_integers_survive(value: int) -> None:
    assert encoded_field({"type": "string", "maxLength": value})[11] == [value]


def test_the_whole_corpus_can_be_read_back() -> None:
    document = v2.document(established_corpus(), server_version="v1")

    found = definitions(document)

    assert set(found) == set(document["definitions"])
    for name, schema in found.items():
        written = document["definitions"][name]
        if "properties" in written:
            assert set(properties(schema)) == set(written["properties"])
