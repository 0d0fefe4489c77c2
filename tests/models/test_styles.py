"""Every keyword in every style, with the names and values that make trouble."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from instar.base.json_values import Object
from instar.kube.crds.documents import read_definition
from instar.kube.models.crd_models import version_models
from instar.kube.models.modules import module_of, package_of
from instar.kube.models.patterns import plain_pattern
from instar.review import review
from instar.sdk import Converter
from tests.models.support import STYLES, comparable, crd, imported_text, there_and_back

TEXT = {"type": "string"}
EVERYTHING: Object = {
    "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}}},
    "spec": {
        "type": "object",
        "description": 'Ends in a "quote"',
        "required": ["from", "int", "defaulted", "nullable"],
        "minProperties": 1,
        "x-kubernetes-validations": [{"rule": 'self.size > 0 || self.text != "a\\nb"'}],
        "properties": {
            "from": {**TEXT, "description": "A keyword, and a back\\slash."},
            "class": {**TEXT, "default": "x"},
            "int": {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "multipleOf": 5},
            "list": {"type": "array", "maxItems": 3, "items": {**TEXT, "minLength": 1}},
            "odd-name": TEXT,
            "9lives": {"type": "boolean", "description": '"""'},
            "_private": TEXT,
            "__hidden": TEXT,
            "schema": {**TEXT, "pattern": r"^\d+$"},
            "model_dump": TEXT,
            "json": {"type": "number", "maximum": 1.5},
            "defaulted": {"type": "integer", "default": 3},
            "nullable": {**TEXT, "nullable": True},
            "maybe": {"type": "integer", "nullable": True, "format": "int64"},
            "either": {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%?$"},
            "any": {"x-kubernetes-preserve-unknown-fields": True},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "empty": {"type": "object"},
            "open": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"known": TEXT},
            },
            "embedded": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
            "modes": {"type": "string", "enum": ["a", "", "'b\""]},
            "numbers": {"type": "integer", "enum": [1, 2]},
            "floats": {"type": "number", "enum": [1.5]},
            "void": {"type": "string", "nullable": True, "enum": ["a", None]},
            "map": {
                "type": "object",
                "maxProperties": 4,
                "additionalProperties": {"type": "object", "properties": {"x": TEXT}},
            },
            "holes": {"type": "array", "items": {**TEXT, "nullable": True}},
            "group": {
                "type": "object",
                "default": {"inner": {"x": "y"}},
                "properties": {"inner": {"type": "object", "properties": {"x": TEXT}}},
                "oneOf": [{"required": ["inner"]}],
            },
            "groups": {
                "type": "array",
                "default": [{"inner": "z"}],
                "items": {"type": "object", "required": ["inner"], "properties": {"inner": TEXT}},
            },
            "text": {**TEXT, "description": "tabs\tand  spaces\n\n  indented\n"},
            "size": {"type": "integer", "format": "int32", "default": 1},
            "when": {**TEXT, "format": "date-time"},
            "strange": {**TEXT, "pattern": r"\pL{2}[[:alpha:]]\z"},
        },
    },
    "status": {"type": "object", "properties": {"spec": {"type": "object", "properties": {}}}},
}


@pytest.mark.parametrize("style", STYLES)
def test_every_keyword_survives(style: str, tmp_path: Path) -> None:
    raw = read_definition(crd(EVERYTHING)).raw

    again = there_and_back(raw, style, tmp_path)

    assert comparable(again) == comparable(raw)
    found = review(raw, again, witnesses=False).crds[0].findings
    assert {each.path for each in found} <= {"apiVersion", "kind"}  # described only afterwards


@pytest.mark.parametrize("style", STYLES)
def test_classes_of_different_versions_share_equal_parts(style: str, tmp_path: Path) -> None:
    given = crd({"spec": {"type": "object", "properties": {"ref": _ref(), "size": TEXT}}})
    old = {**given["spec"]["versions"][0], "name": "v1beta1", "storage": False}
    given["spec"]["versions"].append({**old, "schema": {"openAPIV3Schema": _root({"ref": _ref()})}})

    module = imported_text(module_of(list(version_models(given)), style), tmp_path)

    assert {"ThingV1", "ThingV1Beta1", "ThingV1Spec", "ThingV1Beta1Spec", "Ref"} <= set(
        vars(module)
    )
    assert "Ref2" not in vars(module)


def _ref() -> Object:
    return {"type": "object", "properties": {"name": TEXT}}


def _root(spec: Object) -> Object:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}


def test_a_package_has_a_module_per_version_and_one_for_what_they_share() -> None:
    files = package_of(list(version_models(crd(EVERYTHING))), "pydantic")

    assert set(files) == {"__init__.py", "meta.py", "things_v1.py"}
    assert "from .meta import ObjectMeta\n" in files["things_v1.py"]
    assert "class ObjectMeta" not in files["things_v1.py"]


def test_bounds_are_those_of_the_library(tmp_path: Path) -> None:
    made = {style: _module(style, tmp_path) for style in ("pydantic", "msgspec")}
    wrong = {"metadata": {}, "spec": {"from": "a", "int": 0, "nullable": None}}

    with pytest.raises(ValidationError, match="greater than 1"):
        made["pydantic"].Thing.model_validate(wrong)
    with pytest.raises(msgspec.ValidationError, match=">= 2"):
        msgspec.convert(wrong, made["msgspec"].Thing)


def test_defaults_are_filled_in_by_pydantic_and_never_written(tmp_path: Path) -> None:
    cls = _module("pydantic", tmp_path).Thing
    given = {"metadata": {}, "spec": {"from": "a", "int": 5, "nullable": None}}

    thing = cls.model_validate(given)

    assert (thing.spec.size, thing.spec.class_, thing.spec.group.inner.x) == (1, "x", "y")
    assert [each.inner for each in thing.spec.groups] == ["z"]
    assert thing.model_dump(by_alias=True, exclude_unset=True) == given


@pytest.mark.parametrize("style", STYLES)
def test_parts_convert_through_partial_models(style: str, tmp_path: Path) -> None:
    module = _module(style, tmp_path, partial=True)
    things = Converter("Thing", group="example.com")
    things.model("v1", module.Thing)
    things.model("v2", module.Thing)
    things.convert_typed("v1", "v2")(lambda old: old)
    things.convert_typed("v2", "v1")(lambda new: new)
    part = _thing({"from": "x", "int": 0, "modes": "unknown", "free": {"a": None}, "holes": []})

    converted = things.build().convert_all([part], "example.com/v2")

    expected = {**part, "apiVersion": "example.com/v2"}
    if style == "msgspec":  # which cannot tell null from absent
        expected["spec"] = {**part["spec"], "free": {}}
    assert converted == [expected]


def _thing(spec: Object) -> Object:
    head = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
    return {**head, "spec": spec}


def _module(style: str, folder: Path, *, partial: bool = False) -> Any:
    roots = list(version_models(read_definition(crd(EVERYTHING)).raw))
    return imported_text(module_of(roots, style, partial=partial), folder)


@pytest.mark.parametrize(
    ("pattern", "plain"),
    [
        (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", True),
        (r"^\d{1,3}(\.\d+)?$", True),
        (r"(?i)^a(?:b|c)$", True),
        (r"^\W$", False),
        (r"a{,3}", False),
        (r"x{", False),
        (r"[a&&b]", False),
        (r"[[:alpha:]]", False),
        (r"\pL", False),
        (r"(?s).", False),
        (r"[]a]", False),
        ("a\\", False),
    ],
)
def test_only_patterns_that_mean_the_same_everywhere_are_enforced(
    pattern: str, plain: bool
) -> None:
    assert plain_pattern(pattern) is plain
    if plain:
        re.compile(pattern)
