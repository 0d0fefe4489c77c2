"""Narrowings that hide: names, patterns, rules, and a storage version that lacks a field."""

from __future__ import annotations

from typing import Any

import pytest

from instar.base.json_values import Object
from instar.review import review
from instar.tools.reviewer.report import Finding
from tests.support.crds import crd, fields, version

GROUP = "example.com"


def _reviewed(old: Object, new: Object) -> list[Finding]:
    return list(review(old, new).findings)


def _crd(*versions: Object) -> Object:
    return crd(*versions, group=GROUP, plural="widgets", kind="Widget")


def _one(**properties: Any) -> Object:
    return _crd(version("v1", fields(**properties), storage=True))


SPEC: Object = fields(size={"type": "integer"})


@pytest.mark.parametrize("before", [None, {"type": "object"}], ids=["absent", "open"])
@pytest.mark.parametrize("name", ["name", "generateName"])
@pytest.mark.parametrize(
    "limit", [{"maxLength": 5}, {"pattern": "^a"}, {"minLength": 9}, {"enum": ["only"]}], ids=str
)
def test_the_first_limit_on_a_name_is_found(
    before: Object | None, name: str, limit: Object
) -> None:
    old = _one(spec=SPEC, **({} if before is None else {"metadata": before}))
    new = _one(
        spec=SPEC,
        metadata={"type": "object", "properties": {name: {"type": "string", **limit}}},
    )

    found = [each for each in _reviewed(old, new) if each.path == f"metadata.{name}"]

    assert [each.severity.name for each in found] == ["ERROR"]
    if name == "name":
        assert found[0].witness is not None


def test_metadata_without_constraints_is_not_a_finding() -> None:
    old, new = _one(spec=SPEC), _one(spec=SPEC, metadata={"type": "object"})

    assert not [each for each in _reviewed(old, new) if each.severity.name != "INFO"]


TEXT: Object = {"type": "string"}
NARROWED = [
    ("^[a-z]+$", "^[a-y]+$"),
    ("^[a-z]{1,63}$", "^[a-z]{1,62}$"),
    ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"),
    (r"^\d+(ms|s|m|h)$", r"^\d+(s|m|h)$"),
    ("^(a|b|c|qzx)$", "^(a|b|c)$"),
    ("z$", "^[a-y]*z$"),
]


@pytest.mark.parametrize(("old", "new"), NARROWED)
@pytest.mark.parametrize("place", ["value", "items", "map"])
def test_a_narrowed_pattern_has_a_witness(old: str, new: str, place: str) -> None:
    def schema(pattern: str) -> Object:
        text = {**TEXT, "pattern": pattern}
        if place == "items":
            return {"type": "array", "items": text}
        return {"type": "object", "additionalProperties": text} if place == "map" else text

    found = _reviewed(_one(spec=fields(x=schema(old))), _one(spec=fields(x=schema(new))))

    [broken] = [each for each in found if each.severity.name == "ERROR"]
    assert broken.witness is not None


@pytest.mark.parametrize(("old", "new"), NARROWED)
def test_a_narrowed_rule_that_matches_has_a_witness(old: str, new: str) -> None:
    def schema(pattern: str) -> Object:
        rule = "self.matches(r'" + pattern + "')"
        return {**TEXT, "maxLength": 99, "x-kubernetes-validations": [{"rule": rule}]}

    found = _reviewed(_one(spec=fields(x=schema(old))), _one(spec=fields(x=schema(new))))

    broken = [each for each in found if each.severity.name == "ERROR"]
    assert broken
    assert broken[0].witness is not None


def _two(storage: str, *, served: bool = True) -> Object:
    schemas = {
        "v1beta1": fields(spec=fields(size={"type": "integer"}, legacy=TEXT)),
        "v1": fields(spec=SPEC),
    }
    versions = [
        {**version(name, schema, storage=name == storage), "served": served or name == storage}
        for name, schema in schemas.items()
    ]
    return _crd(*versions)


@pytest.mark.parametrize("served", [True, False])
def test_a_storage_version_that_lacks_a_field_loses_it(served: bool) -> None:
    found = _reviewed(_two("v1beta1"), _two("v1", served=served))

    lost = [each for each in found if each.rule == "conversion-none-loses"]
    assert [each.path for each in lost] == ["spec.legacy"]
    assert lost[0].severity.name == "ERROR"
    assert (lost[0].witness is not None) == served  # unserved, nothing can be written there


def test_a_storage_version_that_has_every_field_loses_nothing() -> None:
    found = _reviewed(_two("v1"), _two("v1beta1"))

    assert not [each for each in found if each.rule == "conversion-none-loses"]
