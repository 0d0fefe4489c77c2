"""Why a schema is not structural."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural_rules import structural_errors
from instar.kube.schema.structure.walk import walk, walk_fields

P = "spec.validation.openAPIV3Schema"


def said(raw: dict[str, Any]) -> list[str]:
    return [str(error).removeprefix(P).removeprefix(".") for error in structural_errors(raw, P)]


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
ONLY_NAMES = (
    "properties[metadata]: Forbidden: must not specify anything other than name and "
    "generateName, but metadata is implicitly specified"
)


@pytest.mark.parametrize(
    ("raw", "errors"),
    [
        ({}, ["type: Required value: must not be empty at the root"]),
        ({"type": "array", "items": {"type": "string"}},
         ['type: Invalid value: "array": must be object at the root']),
        (obj(a={}),
         ["properties[a].type: Required value: must not be empty for specified object fields"]),
        (obj(a={"type": "array", "items": {}}),
         ["properties[a].items.type: Required value: "
          "must not be empty for specified array items"]),
        (obj(a={"type": "array"}), ["properties[a].items: Required value: must be specified"]),
        (obj(a={"x-kubernetes-int-or-string": True}), []),
        (obj(a={"x-kubernetes-preserve-unknown-fields": True}), []),
        ({"type": "object", "additionalProperties": True},
         ["additionalProperties: Forbidden: must not be used at the root"]),
        ({"type": "object", "additionalProperties": False},
         ["additionalProperties: Forbidden: must not be used at the root"]),
        (obj(a={EMBEDDED: True, "x-kubernetes-preserve-unknown-fields": True}),
         ["properties[a].type: Required value: "
          "must be object if x-kubernetes-embedded-resource is true"]),
        (obj(a={"type": "object", EMBEDDED: True}),
         ["properties[a].properties: Required value: must not be empty if "
          "x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"]),
        (obj(kind={"type": "integer"}, apiVersion={"type": "string"}),
         ['properties[kind].type: Invalid value: "integer": must be string']),
        (obj(metadata={"type": "object", "properties": {"name": {"type": "string"}}}), []),
        (obj(metadata={"type": "object", "description": "x"}), [ONLY_NAMES]),
        (obj(metadata={"type": "object", "properties": {"labels": {"type": "object"}}}),
         [ONLY_NAMES]),
        (obj(a={"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True}),
         ["properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: true: "
          "must be false if x-kubernetes-int-or-string is true"]),
        (obj(a={"type": "string", "pattern": "+"}),
         ['properties[a].pattern: Invalid value: "+": must be a valid regular expression, but '
          "isn't: error parsing regexp: missing argument to repetition operator: `+`"]),
        (obj(a={"type": "string", "pattern": "(?=x)"}),
         ['properties[a].pattern: Invalid value: "(?=x)": must be a valid regular expression, but '
          "isn't: error parsing regexp: invalid or unsupported Perl syntax: `(?=`"]),
        (obj(a={"type": "string", "anyOf": [{"type": "string", "description": "x"}]}),
         ["properties[a].anyOf[0].description: Forbidden: must be empty to be structural",
          "properties[a].anyOf[0].type: Forbidden: must be empty to be structural"]),
        (obj(a={"type": "string", "not": {"nullable": True, "default": 1}}),
         ["properties[a].not.default: Forbidden: must be undefined to be structural",
          "properties[a].not.nullable: Forbidden: must be false to be structural"]),
        (obj(a={"type": "object", "anyOf": [{"additionalProperties": True}]}),
         ["properties[a].anyOf[0].additionalProperties: Forbidden: "
          "must be undefined to be structural"]),
        (obj(a={"type": "object", "anyOf": [{"additionalProperties": False}]}), []),
        (obj(a={"type": "string", "anyOf": INT_OR_STRING}), []),
        (obj(a={"x-kubernetes-int-or-string": True,
                "allOf": [{"anyOf": INT_OR_STRING}, {"pattern": "x"}]}), []),
        (obj(a={"type": "object", "allOf": [{"properties": {"metadata": {}}}]}),
         ["properties[a].allOf[0].properties[metadata]: Forbidden: "
          "must not be specified in a nested context"]),
        ({"type": "object", "anyOf": [{"properties": {"a": {"minLength": 1}}}]},
         [f"properties[a]: Required value: because it is defined in {P}.anyOf[0].properties[a]"]),
        ({**obj(a={"type": "array", "items": {"type": "string"}}),
          "allOf": [{"properties": {"a": {"items": {"minLength": 1}}}}]}, []),
        (obj(a={"type": "object", "anyOf": [{"properties": {"free": {"minLength": 1}}}]}), []),
    ],
)  # fmt: skip
def test_structural_rules(raw: dict[str, Any], errors: list[str]) -> None:
    assert said(raw) == errors


def test_errors_are_sorted_by_their_text() -> None:
    found = said(obj(b={}, a={}))

    assert found == sorted(found)


def test_walking_meets_every_node_under_both_kinds_of_path() -> None:
    root = structural(
        obj(
            l={"type": "array", "items": {"type": "string"}},
            m={"type": "object", "additionalProperties": {"type": "string"}},
        )
    )

    assert [path for path, _ in walk(root)] == [
        "",
        "properties[l]",
        "properties[l].items",
        "properties[m]",
        "properties[m].additionalProperties",
    ]
    assert [path for path, _ in walk_fields(root)] == ["", "l", "l[*]", "m", "m.*"]
