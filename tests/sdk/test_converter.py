from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest
import yaml

from instar.sdk import (
    BuiltConverter,
    ConversionError,
    Converter,
    ConverterDefinitionError,
    IncompleteConverter,
    load,
    move,
)
from instar.tools.sdk.yaml_rules import converter_from
from instar.wire.conversion import converter as seam
from instar.wire.conversion.failure import ConversionFailed


def _obj(version: str, **rest: Any) -> dict[str, Any]:
    frame = {"apiVersion": f"example.com/{version}", "kind": "Widget"}
    return {**frame, "metadata": {"name": "w", "namespace": "n", "uid": "u"}, **rest}


def _chain() -> Converter:
    widget = Converter("Widget", group="example.com")
    widget.between("v1", "v2", rules=[move("a", "b")])
    widget.between("v2", "v3", rules=[move("b", "c")])
    return widget


def test_steps_are_chained_where_there_is_no_direct_one() -> None:
    [result] = _chain().build().convert_all([_obj("v1", a=1)], "example.com/v3")

    assert result == _obj("v3", c=1)


def test_a_direct_step_is_preferred_over_a_longer_way() -> None:
    widget = _chain()

    @widget.convert("v1", "v3")
    def direct(obj: dict[str, Any]) -> dict[str, Any]:
        return {"direct": obj["a"]}

    [result] = widget.build().convert_all([_obj("v1", a=1)], "example.com/v3")

    assert result == _obj("v3", direct=1)


def test_an_incomplete_graph_lists_every_missing_pair() -> None:
    widget = Converter("Widget", group="example.com", versions=["v1", "v2", "v3"])
    widget.convert("v1", "v2")(lambda obj: obj)
    widget.convert("v2", "v3")(lambda obj: obj)

    with pytest.raises(IncompleteConverter) as caught:
        widget.build()

    assert set(caught.value.missing) == {("v2", "v1"), ("v3", "v1"), ("v3", "v2")}
    assert "v3 → v2" in str(caught.value)


def test_a_hub_needs_a_step_to_and_from_every_spoke() -> None:
    widget = Converter("Widget", group="example.com", hub="v2")
    widget.between("v1", "v2", rules=[])
    widget.convert("v3", "v2")(lambda obj: obj)

    with pytest.raises(IncompleteConverter) as caught:
        widget.build()

    assert caught.value.missing == (("v2", "v3"),)


@pytest.mark.parametrize("pair", [("v1", "v1"), ("v1", "v2")])
def test_a_step_to_itself_or_defined_twice_is_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(ConverterDefinitionError):
        _chain().convert(*pair)(lambda obj: obj)


def test_an_async_step_is_refused() -> None:
    async def step(obj: dict[str, Any]) -> dict[str, Any]:
        return obj

    with pytest.raises(ConverterDefinitionError, match="ordinary function"):
        Converter("Widget", group="g").convert("v1", "v2")(step)  # type: ignore[arg-type]


def test_the_input_is_never_changed_and_order_is_kept() -> None:
    objects = [_obj("v1", a=1), _obj("v3", c=2), _obj("v2", b=3)]
    before = copy.deepcopy(objects)

    results = _chain().build().convert_all(objects, "example.com/v3")

    assert objects == before
    assert [obj["c"] for obj in results] == [1, 2, 3]


def test_only_labels_and_annotations_of_the_metadata_may_change() -> None:
    widget = Converter("Widget", group="example.com")

    @widget.convert("v1", "v2")
    def up(obj: dict[str, Any]) -> None:
        obj["metadata"]["finalizers"] = ["mine"]
        obj["metadata"].setdefault("labels", {})["seen"] = "yes"

    widget.convert("v2", "v1")(lambda obj: obj)

    [result] = widget.build().convert_all([_obj("v1")], "example.com/v2")

    expected = _obj("v2")
    expected["metadata"]["labels"] = {"seen": "yes"}
    assert result == expected


def test_a_renamed_object_is_refused() -> None:
    widget = Converter("Widget", group="example.com")
    widget.convert("v1", "v2")(lambda obj: {"metadata": {**obj["metadata"], "name": "x"}})
    widget.convert("v2", "v1")(lambda obj: obj)

    with pytest.raises(ConversionError, match="n/w: must have the same name: w != x"):
        widget.build().convert_all([_obj("v1")], "example.com/v2")


def test_an_exception_is_reported_by_type_and_line_but_never_with_content() -> None:
    widget = Converter("Widget", group="example.com")

    @widget.convert("v1", "v2")
    def up(obj: dict[str, Any]) -> dict[str, Any]:
        raise KeyError(obj["password"])

    widget.convert("v2", "v1")(lambda obj: obj)

    with pytest.raises(ConversionError) as caught:
        widget.build().convert_all([_obj("v1", password="hunter2")], "example.com/v2")

    assert "n/w: the converter failed with KeyError at test_converter.py:" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("obj", "target", "message"),
    [
        (_obj("v1"), "example.com/v9", "'example.com/v9' is not a version of Widget"),
        (_obj("v9"), "example.com/v1", "from version 'example.com/v9'"),
        ({**_obj("v1"), "kind": "Other"}, "example.com/v2", "expected objects of kind Widget"),
        ("text", "example.com/v1", "not an object"),
        ({**_obj("v1"), "metadata": None}, "example.com/v2", "without metadata"),
    ],
)
def test_wrong_objects_are_conversion_errors(obj: Any, target: str, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        _chain().build().convert_owned([obj], target)


@pytest.mark.anyio
async def test_a_built_converter_is_an_in_process_converter() -> None:
    built: seam.VersionConverter = _chain().build()

    assert await built.convert([_obj("v1", a=1)], "example.com/v2") == [_obj("v2", b=1)]
    with pytest.raises(ConversionFailed, match=r"conversion webhook for example.com/v9, Kind=W"):
        await built.convert([_obj("v9")], "example.com/v1")


@dataclasses.dataclass
class DataSpec:
    host: str | None = None
    ports: list[int] | None = None


@dataclasses.dataclass
class DataOld:
    spec: DataSpec | None = None


class PydanticNew(pydantic.BaseModel):
    address: str | None = None
    ports: list[int] = []


class StructNew(msgspec.Struct, omit_defaults=True):
    address: str | None = None
    ports: list[int] | None = None


@pytest.mark.parametrize("new", [PydanticNew, StructNew])
def test_typed_steps_keep_absent_fields_absent(new: Any) -> None:
    widget = Converter("Widget", group="example.com")
    widget.model("v1", DataOld)
    widget.model("v2", new)

    @widget.convert_typed("v1", "v2")
    def up(old: DataOld) -> Any:
        return new(address=old.spec.host) if old.spec and old.spec.host else new()

    @widget.convert_typed("v2", "v1")
    def down(obj: Any) -> DataOld:
        return DataOld(DataSpec(host=obj.address)) if obj.address else DataOld()

    built = widget.build()
    up_full = built.convert_all([_obj("v1", spec={"host": "h"})], "example.com/v2")
    up_part = built.convert_all([_obj("v1")], "example.com/v2")
    down_full = built.convert_all([_obj("v2", address="h")], "example.com/v1")

    assert up_full == [_obj("v2", address="h")]
    assert up_part == [_obj("v2")]
    assert down_full == [_obj("v1", spec={"host": "h"})]


@pytest.mark.parametrize("new", [PydanticNew, StructNew, DataOld])
def test_typed_steps_refuse_what_does_not_fit_without_quoting_it(new: Any) -> None:
    widget = Converter("Widget", group="example.com")
    widget.model("v1", new)
    widget.model("v2", DataOld)
    widget.convert_typed("v1", "v2")(lambda obj: DataOld())
    widget.convert_typed("v2", "v1")(lambda obj: new())
    wrong = _obj("v1", spec="secret") if new is DataOld else _obj("v1", address={"x": "secret"})

    with pytest.raises(ConversionError) as caught:
        widget.build().convert_all([wrong], "example.com/v2")

    assert "secret" not in str(caught.value)


DOCUMENT = """
conversion: instar/v1
group: example.com
kind: Widget
hub: v2
pairs:
  - between: [v1, v2]
    rules:
      - split: {path: hostPort, template: "{host}:{port:int}"}
      - enum: {old: mode, mapping: {A: alpha}}
      - lossy: {path: spec.gone, reason: unused}
"""


def test_yaml_rules_make_the_same_converter(tmp_path: Path) -> None:
    path = tmp_path / "conversion.yaml"
    path.write_text(DOCUMENT)

    built = load(str(path))

    [result] = built.convert_all([_obj("v1", hostPort="h:1", mode="A")], "example.com/v2")
    assert result == _obj("v2", host="h", port=1, mode="alpha")
    assert [loss.reason for loss in built.losses] == ["unused"]


def test_yaml_rules_tell_true_from_its_text(tmp_path: Path) -> None:
    path = tmp_path / "conversion.yaml"
    path.write_text(DOCUMENT.replace("{A: alpha}", '{true: alpha, "true": beta, 3: gamma}'))

    built = load(str(path))

    objects = [_obj("v1", hostPort="h:1", mode=mode) for mode in (True, "true", 3, "3")]
    found = built.convert_all(objects, "example.com/v2")
    assert [each["mode"] for each in found] == ["alpha", "beta", "gamma", "3"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"conversion": "other"}, "must say 'conversion: instar/v1'"),
        ({"nonsense": 1}, "unknown field nonsense"),
        ({"pairs": None}, "pairs must be a list"),
        ({"pairs": [{"between": ["v1"]}]}, "must name two versions"),
        ({"pairs": [{"between": ["v1", "v2"], "rules": [{"mov": {}}]}]}, "exactly one of move"),
        (
            {"pairs": [{"between": ["v1", "v2"], "rules": [{"move": {"old": "a"}}]}]},
            r"rules\[0\].move needs 'new'",
        ),
        (
            {"pairs": [{"between": ["v1", "v2"], "rules": [{"keep": {"path": "a", "x": 1}}]}]},
            "has no field 'x'",
        ),
        (
            {"pairs": [{"between": ["v1", "v2"], "rules": [{"keep": {"path": "a..b"}}]}]},
            "not a path",
        ),
        (
            {
                "pairs": [
                    {
                        "between": ["v1", "v2"],
                        "rules": [{"keep": {"path": "a", "side": "left"}}],
                    }
                ]
            },
            "must be one of old, new",
        ),
    ],
)
def test_yaml_mistakes_are_located(change: dict[str, Any], message: str) -> None:
    document = {**yaml.safe_load(DOCUMENT), **change}

    with pytest.raises(ConverterDefinitionError, match=message):
        converter_from(document)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nothing", "neither package.module:converter nor a .yaml file"),
        ("no_such_module:x", "there is no module"),
        ("json:dumps", "a function, not an instar.sdk.Converter"),
        ("json:absent", "has no attribute 'absent'"),
        ("/absent/conversion.yaml", "No such file"),
    ],
)
def test_load_says_what_it_did_not_find(spec: str, message: str) -> None:
    with pytest.raises(ConverterDefinitionError, match=message):
        load(spec)


def test_load_builds_a_converter_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_widgets.py").write_text(
        "from instar.sdk import Converter\n"
        "widget = Converter('Widget', group='example.com')\n"
        "widget.between('v1', 'v2', rules=[])\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    built = load("my_widgets:widget")

    assert isinstance(built, BuiltConverter)
    assert built.versions == ("v2", "v1")
