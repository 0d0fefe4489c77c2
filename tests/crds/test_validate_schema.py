"""Broken schemas in CRDs, and the exact words about them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from instar.base.field_errors import FieldError, forbidden
from instar.base.json_values import Object
from instar.kube.crds.validation.crd import validate_create
from instar.kube.schema.structure.structural import Structural
from tests.crds.make import created, problems, with_field, with_schema
from tests.support.crds import crd, version

ROOT = "spec.validation.openAPIV3Schema"
A = f"{ROOT}.properties[a]"
SET_ITEM = "must be atomic as item of a list with x-kubernetes-list-type=set"
IS_MAP = "if x-kubernetes-list-type is map"
MAP_KEY = "this property is in x-kubernetes-list-map-keys, so it"


def listed(items: Object, kind: str = "map", keys: list[str] | None = None) -> Object:
    fields: Object = {"type": "array", "items": items, "x-kubernetes-list-type": kind}
    if keys is not None:
        fields["x-kubernetes-list-map-keys"] = keys
    return with_field(**fields)


def item(**fields: Object) -> Object:
    return {"type": "object", "properties": fields, "required": list(fields)}


def rule(**fields: object) -> Object:
    return with_field(
        type="object",
        properties={"b": {"type": "string"}, "c.d": {"type": "string"}},
        **{"x-kubernetes-validations": [{"rule": "true", **fields}]},
    )


V0 = f"{A}.x-kubernetes-validations[0]"

CASES: list[tuple[str, Object, list[str]]] = [
    (
        "type unknown",
        with_field(type="text"),
        [
            f'{A}.type: Unsupported value: "text": supported values: '
            '"array", "boolean", "integer", "number", "object", "string"'
        ],
    ),
    (
        "type null",
        with_field(type="null"),
        [
            f'{A}.type: Unsupported value: "null": supported values: '
            '"array", "boolean", "integer", "number", "object", "string"',
            f"{A}.type: Forbidden: type cannot be set to null, use nullable as an alternative",
        ],
    ),
    (
        "type missing",
        with_field(description="x"),
        [f"{A}.type: Required value: must not be empty for specified object fields"],
    ),
    (
        "unique items",
        with_field(type="array", items={"type": "string"}, uniqueItems=True),
        [
            f"{A}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
            "complexity becomes quadratic"
        ],
    ),
    (
        "reference",
        with_field(type="object", **{"$ref": "#/x"}),
        [f"{A}.$ref: Forbidden: $ref is not supported"],
    ),
    (
        "dialect: told only because nothing else is wrong",
        with_schema(**{"$schema": "http://json-schema.org/draft-04/schema#"}),
        [f"{ROOT}: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"],
    ),
    (
        "tuple",
        with_field(type="array", items=[{"type": "string"}]),
        [f"{A}.items: Forbidden: items must be a schema object and not an array"],
    ),
    (
        "items of another kind are no items",
        with_field(type="array", items="x"),
        [f"{A}.items: Required value: must be specified"],
    ),
    (
        "properties beside additionalProperties",
        with_field(
            type="object",
            properties={"b": {"type": "string"}},
            additionalProperties={"type": "string"},
        ),
        [
            f"{A}.additionalProperties: Forbidden: "
            "additionalProperties and properties are mutual exclusive"
        ],
    ),
    (
        "nullable root",
        with_schema(nullable=True),
        [f"{ROOT}.nullable: Forbidden: nullable cannot be true at the root"],
    ),
    (
        "default of kind",
        with_schema(properties={"kind": {"type": "string", "default": "Foo"}}),
        [f"{ROOT}.properties[kind].default: Forbidden: must not be set in top-level kind"],
    ),
    (
        "default of the wrong type",
        with_field(type="integer", default="x"),
        [f'{A}.default: Invalid value: "string":  in body must be of type integer: "string"'],
    ),
    (
        "map type of a string",
        with_field(type="string", **{"x-kubernetes-map-type": "flat"}),
        [
            f'{A}.type: Invalid value: "string": '
            "must be object if x-kubernetes-map-type is specified",
            f'{A}.x-kubernetes-map-type: Unsupported value: "flat": '
            'supported values: "atomic", "granular"',
        ],
    ),
    (
        "list type unknown",
        listed({"type": "string"}, "bag"),
        [
            f'{A}.x-kubernetes-list-type: Unsupported value: "bag": '
            'supported values: "atomic", "set", "map"'
        ],
    ),
    (
        "set of objects prints the list type",
        listed({"type": "object"}, "set"),
        [f"{A}.items.x-kubernetes-map-type: Invalid value: null: {SET_ITEM}"],
    ),
    (
        "keys without map",
        listed(item(k={"type": "string"}), "atomic", ["k"]),
        [
            f'{A}.x-kubernetes-list-type: Invalid value: "atomic": '
            "must be map if x-kubernetes-list-map-keys is non-empty"
        ],
    ),
    (
        "map without keys",
        listed(item(k={"type": "string"})),
        [f"{A}.x-kubernetes-list-map-keys: Required value: must not be empty {IS_MAP}"],
    ),
    (
        "map of strings",
        listed({"type": "string"}, keys=["k"]),
        [
            f'{A}.items.type: Invalid value: "string": '
            "must be object if parent array's x-kubernetes-list-type is map"
        ],
    ),
    (
        "keys unknown and twice",
        listed(item(k={"type": "string"}), keys=["k", "k", "z"]),
        [
            f'{A}.x-kubernetes-list-map-keys: Invalid value: ["k","k","z"]: '
            "must not contain duplicate entries",
            f'{A}.x-kubernetes-list-map-keys: Invalid value: ["k","k","z"]: '
            "entries must all be names of item properties",
        ],
    ),
    (
        "key that is no scalar shows the item's type",
        listed(item(k={"type": "object"}), keys=["k"]),
        [
            f'{A}.items.properties[k].type: Invalid value: "object": '
            "must be a scalar type if parent array's x-kubernetes-list-type is map"
        ],
    ),
    (
        "key optional and nullable",
        listed(
            {"type": "object", "properties": {"k": {"type": "string", "nullable": True}}},
            keys=["k"],
        ),
        [
            f"{A}.items.properties[k].default: Required value: "
            f"{MAP_KEY} must have a default or be a required property",
            f"{A}.items.properties[k].nullable: Forbidden: {MAP_KEY} cannot be nullable",
        ],
    ),
    (
        "nullable items of a set",
        listed({"type": "string", "nullable": True}, "set"),
        [f"{A}.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"],
    ),
    ("rule blank", rule(rule=" "), [f"{V0}.rule: Required value: rule is not specified"]),
    (
        "message blank",
        rule(message=" "),
        [f'{V0}.message: Invalid value: " ": must be non-empty if specified'],
    ),
    (
        "message broken",
        rule(message="a\nb"),
        [f'{V0}.message: Invalid value: "a\\nb": must not contain line breaks'],
    ),
    (
        "rule broken",
        rule(rule="true\n|| true"),
        [f"{V0}.message: Required value: message must be specified if rule contains line breaks"],
    ),
    (
        "message expression blank",
        rule(messageExpression=" "),
        [
            f"{V0}.messageExpression: Required value: "
            "messageExpression must be non-empty if specified"
        ],
    ),
    (
        "reason unknown",
        rule(reason="Bad"),
        [
            f'{V0}.reason: Unsupported value: "Bad": supported values: "FieldValueDuplicate", '
            '"FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'
        ],
    ),
    ("field path by key", rule(fieldPath="['c.d']"), []),
    (
        "field path to nowhere",
        rule(fieldPath=".q"),
        [f'{V0}.fieldPath: Invalid value: ".q": must be a valid path'],
    ),
]


@pytest.mark.parametrize(
    ("obj", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_broken_schema_earns_exactly_these_errors(obj: Object, expected: list[str]) -> None:
    assert problems(obj) == expected


def test_schemas_that_differ_are_reported_at_their_version() -> None:
    obj = crd(version("v1"), version("v2", {"type": "object", "nullable": True}))
    assert problems(obj) == [
        "spec.versions[1].schema.openAPIV3Schema.nullable: "
        "Forbidden: nullable cannot be true at the root"
    ]


def test_status_subresource_narrows_the_root() -> None:
    schema = {"type": "object", "maxProperties": 3, "description": "fine"}
    (found,) = problems(crd(version(schema=schema, subresources={"status": {}})))
    path, _, rest = found.partition(": ")
    assert path == ROOT
    assert rest.startswith('Invalid value: {"ID":"","Schema":"","Ref":null,"Description":"fine",')
    assert rest.endswith(
        ": only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum "
        "MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items "
        "Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed "
        "at the root of the schema if the status subresource is enabled"
    )


RuleCall = tuple[Structural, str, frozenset[str], bool]


class Recorder:
    """Stands in for the compiler: remembers its calls, complains where told."""

    def __init__(self, *complaints: str) -> None:
        self.calls: list[RuleCall] = []
        self._complaints = complaints

    def __call__(
        self,
        root: Structural,
        path: str,
        old_rules: frozenset[str],
        waived: bool,
        spoiled: Callable[[str], bool],
        /,
    ) -> list[FieldError]:
        self.calls.append((root, path, old_rules, waived))
        places = [f"{path}{where}" for where in self._complaints]
        return [forbidden(place, "bad rule") for place in places if not spoiled(place)]


def test_rules_are_compiled_in_sound_schemas_only() -> None:
    checker = Recorder()
    validate_create(created(rule()), check_rules=checker)
    assert [(call[1:]) for call in checker.calls] == [(ROOT, frozenset(), False)]

    for broken in (with_field(description="no type"), with_field(type="integer", default="x")):
        checker = Recorder()
        assert validate_create(created(broken), check_rules=checker)
        assert checker.calls == []


def test_a_rule_is_not_judged_where_the_schema_at_or_below_it_is_wrong() -> None:
    obj = with_schema(
        properties={
            "a": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "b": {"type": "string"},
        }
    )
    checker = Recorder("", ".properties[a]", ".properties[a].items", ".properties[b]")
    fields = [error.field for error in validate_create(created(obj), check_rules=checker)]
    sound = [f"{ROOT}.properties[a].items", f"{ROOT}.properties[b]"]
    assert fields == [f"{ROOT}.properties[a].uniqueItems", *sound]
