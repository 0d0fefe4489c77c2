"""Schemas of CRDs, created with ``dryRun=All``: structure, defaults, extensions, formats."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from instar.base.json_values import Object
from tests.recordings.scenarios import CRDS, Scenario

_DRY = f"{CRDS}?dryRun=All"
_STRING, _INTEGER = {"type": "string"}, {"type": "integer"}
_PRESERVE, _EMBEDDED = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"
_INT_OR_STRING, _LIST_TYPE = "x-kubernetes-int-or-string", "x-kubernetes-list-type"
_KEYS, _MAP_TYPE = "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
_TYPES = ("string", "integer", "number", "boolean", "array", "object")

_KEYWORDS: dict[str, list[Any]] = {
    "minimum": [0, -1.5, "1", None], "maximum": [10, "x"], "exclusiveMinimum": [True, 1],
    "exclusiveMaximum": [False, "x"], "multipleOf": [0, 2, -1, 0.5], "minLength": [0, -1, 1.5, "x"],
    "maxLength": [3, -2], "pattern": ["a+", "(", "", "(?=x)", r"\d", 5], "minItems": [1, -1],
    "maxItems": [2, -5], "uniqueItems": [True, False], "minProperties": [1, -1],
    "maxProperties": [2, -1], "enum": [["a"], [], [1, "a", None], "a", ["a", "a"]],
    "format": ["date-time", "int32", "", "no-such-format", 5], "nullable": [True, "x"],
    "required": [["a"], ["a", "a"], "a", [1]], "title": ["t", 1], "description": ["d"],
    "example": [{"a": 1}], "default": [1, "a", {"a": 1}, [], None, True, 1.5],
    "$ref": ["#/x", ""], "$schema": ["x"], "id": ["x"], "definitions": [{"a": _STRING}],
    "dependencies": [{"a": ["b"]}], "patternProperties": [{"a": _STRING}],
    "additionalItems": [True, _STRING], "externalDocs": [{"url": "x"}], "discriminator": ["x"],
    "readOnly": [True], "const": ["a"], "not": [{"type": "string"}, {}, {"minimum": 1}],
    "allOf": [[], [{}], [{"type": "string"}], [{"minimum": 1}], [{"properties": {"a": {}}}]],
    "anyOf": [[{"minimum": 1}, {"maximum": 2}], [{"default": 1}], [{"description": "d"}]],
    "oneOf": [[{"required": ["a"]}, {"required": ["b"]}], [{"nullable": True}]],
    _PRESERVE: [True, False, "x"], _EMBEDDED: [True, False], _INT_OR_STRING: [True, False],
    _LIST_TYPE: ["atomic", "set", "map", "other"], _KEYS: [["a"], []],
    _MAP_TYPE: ["granular", "atomic", "x"],
}  # fmt: skip


def _base(kind: str) -> Object:
    made: Object = {"type": kind}
    if kind == "array":
        made["items"] = _STRING
    elif kind == "object":
        made["properties"] = {"a": _STRING}
    return made


def _object(**properties: Any) -> Object:
    return {"type": "object", "properties": properties}


def _array(items: Any, **more: Any) -> Object:
    return {"type": "array", "items": items, **more}


_STRUCTURES: list[Any] = [
    {}, {"type": ""}, {"type": "text"}, {"type": "null"}, {"type": ["string", "null"]}, None, 5,
    {"type": "array"}, _array(None), _array([]), _array([_STRING]), _array([_STRING, _INTEGER]),
    _array({}), {"type": "object", "additionalProperties": True},
    {"type": "object", "additionalProperties": False}, {"type": "object", "additionalProperties": {}},
    {"type": "object", "additionalProperties": _STRING},
    {"type": "object", "additionalProperties": _STRING, "properties": {"a": _STRING}},
    {"type": "object", "additionalProperties": True, "properties": {"a": _STRING}},
    {"type": "string", "properties": {"a": _STRING}}, {"type": "string", "items": _STRING},
    _object(a={}), _object(a=None), _object(**{"": _STRING}), _object(**{"a/b": _STRING}),
    _object(**{"$ref": _STRING}), _object(metadata=_object(name=_STRING)),
    _object(apiVersion=_STRING, kind=_STRING, metadata={"type": "object"}),
    {**_object(a=_STRING), _PRESERVE: True}, {_PRESERVE: True}, {"type": "string", _PRESERVE: True},
    {"type": "object", _EMBEDDED: True}, {"type": "object", _EMBEDDED: True, _PRESERVE: True},
    {**_object(a=_STRING), _EMBEDDED: True}, {"type": "string", _EMBEDDED: True},
    {**_object(metadata=_object(name={"type": "string", "maxLength": 3})), _EMBEDDED: True},
    {**_object(metadata=_object(labels={"type": "object"})), _EMBEDDED: True},
    {**_object(kind={"type": "string", "enum": ["A"]}), _EMBEDDED: True},
    {_INT_OR_STRING: True}, {"type": "integer", _INT_OR_STRING: True},
    {"anyOf": [_INTEGER, _STRING]}, {_INT_OR_STRING: True, "anyOf": [_INTEGER, _STRING]},
    {_INT_OR_STRING: True, "anyOf": [_STRING, _INTEGER]},
    {_INT_OR_STRING: True, "anyOf": [_INTEGER, _STRING], "pattern": "a"},
    {_INT_OR_STRING: True, "allOf": [{"anyOf": [_INTEGER, _STRING]}, {"minimum": 1}]},
    {_INT_OR_STRING: True, "allOf": [{"minimum": 1}, {"anyOf": [_INTEGER, _STRING]}]},
    {_INT_OR_STRING: True, "default": 5}, {_INT_OR_STRING: True, "default": 1.5},
    {_INT_OR_STRING: True, "oneOf": [_INTEGER, _STRING]}, {_INT_OR_STRING: True, "enum": [1, "a"]},
]  # fmt: skip
_LISTS: list[Any] = [
    _array(_STRING, **{_LIST_TYPE: "set"}), _array(_object(a=_STRING), **{_LIST_TYPE: "set"}),
    _array({**_object(a=_STRING), _MAP_TYPE: "atomic"}, **{_LIST_TYPE: "set"}),
    _array(_array(_STRING), **{_LIST_TYPE: "set"}),
    _array(_array(_STRING, **{_LIST_TYPE: "atomic"}), **{_LIST_TYPE: "set"}),
    _array({"type": "string", "nullable": True}, **{_LIST_TYPE: "set"}),
    _array(_object(k=_STRING), **{_LIST_TYPE: "map"}),
    _array(_object(k=_STRING), **{_LIST_TYPE: "map", _KEYS: []}),
    _array(_object(k=_STRING), **{_LIST_TYPE: "map", _KEYS: ["k"]}),
    _array({**_object(k=_STRING), "required": ["k"]}, **{_LIST_TYPE: "map", _KEYS: ["k"]}),
    _array({**_object(k=_STRING), "required": ["k"]}, **{_LIST_TYPE: "map", _KEYS: ["k", "k"]}),
    _array({**_object(k=_STRING), "required": ["k"]}, **{_LIST_TYPE: "map", _KEYS: ["other"]}),
    _array({**_object(k=_STRING), "required": ["k"]}, **{_LIST_TYPE: "map", _KEYS: ["k"], "uniqueItems": True}),
    _array({**_object(k={**_STRING, "default": "x"})}, **{_LIST_TYPE: "map", _KEYS: ["k"]}),
    _array({**_object(k={**_STRING, "nullable": True}), "required": ["k"]}, **{_LIST_TYPE: "map", _KEYS: ["k"]}),
    _array({**_object(k=_object(a=_STRING)), "required": ["k"]}, **{_LIST_TYPE: "map", _KEYS: ["k"]}),
    _array({**_object(k=_array(_STRING)), "required": ["k"]}, **{_LIST_TYPE: "map", _KEYS: ["k"]}),
    _array({**_object(k=_INTEGER, j=_STRING), "required": ["k", "j"]}, **{_LIST_TYPE: "map", _KEYS: ["k", "j"]}),
    _array(_STRING, **{_LIST_TYPE: "map", _KEYS: ["k"]}), _array(_STRING, **{_KEYS: ["k"]}),
    _array({_PRESERVE: True, "type": "object"}, **{_LIST_TYPE: "map", _KEYS: ["k"]}),
    _array({**_object(k=_STRING), "required": ["k"], "nullable": True}, **{_LIST_TYPE: "map", _KEYS: ["k"]}),
    {**_object(a=_STRING), _MAP_TYPE: "atomic"}, {**_object(a=_STRING), _MAP_TYPE: "granular"},
    {"type": "object", "additionalProperties": _STRING, _MAP_TYPE: "atomic"}, {**_STRING, _MAP_TYPE: "atomic"},
    {**_STRING, _LIST_TYPE: "atomic"}, {"type": "object", _LIST_TYPE: "map"},
]  # fmt: skip
_DEFAULTS: list[Any] = [
    _object(a={**_STRING, "default": 5}), _object(a={**_INTEGER, "default": "5"}),
    {**_object(a=_STRING), "default": {}}, {**_object(a=_STRING), "default": {"b": 1}},
    {**_object(a={**_STRING, "default": "x"}), "default": {}}, _array(_STRING, default=[1]),
    {**_object(a=_STRING), "required": ["a"], "default": {}},
    {**_object(a={**_STRING, "default": "x"}), "required": ["a"], "default": {}},
    {**_STRING, "default": None}, {**_STRING, "nullable": True, "default": None},
    {**_STRING, "default": "aaa", "maxLength": 2}, {**_STRING, "default": "b", "enum": ["a"]},
    {**_STRING, "default": "x", "format": "date-time"}, {**_STRING, "default": "1.2.3.4", "format": "ipv4"},
    {**_INTEGER, "default": 1.0}, {**_INTEGER, "default": 1.5}, {"type": "number", "default": 1},
    {"type": "boolean", "default": "true"}, _array({**_STRING, "default": "x"}),
    {"type": "object", "additionalProperties": {**_STRING, "default": "x"}},
    _array(_STRING, **{_LIST_TYPE: "set", "default": ["a", "a"]}),
    {"type": "object", _EMBEDDED: True, _PRESERVE: True, "default": {}},
    {"type": "object", _EMBEDDED: True, _PRESERVE: True,
     "default": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "Bad_Name"}}},
    {"type": "object", _EMBEDDED: True, _PRESERVE: True,
     "default": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "x": 1}}},
    {"anyOf": [{"default": 1}], **_INTEGER}, {"not": {"default": 1}, **_INTEGER},
    {**_object(a=_STRING), "default": {"a": "x", "b": None}}, {"default": 1}, {"default": {}, _PRESERVE: True},
]  # fmt: skip
_FORMATS = (
    "bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4",
    "uuid5", "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password",
    "date", "duration", "date-time", "datetime", "int32", "int64", "float", "double", "binary",
    "k8s-short-name", "k8s-long-name", "k8s-label-key", "url", "DateTime",
)  # fmt: skip


def _with_property(name: str, schemas: list[Any]) -> Scenario:
    scenario = Scenario(name)
    for schema in schemas:
        scenario.post(_DRY, scenario.crd(_object(spec=_object(x=schema))))
    return scenario


def _keywords() -> Iterator[Scenario]:
    for number, kind in enumerate(_TYPES):
        pairs = [(key, value) for key, values in _KEYWORDS.items() for value in values]
        # Each type with every other value, so that every value meets three types.
        chosen = [pair for place, pair in enumerate(pairs) if (place + number) % 2 == 0]
        yield _with_property(
            f"schema-{kind}", [{**_base(kind), key: value} for key, value in chosen]
        )


def _pairs() -> Iterator[Scenario]:
    """Two structural mistakes at once: all are told, in one order."""
    some = [schema for schema in _STRUCTURES if isinstance(schema, dict)][:24]
    scenario = Scenario("schema-pairs")
    for left, right in list(combinations(some, 2))[::9]:
        scenario.post(_DRY, scenario.crd(_object(spec=_object(x=left, y=_array(right)))))
    yield scenario


def _roots() -> Iterator[Scenario]:
    scenario = Scenario("schema-roots")
    roots: list[Any] = [
        {"type": "object"}, {"type": "object", _PRESERVE: True}, {"type": "object", "nullable": True},
        {"type": "object", _EMBEDDED: True}, _object(metadata=_object(name=_STRING)),
        _object(metadata={"type": "object"}), _object(metadata={"type": "object", "description": "d"}),
        _object(metadata=_object(name={"type": "string", "pattern": "^a"})),
        _object(metadata=_object(labels={"type": "object"})), _object(kind=_INTEGER),
        _object(apiVersion={"type": "string", "enum": ["x"]}), {**_object(), "required": ["spec"]},
        {"type": "object", "additionalProperties": _STRING}, {**_object(a=_STRING), "default": {}},
        _object(status=_object(a={**_STRING, "default": "x"})), {"type": "object", _MAP_TYPE: "atomic"},
        {**_object(spec=_STRING), "not": {"required": ["spec"]}}, {**_object(), "$ref": "#/a"},
        {**_object(), "x-unknown": 1}, {"type": "object", "properties": {}}, {"properties": {"a": _STRING}},
        {"type": "object", "minProperties": 2}, {"type": "object", "oneOf": [{"required": ["spec"]}]},
    ]  # fmt: skip
    for root in roots:
        scenario.post(_DRY, scenario.crd(root))
    yield scenario


def scenarios() -> Iterator[Scenario]:
    yield from _keywords()
    yield _with_property("schema-structures", _STRUCTURES)
    yield _with_property("schema-lists", _LISTS)
    yield _with_property("schema-defaults", _DEFAULTS)
    yield _with_property(
        "schema-formats", [{"type": "string", "format": name} for name in _FORMATS]
    )
    yield from _pairs()
    yield from _roots()
