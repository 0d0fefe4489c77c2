"""How schemas become topology: what is one value, what is many, and who may be unknown."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.apply.compare import compare
from instar.kube.apply.field_set import text
from instar.kube.apply.owned_paths import owned_in_object, present_in_object
from instar.kube.apply.ownership_schema import TypedSchema, compile_schema
from instar.kube.apply.validate import problems_text, type_problems
from instar.kube.schema.structure.structural import Structural

STRING, INTEGER = Structural(type="string"), Structural(type="integer")


def spec(node: Structural) -> TypedSchema:
    return compile_schema(Structural(type="object", properties={"s": node}))


def owned(node: Structural, value: Any) -> str:
    return text(owned_in_object(spec(node), {"s": value}))


def problem(node: Structural, value: Any) -> str:
    found = type_problems(spec(node), {"s": value})
    return problems_text(found) if found else ""


@pytest.mark.parametrize(
    ("node", "value", "expected"),
    [
        (Structural(type="object", additional=STRING), {"a": "1"}, '{"f:s":{"f:a":{}}}'),
        (Structural(type="object", additional=STRING, map_type="atomic"), {"a": "1"}, "leaf"),
        (Structural(type="object", properties={"a": STRING}), {"a": "1"}, '{"f:s":{"f:a":{}}}'),
        (Structural(type="object"), {"a": {"b": [1]}}, '{"f:s":{"f:a":{".":{},"f:b":{}}}}'),
        (Structural(int_or_string=True), "10%", "leaf"),
        (Structural(preserve_unknown=True), {"a": 1}, '{"f:s":{"f:a":{}}}'),
        (Structural(preserve_unknown=True), [1], "leaf"),
        (Structural(type="array", items=STRING), ["a"], "leaf"),
        (
            Structural(type="array", items=STRING, list_type="set"),
            ["a", "<"],
            '{"f:s":{"v:\\"\\\\u003c\\"":{},"v:\\"a\\"":{}}}',
        ),
    ],
)
def test_claims_follow_the_schema(node: Structural, value: Any, expected: str) -> None:
    assert owned(node, value) == ('{"f:s":{}}' if expected == "leaf" else expected)


def test_known_fields_below_unknown_ones_keep_their_type() -> None:
    inner = Structural(type="object", properties={"n": INTEGER})
    node = Structural(type="object", preserve_unknown=True, properties={"known": inner})

    assert problem(node, {"other": {"x": [1]}, "known": {"n": 1, "also": 2}}) == ""
    assert problem(node, {"known": {"n": "x"}}) == (
        ".s.known.n: expected numeric (int or float), got string"
    )


def test_an_embedded_resource_has_object_metadata() -> None:
    node = Structural(type="object", embedded=True, properties={"spec": STRING})
    value = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "finalizers": ["f"]},
        "spec": "x",
    }

    assert problem(node, value) == ""
    assert problem(node, {"metadata": {"zzz": 1}}) == (
        ".s.metadata.zzz: field not declared in schema"
    )
    assert '"f:finalizers":{"v:\\"f\\"":{}},"f:name":{}' in owned(node, value)


def test_only_the_objects_own_identity_has_no_owner() -> None:
    schema = spec(Structural(type="object", embedded=True))
    old = {"metadata": {"uid": "1"}, "s": {"metadata": {"uid": "1"}}}
    new = {"metadata": {"uid": "2"}, "s": {"metadata": {"uid": "2"}}}

    found = compare(schema, old, new)

    assert text(found.modified) == '{"f:s":{"f:metadata":{"f:uid":{}}}}'


def test_an_item_without_any_key_cannot_be_identified() -> None:
    items = Structural(type="object", properties={"k": STRING})
    node = Structural(type="array", list_type="map", list_map_keys=("k",), items=items)

    assert problem(node, [{}]) == (
        ".s: element 0: associative list with keys has an element that omits all key fields "
        '["k"] (and doesn\'t have default values for any key fields)'
    )


def test_no_schema_means_everything_is_deduced() -> None:
    schema = compile_schema(None)
    obj = {"metadata": {"labels": {"a": "b"}}, "anything": {"x": [1]}}

    assert type_problems(schema, obj) == []
    assert text(present_in_object(schema, obj)) == (
        '{"f:anything":{".":{},"f:x":{}},"f:metadata":{"f:labels":{".":{},"f:a":{}}}}'
    )


@pytest.mark.parametrize(
    ("old", "new", "added", "modified", "removed"),
    [
        (1, {"a": 1}, '{"f:s":{"f:a":{}}}', '{"f:s":{}}', "{}"),
        ({"a": 1}, 1, "{}", '{"f:s":{}}', '{"f:s":{"f:a":{}}}'),
        (None, {"a": 1}, '{"f:s":{"f:a":{}}}', "{}", "{}"),
        ({}, None, "{}", '{"f:s":{}}', "{}"),
        ([1], [2], "{}", '{"f:s":{}}', "{}"),
        (True, 1, "{}", '{"f:s":{}}', "{}"),
        (1, 1.0, "{}", "{}", "{}"),
    ],
)
def test_a_place_may_change_its_kind(
    old: Any, new: Any, added: str, modified: str, removed: str
) -> None:
    found = compare(spec(Structural(preserve_unknown=True)), {"s": old}, {"s": new})

    assert [text(part) for part in found] == [added, modified, removed]


def test_numbers_are_named_alike_however_they_are_spelled() -> None:
    items = Structural(type="object", properties={"port": INTEGER})
    node = Structural(type="array", list_type="map", list_map_keys=("port",), items=items)

    assert owned(node, [{"port": 80.0}]) == owned(node, [{"port": 80}])
