"""OpenAPI v3 in gnostic's protobuf: the document of the JSON form, where clients name it first."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.openapi.protobuf.messages import any_value
from instar.kube.openapi.protobuf.v3_document import encode
from tests.openapi.test_v2_protobuf import pairs, read
from tests.support.server import LiveServer

_PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
_PATHS, _COMPONENTS = 4, 5


def test_every_path_and_schema_is_there(server: LiveServer) -> None:
    path = "/openapi/v3/apis/apiextensions.k8s.io/v1"
    text = server.request("GET", path)
    binary = server.request("GET", path, headers={"Accept": _PROTOBUF})
    found = read(binary.body)
    (schemas,) = read(found[_COMPONENTS][0])[1]

    assert _header(binary, "content-type") == _PROTOBUF
    assert found[1] == [b"3.0.0"]
    assert set(pairs(read(found[_PATHS][0])[1])) == set(text.json["paths"])
    assert set(pairs(read(schemas)[1])) == set(text.json["components"]["schemas"])


def _header(answer: Any, name: str) -> str:
    return str(dict(answer.headers)[name])


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/com.github.proto-openapi.spec.v3@v1.0+protobuf", _PROTOBUF),
        (f"{_PROTOBUF}, application/json", _PROTOBUF),
        (f"application/json, {_PROTOBUF}", "application/json"),
        ("application/json", "application/json"),
    ],
)
def test_the_form_that_is_named_first_is_sent(server: LiveServer, accept: str, kind: str) -> None:
    found = server.request("GET", "/openapi/v3/apis/apps/v1", headers={"Accept": accept})

    assert _header(found, "content-type") == kind


def _schema(schema: dict[str, Any]) -> bytes:
    """The message of one schema of a document."""
    document = encode({"components": {"schemas": {"One": schema}}})
    (schemas,) = read(read(document)[_COMPONENTS][0])[1]
    return pairs(read(schemas)[1])["One"]


def test_a_reference_is_a_message_of_its_own() -> None:
    assert _schema({"$ref": "#/x"}) == b"\x12\x05\x0a\x03#/x"


def test_a_schema_has_its_keys_at_their_numbers() -> None:
    (found,) = read(_schema({"type": "integer", "default": 3, "nullable": True}))[1]

    schema = read(found)
    assert (schema[25], schema[1]) == ([b"integer"], [1])
    assert read(schema[33][0]) == {1: [3.0]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("list", "list\n"),
        ("", '""\n'),
        ("yes", '"yes"\n'),
        (True, "true\n"),
        ({"kind": "A", "group": ""}, 'group: ""\nkind: A\n'),
        ([{"kind": "A", "group": "g"}], "- group: g\n  kind: A\n"),
        (["a", "b"], "- a\n- b\n"),
        ({"a": {"b": 1}}, '{"a": {"b": 1}}\n'),
    ],
)
def test_free_values_are_yaml(value: object, text: str) -> None:
    (inner,) = read(any_value(1, value))[1]

    assert read(inner) == {2: [text.encode()]}
