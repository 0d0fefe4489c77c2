from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from instar.kube.schema.compiled import CompiledSchema, compile_schema
from instar.kube.schema.generation.objects import objects, values
from instar.kube.schema.structure.parse import structural
from instar.tools.sdk.checking.definition import crd_in
from tests.support.corpus import CORPUS
from tests.support.shared import demand_shared

SAMPLES = (
    "cert-manager/v1.5.0/crd-certificates.yaml",
    "cert-manager/v1.21.0/cert-manager.io_issuers.yaml",
    "flux-source/v1.3.0/source.toolkit.fluxcd.io_gitrepositories.yaml",
    "gateway-api/v1.3.0/gateway.networking.k8s.io_httproutes.yaml",
)


def _drawn(strategy: Any, examples: int = 40) -> list[Any]:
    found: list[Any] = []

    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @seeded(1)
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


def _invalid(compiled: CompiledSchema, obj: dict[str, Any]) -> list[str]:
    compiled.default(obj)
    errors = compiled.validate(obj) + compiled.list_type_errors(obj)
    return [str(error) for error in errors + compiled.embedded_errors(obj)]


@pytest.mark.parametrize("name", SAMPLES)
def test_objects_of_real_crds_are_nearly_all_valid(name: str) -> None:
    path = CORPUS / name
    demand_shared(path)
    crd = crd_in(path.read_text(), name)
    version = crd.versions[0]
    compiled = compile_schema(version.schema)
    strategy = objects(compiled.structural, api_version=f"{crd.group}/{version.name}", kind="X")

    made = _drawn(strategy)

    assert sum(bool(_invalid(compiled, obj)) for obj in made) <= len(made) * 0.1
    assert not any(compiled.prune_reporting(obj) for obj in made)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[a-z]{2,4}-[[:digit:]]+$", "maxLength": 6},
        {"type": "string", "minLength": 3, "maxLength": 3},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "integer", "minimum": 5, "maximum": 7, "exclusiveMaximum": True},
        {"type": "integer", "multipleOf": 5, "minimum": 1, "maximum": 20},
        {"type": "integer", "maximum": -(2**40), "format": "int64"},
        {"type": "number", "minimum": 0.5, "maximum": 0.75},
        {"type": "number", "minimum": 0, "maximum": 3},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 3},
        {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            "allOf": [{"properties": {"a": {"enum": ["x"]}}}],
        },
        *(
            {"type": "string", "format": name}
            for name in ("byte", "date", "date-time", "duration", "ipv4", "ipv6", "uri", "uuid")
        ),
    ],
    ids=str,
)
def test_values_fit_their_keywords(schema: dict[str, Any]) -> None:
    root = {"type": "object", "properties": {"x": schema}}
    compiled = compile_schema(root)

    made = _drawn(values(structural(schema)), 30)

    assert [value for value in made if _invalid(compiled, {"x": value})] == []


def test_sets_and_map_lists_have_no_duplicates() -> None:
    key = {"type": "string", "enum": ["a", "b"]}
    item = {"type": "object", "required": ["k"], "properties": {"k": key}}
    root = {
        "type": "object",
        "properties": {
            "set": {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": {"type": "string", "enum": ["a", "b"]},
            },
            "map": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": item,
            },
        },
    }
    compiled = compile_schema(root)

    made = _drawn(objects(compiled.structural, api_version="g/v1", kind="X"), 60)

    assert not [obj for obj in made if compiled.list_type_errors(obj)]
    assert any(len(obj.get("map", [])) == 2 for obj in made)


def test_nulls_unknown_fields_and_embedded_objects_occur() -> None:
    root = {
        "type": "object",
        "properties": {
            "null": {"type": "string", "nullable": True},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "inner": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
        },
    }
    compiled = compile_schema(root)

    made = _drawn(objects(compiled.structural, api_version="g/v1", kind="X"), 100)

    assert any(obj.get("null", "") is None for obj in made)
    assert any(obj.get("free") for obj in made)
    assert all(not compiled.embedded_errors(obj) for obj in made)
    assert any("inner" in obj for obj in made)


def test_every_field_of_a_wide_schema_is_reached() -> None:
    names = [f"field{number}" for number in range(40)]
    leaf = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    root = {"type": "object", "properties": {"spec": leaf}}

    made = _drawn(objects(structural(root), api_version="g/v1", kind="X"), 400)

    reached = {name for obj in made for name in obj.get("spec", {})}
    assert reached == set(names)


@given(st.data())
def test_generated_objects_have_the_requested_identity(data: Any) -> None:
    strategy = objects(structural({"type": "object"}), api_version="g/v1", kind="X")

    obj = data.draw(strategy)

    assert (obj["apiVersion"], obj["kind"]) == ("g/v1", "X")
    assert obj["metadata"]["name"]
