"""What validation says about values, keyword by keyword, in upstream's words."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.validation.validate import compile_validator


def said(schema: dict[str, Any], value: Any) -> list[str]:
    """Errors for ``value`` at field ``f``."""
    root = {"type": "object", "properties": {"f": schema}}
    return [str(error) for error in compile_schema(root).validate({"f": value})]


ACCEPTED: list[tuple[dict[str, Any], Any]] = [
    ({"type": "string"}, ""),
    ({"type": "integer"}, 3.0),
    ({"type": "number"}, 3),
    ({"type": "integer"}, -(2**63)),
    ({"type": "boolean"}, False),
    ({"type": "object"}, {"any": 1}),
    ({"type": "array", "items": {"type": "string"}}, []),
    ({"type": "string", "nullable": True}, None),
    ({"x-kubernetes-int-or-string": True}, 1),
    ({"x-kubernetes-int-or-string": True}, "1"),
    ({"x-kubernetes-preserve-unknown-fields": True}, [1, {"a": None}]),
    ({"type": "string", "maxLength": 3}, "äöü"),
    ({"type": "string", "pattern": "b"}, "abc"),
    ({"type": "string", "format": "no-such-format"}, "x"),
    ({"type": "number", "enum": [1.0, 2.5]}, 1),
    ({"type": "object", "enum": [{"a": 1}]}, {"a": 1}),
    ({"type": "number", "multipleOf": 0.1}, 0.3),
    ({"type": "integer", "maximum": 3}, 3),
    ({"type": "array", "items": {"type": "integer"}, "maxItems": 1}, [1]),
    ({"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]}, "b"),
    ({"type": "string", "not": {"pattern": "^a"}}, "b"),
]


@pytest.mark.parametrize(("schema", "value"), ACCEPTED)
def test_a_fitting_value_earns_no_error(schema: dict[str, Any], value: Any) -> None:
    assert said(schema, value) == []


REJECTED: list[tuple[dict[str, Any], Any, list[str]]] = [
    (
        {"type": "integer"},
        "x",
        ['f: Invalid value: "string": f in body must be of type integer: "string"'],
    ),
    (
        {"type": "array", "items": {"type": "integer"}},
        [None],
        ['f[0]: Invalid value: "null": f[0] in body must be of type integer: "null"'],
    ),
    (
        {"x-kubernetes-int-or-string": True},
        1.5,
        ['f: Invalid value: "number": f in body must be of type integer,string: "number"'],
    ),
    ({"type": "object", "required": ["a", "b"]}, {"b": 1}, ["f.a: Required value"]),
    (
        {"type": "string", "enum": ["a", "b"]},
        "c",
        ['f: Unsupported value: "c": supported values: "a", "b"'],
    ),
    (
        {"type": "integer", "enum": [1, 2]},
        3,
        ['f: Unsupported value: 3: supported values: "1", "2"'],
    ),
    (
        {"type": "string", "nullable": True, "enum": ["a", None]},
        None,
        ['f: Unsupported value: null: supported values: "a", "null"'],
    ),
    ({"type": "string", "maxLength": 3}, "abcd", ["f: Too long: may not be more than 3 bytes"]),
    ({"type": "string", "maxLength": 1}, "ab", ["f: Too long: may not be more than 1 byte"]),
    (
        {"type": "string", "minLength": 2, "pattern": "x"},
        "b",
        ['f: Invalid value: "b": f in body should be at least 2 chars long'],
    ),
    (
        {"type": "string", "pattern": "^a"},
        "bb",
        ["f: Invalid value: \"bb\": f in body should match '^a'"],
    ),
    (
        {"type": "string", "pattern": "+"},
        "b",
        [
            'f: Invalid value: "b": f in body should match \'+, but pattern is invalid: '
            "error parsing regexp: missing argument to repetition operator: `+`'"
        ],
    ),
    (
        {"type": "integer", "maximum": 10},
        11,
        ["f: Invalid value: 11: f in body should be less than or equal to 10"],
    ),
    (
        {"type": "number", "maximum": 2.5, "exclusiveMaximum": True},
        2.5,
        ["f: Invalid value: 2.5: f in body should be less than 2.5"],
    ),
    (
        {"type": "number", "maximum": 2.5, "exclusiveMaximum": True},
        3,
        ["f: Invalid value: 3: f in body should be less than 2"],
    ),
    (
        {"type": "integer", "minimum": 1},
        0,
        ["f: Invalid value: 0: f in body should be greater than or equal to 1"],
    ),
    (
        {"type": "number", "minimum": 1, "exclusiveMinimum": True},
        1,
        ["f: Invalid value: 1: f in body should be greater than 1"],
    ),
    (
        {"type": "integer", "multipleOf": 3},
        4,
        ["f: Invalid value: 4: f in body should be a multiple of 3"],
    ),
    (
        {"type": "number", "multipleOf": 0.5},
        1,
        ["f: Invalid value: 0: factor MultipleOf declared for f must be positive: 0"],
    ),
    (
        {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
        [1, 2, 3],
        ["f: Too many: 3: must have at most 2 items"],
    ),
    (
        {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        [],
        ["f: Invalid value: 0: f in body should have at least 1 items"],
    ),
    (
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        [1, 1],
        ['f: Invalid value: "": f in body shouldn\'t contain duplicates'],
    ),
    (
        {"type": "object", "maxProperties": 1, "required": ["c"]},
        {"a": 1, "b": 2},
        ["f: Too many: 2: must have at most 1 item", "f.c: Required value"],
    ),
    (
        {"type": "object", "minProperties": 1},
        {},
        ["f: Invalid value: 0: f in body should have at least 1 properties"],
    ),
    (
        {"type": "string", "format": "date-time"},
        "x",
        ['f: Invalid value: "x": f in body must be of type date-time: "x"'],
    ),
    (
        {"type": "integer", "format": "int32"},
        2**31,
        ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in f'],
    ),
    (
        {"type": "integer"},
        2**63,
        [
            'f: Invalid value: "number": f in body must be of type integer: "number"',
            '<nil>: Invalid value: "": Checked value must be of type integer (default format) in f',
        ],
    ),
    (
        {"type": "number", "format": "float"},
        1e300,
        ['<nil>: Invalid value: "": Checked value must be of type number with format float in f'],
    ),
    (
        {"type": "string", "anyOf": [{"pattern": "^a"}, {"minLength": 9}]},
        "b",
        [
            '<nil>: Invalid value: "": "f" must validate at least one schema (anyOf)',
            "f: Invalid value: \"b\": f in body should match '^a'",
        ],
    ),
    (
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {},
        [
            '<nil>: Invalid value: "": "f" must validate one and only one schema (oneOf). '
            "Found none valid",
            "f.a: Required value",
        ],
    ),
    (
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"a": 1, "b": 1},
        [
            '<nil>: Invalid value: "": "f" must validate one and only one schema (oneOf). '
            "Found 2 valid alternatives"
        ],
    ),
    (
        {"type": "string", "allOf": [{"minLength": 2}, {"pattern": "b"}]},
        "b",
        [
            'f: Invalid value: "b": f in body should be at least 2 chars long',
            '<nil>: Invalid value: "": "f" must validate all the schemas (allOf)',
        ],
    ),
    (
        {"type": "string", "allOf": [{"minLength": 2}]},
        "b",
        [
            'f: Invalid value: "b": f in body should be at least 2 chars long',
            '<nil>: Invalid value: "": "f" must validate all the schemas (allOf). None validated',
        ],
    ),
    (
        {"type": "string", "not": {"pattern": "b"}},
        "b",
        ['<nil>: Invalid value: "": "f" must not validate the schema (not)'],
    ),
    (
        {"type": "object", "additionalProperties": False},
        {"k": 1},
        ['f: Invalid value: "k": f.k in body is a forbidden property'],
    ),
    (
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"a.b": 1},
        ['f.a.b: Invalid value: "integer": f.a.b in body must be of type string: "integer"'],
    ),
]


@pytest.mark.parametrize(("schema", "value", "errors"), REJECTED)
def test_a_bad_value_earns_upstreams_words(
    schema: dict[str, Any], value: Any, errors: list[str]
) -> None:
    assert said(schema, value) == errors


def test_the_branch_that_got_furthest_is_shown() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [
            {"required": ["x"]},
            {"properties": {"a": {"pattern": "^z"}}, "required": ["y"]},
        ],
    }

    assert said(schema, {"a": "q"})[1:] == [
        "f.a: Invalid value: \"q\": f.a in body should match '^z'",
        "f.y: Required value",
    ]


def test_an_error_at_the_root_has_no_field() -> None:
    validator = compile_validator(structural({"type": "object"}))

    assert [error.field for error in validator.validate([])] == ["<nil>"]


def test_status_errors_are_prefixed_in_the_field_only() -> None:
    status = {"type": "object", "properties": {"b": {"type": "integer"}}}
    compiled = compile_schema({"type": "object", "properties": {"status": status}})

    assert [str(error) for error in compiled.validate_status({"b": "x"})] == [
        'status.b: Invalid value: "string": b in body must be of type integer: "string"'
    ]
    assert [str(error) for error in compiled.validate_status(1)] == [
        'status: Invalid value: "integer":  in body must be of type object: "integer"'
    ]


def test_a_repeated_error_is_reported_once() -> None:
    schema = {"type": "string", "minLength": 2, "allOf": [{"minLength": 2}]}

    assert len(said(schema, "b")) == 2


def test_a_schemaless_version_validates_nothing() -> None:
    assert compile_schema(None).validate({"spec": 1}) == []


def test_a_bound_that_is_not_an_integer_is_an_error_on_an_integer() -> None:
    schema = {"type": "integer", "maximum": 2.5}

    assert said(schema, 3) == [
        '<nil>: Invalid value: "": Maximum boundary value must be of type integer '
        "(default format) in f",
        "f: Invalid value: 3: f in body should be less than or equal to 2.5",
    ]
