"""Rules keep their own laws where the object that holds their fields may be missing."""

from __future__ import annotations

from typing import Any

import pytest

from instar.sdk import ConversionRule, Converter, enum, keep, list_to_map, move, scale, split
from instar.testing import assert_converter

STRING = {"type": "string", "pattern": "^[a-z]{1,3}$"}
NUMBER = {"type": "integer", "minimum": 0, "maximum": 99}
ADDRESS = {"type": "string", "pattern": "^[a-z]{1,3}:(0|[1-9][0-9]?)$"}
ITEMS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": STRING, "size": NUMBER},
    },
}
BY_NAME = {
    "type": "object",
    "additionalProperties": {"type": "object", "properties": {"size": NUMBER}},
}


def _inside(fields: dict[str, Any], *names: str, least: int = 0) -> dict[str, Any]:
    """``least`` 1 where the other version has no such object: nobody can say "empty" there."""
    for name in reversed(names):
        fields = {name: {"type": "object", "properties": fields, "minProperties": least}}
        least = 0
    return fields


def _version(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields}
    return {
        "name": name,
        "served": True,
        "storage": name == "v2",
        "schema": {"openAPIV3Schema": schema},
    }


def _crd(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ws.optional.example.com"},
        "spec": {
            "group": "optional.example.com",
            "scope": "Namespaced",
            "names": {"plural": "ws", "kind": "W"},
            "versions": [_version("v1", old), _version("v2", new)],
        },
    }


PARTS = {"host": STRING, "port": NUMBER}
CASES = [
    pytest.param(
        split("spec.address", "{spec.host}:{spec.port:int}"),
        _inside({"address": ADDRESS}, "spec"),
        _inside(PARTS, "spec"),
        id="split in one object",
    ),
    pytest.param(
        split("spec.address", "{spec.end.host}:{spec.end.port:int}"),
        _inside({"address": ADDRESS}, "spec"),
        _inside(PARTS, "spec", "end", least=1),
        id="split into another object",
    ),
    pytest.param(
        keep("spec.note"),
        _inside({"other": NUMBER}, "spec"),
        _inside({"other": NUMBER, "note": STRING}, "spec"),
        id="keep",
    ),
    pytest.param(
        keep("spec.deep.note"),
        _inside({"other": NUMBER, "deep": {"type": "object"}}, "spec"),
        _inside({"other": NUMBER, **_inside({"note": STRING}, "deep")}, "spec"),
        id="keep deep inside",
    ),
    pytest.param(
        move("spec.a", "spec.b"),
        _inside({"a": NUMBER}, "spec"),
        _inside({"b": NUMBER}, "spec"),
        id="move in one object",
    ),
    pytest.param(
        move("spec.a", "other.b"),
        _inside({"a": NUMBER}, "spec", least=1),
        _inside({"b": NUMBER}, "other", least=1),
        id="move to another object",
    ),
    pytest.param(
        scale("spec.seconds", "spec.millis", 1000),
        _inside({"seconds": NUMBER}, "spec"),
        _inside({"millis": {"type": "integer", "minimum": 0, "maximum": 99_999}}, "spec"),
        id="scale",
    ),
    pytest.param(
        enum("spec.mode", {"a": "b", "c": "d"}),
        _inside({"mode": STRING}, "spec"),
        _inside({"mode": STRING}, "spec"),
        id="enum",
    ),
    pytest.param(
        list_to_map("spec.items", "spec.named", key="name"),
        _inside({"items": ITEMS}, "spec"),
        _inside({"named": BY_NAME}, "spec"),
        id="list to map",
    ),
]


@pytest.mark.parametrize(("rule", "old", "new"), CASES)
def test_a_rule_keeps_the_laws_of_edits_and_parts(
    rule: ConversionRule, old: dict[str, Any], new: dict[str, Any]
) -> None:
    converter = Converter(kind="W", group="optional.example.com")
    converter.between("v1", "v2", rules=[rule])
    untold = ["total", "labels", "list", "deterministic", "schema", "contract"]

    assert_converter(_crd(old, new), converter, examples=150, skip=untold)
