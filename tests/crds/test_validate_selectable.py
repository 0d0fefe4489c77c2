"""Selectable fields of a CRD."""

from __future__ import annotations

import pytest

from instar.base.json_values import Object
from tests.crds.make import problems
from tests.support.crds import crd, version


def selectable(*paths: str) -> Object:
    schema = {
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": {
                "type": "object",
                "properties": {
                    **{f"f{n}": {"type": "string"} for n in range(9)},
                    "o": {"type": "object"},
                    "m": {"type": "object", "additionalProperties": {"type": "integer"}},
                },
            },
        },
    }
    return crd(version(schema=schema, selectableFields=[{"jsonPath": path} for path in paths]))


WRONG_TYPE = (
    "must point to a field of type string, boolean or integer. "
    "Enum string fields and strings with formats are allowed."
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.f0", None),
        (".spec.m.anything", None),
        ("", "Required value"),
        ("spec", 'Invalid value: "spec": is an invalid path: expected [ or . but got: spec'),
        (".spec.", 'Invalid value: ".spec.": is an invalid path: unexpected end of JSON path'),
        (".x", 'Invalid value: ".x": is an invalid path: does not refer to a valid field'),
        (
            ".spec['f0']",
            "Invalid value: \".spec['f0']\": is an invalid path: array notation is not allowed",
        ),
        (
            ".metadata.name",
            'Invalid value: ".metadata.name": must not point to fields in metadata',
        ),
        (".spec.o", f'Invalid value: ".spec.o": {WRONG_TYPE}'),
    ],
)
def test_selectable_field_must_name_a_scalar(path: str, expected: str | None) -> None:
    found = problems(selectable(path))
    assert found == ([] if expected is None else [f"spec.selectableFields[0].jsonPath: {expected}"])


def test_selectable_fields_are_unique_and_at_most_eight() -> None:
    assert problems(selectable(".spec.f0", ".spec.f0")) == [
        'spec.selectableFields[1].jsonPath: Duplicate value: ".spec.f0"'
    ]
    assert problems(selectable(*(f".spec.f{n}" for n in range(9)))) == [
        "spec.selectableFields: Too many: 9: must have at most 8 items"
    ]


def test_shared_selectable_fields_need_a_shared_schema() -> None:
    one = {"type": "object", "properties": {"a": {"type": "string"}}}
    two = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    fields = [{"jsonPath": ".a"}]
    obj = crd(
        version("v1", one, selectableFields=fields), version("v2", two, selectableFields=fields)
    )
    assert problems(obj) == [
        'spec.selectableFields: Invalid value: "": '
        "may only be set when validations.schema is included"
    ]
