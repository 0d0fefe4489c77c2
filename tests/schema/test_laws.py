"""Laws that hold for every schema and every value."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, example, given
from hypothesis import strategies as st

from instar.base.json_values import copy_json
from instar.kube.schema.compiled import CompiledSchema, compile_schema
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural_rules import structural_errors
from instar.kube.schema.validation.ratchet import compile_comparable, unchanged

NEVER_FORGIVEN = ("apiVersion", "kind", "metadata")
NAMES = st.sampled_from(["a", "b", "c", "metadata", "kind"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


def leaf_schemas() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "number", "boolean"])},
        optional={
            "nullable": st.booleans(),
            "default": SCALARS,
            "maxLength": st.integers(0, 3),
            "minimum": st.integers(-3, 3),
            "pattern": st.sampled_from(["^a", "b$", "["]),
            "enum": st.lists(SCALARS, max_size=3),
            "format": st.sampled_from(["date", "int32", "uuid"]),
        },
    )


def parent_schemas(
    inner: st.SearchStrategy[dict[str, Any]],
) -> st.SearchStrategy[dict[str, Any]]:
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
        optional={
            "required": st.lists(NAMES, max_size=2),
            "default": OBJECTS,
            "x-kubernetes-preserve-unknown-fields": st.just(True),
            "x-kubernetes-embedded-resource": st.just(True),
            "anyOf": st.lists(st.fixed_dictionaries({"required": st.lists(NAMES)}), max_size=2),
        },
    )
    maps = st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner})
    arrays = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={
            "maxItems": st.integers(0, 2),
            "x-kubernetes-list-type": st.sampled_from(["set", "map", "atomic"]),
            "x-kubernetes-list-map-keys": st.lists(NAMES, max_size=1),
        },
    )
    return objects | maps | arrays


SCHEMAS = st.fixed_dictionaries(
    {
        "type": st.just("object"),
        "properties": st.dictionaries(
            NAMES, st.recursive(leaf_schemas(), parent_schemas, max_leaves=8), max_size=3
        ),
    }
)
COMPILED = SCHEMAS.map(compile_schema)


@given(COMPILED, OBJECTS)
def test_pruning_twice_changes_nothing_more(compiled: CompiledSchema, obj: dict[str, Any]) -> None:
    compiled.prune(obj)
    once = copy_json(obj)

    assert compiled.prune_reporting(obj) == []
    assert obj == once


@given(COMPILED, OBJECTS)
def test_pruning_reports_exactly_when_it_changes(
    compiled: CompiledSchema, obj: dict[str, Any]
) -> None:
    before = copy_json(obj)

    paths = compiled.prune_reporting(obj)

    assert bool(paths) == (obj != before)


NULL_IN_METADATA = compile_schema(
    {
        "type": "object",
        "properties": {
            "metadata": {
                "type": "array",
                "default": [{"a": None}],
                "items": {"type": "object", "properties": {"a": {"type": "string"}}},
            }
        },
    }
)


@given(COMPILED, OBJECTS)
@example(NULL_IN_METADATA, {})
def test_defaulting_twice_changes_nothing_more(
    compiled: CompiledSchema, obj: dict[str, Any]
) -> None:
    compiled.prune(obj)
    compiled.drop_nulls(obj)
    compiled.default(obj)
    once = copy_json(obj)

    compiled.drop_nulls(obj)
    compiled.default(obj)

    assert obj == once


@given(COMPILED, OBJECTS)
def test_an_unchanged_object_never_errs(compiled: CompiledSchema, obj: dict[str, Any]) -> None:
    """Where every key has a schema, and the object's own type and metadata aside."""
    compiled.prune(obj)
    obj = {name: item for name, item in obj.items() if name not in NEVER_FORGIVEN}
    comparable = compile_comparable(compiled.structural)
    assume(comparable is None or comparable(obj))

    assert unchanged(compiled.structural, obj, copy_json(obj))
    assert compiled.validate(obj, copy_json(obj)) == []
    assert compiled.list_type_errors(obj, copy_json(obj)) == []


@given(COMPILED, OBJECTS)
def test_an_old_value_only_ever_forgives(compiled: CompiledSchema, obj: dict[str, Any]) -> None:
    fresh = {str(error) for error in compiled.validate(obj)}
    ratcheted = {str(error) for error in compiled.validate(obj, {})}

    assert ratcheted <= fresh


@given(COMPILED, OBJECTS)
def test_lenient_coercion_never_fails(compiled: CompiledSchema, obj: dict[str, Any]) -> None:
    compiled.coerce_embedded(obj, lenient=True)

    assert compiled.coerce_embedded(obj, lenient=True) == []


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "type",
                "items",
                "properties",
                "anyOf",
                "default",
                "additionalProperties",
                "pattern",
                "enum",
                "required",
                "nullable",
                "not",
                "format",
                "x-kubernetes-validations",
                "maximum",
                "maxLength",
            ]
        ),
        VALUES,
    )
)
def test_any_dict_reads_as_a_schema(raw: dict[str, Any]) -> None:
    structural(raw)
    structural_errors(raw, "x")
    compile_schema(raw).validate({"a": 1})
