"""Strategic merge patches by rule."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.errors import ApiError, BadRequest, Invalid, Unclassified
from instar.base.json_values import copy_json
from instar.kube.facts.types import schema_of
from instar.kube.patches.strategic_patch import strategic_merge
from tests.support.counting import calls_of

MERGED_BY_NAME = {
    "type": "array",
    "items": {"title": "Item", "properties": {"name": {}, "value": {}, "tags": {"type": "array"}}},
    "x-kubernetes-patch-strategy": "merge",
    "x-kubernetes-patch-merge-key": "name",
}
THING = {
    "title": "Thing",
    "properties": {
        "items": MERGED_BY_NAME,
        "words": {"type": "array", "x-kubernetes-patch-strategy": "merge"},
        "plain": {"type": "array"},
        "size": {"type": "integer"},
        "chosen": {"title": "Choice", "properties": {"a": {}, "b": {}}},
        "whole": {"title": "Choice", "properties": {}, "x-kubernetes-patch-strategy": "replace"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "raw": {"title": "RawExtension", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def merged(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    return strategic_merge(target, patch, THING)


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def test_maps_merge_and_null_removes() -> None:
    found = merged({"labels": {"a": "1", "b": "2"}, "size": 1}, {"labels": {"a": None, "c": "3"}})
    assert found == {"labels": {"b": "2", "c": "3"}, "size": 1}


def test_values_outside_of_the_patch_are_the_same_objects() -> None:
    target = {"labels": {"a": "1"}, "items": named("a")}
    assert merged(target, {"size": 1})["items"] is target["items"]


def test_lists_without_a_strategy_are_replaced() -> None:
    assert merged({"plain": [1, 2]}, {"plain": [3]}) == {"plain": [3]}


def test_items_merge_by_their_key() -> None:
    target = {"items": [{"name": "a", "value": 1}, {"name": "b", "value": 2}]}
    patch = {"items": [{"name": "b", "value": 3, "tags": ["x"]}, {"name": "c"}]}
    assert merged(target, patch)["items"] == [
        {"name": "a", "value": 1},
        {"name": "b", "value": 3, "tags": ["x"]},
        {"name": "c"},
    ]


@pytest.mark.parametrize(
    ("server", "patch", "order"),
    [
        ("abc", "x", "xabc"),
        ("abc", "bx", "abxc"),
        ("abc", "xb", "xabc"),
        ("abc", "ca", "bca"),
        ("abc", "cba", "cba"),
        ("", "ab", "ab"),
    ],
)
def test_new_items_go_before_what_remains_of_the_servers(
    server: str, patch: str, order: str
) -> None:
    found = merged({"items": named(*server)}, {"items": named(*patch)})
    assert [item["name"] for item in found["items"]] == list(order)
    words = merged({"words": list(server)}, {"words": list(patch)})
    assert words["words"] == list(order)


def test_the_first_of_several_with_one_key_is_merged() -> None:
    target = {"items": [{"name": "a", "value": 1}, {"name": "a", "value": 2}]}
    found = merged(target, {"items": [{"name": "a", "value": 3}]})
    assert [item["value"] for item in found["items"]] == [3, 2]


def test_a_key_given_twice_in_the_patch_merges_with_itself() -> None:
    patch = {"items": [{"name": "a", "value": 1}, {"name": "a", "tags": []}]}
    found = merged({"items": named("b")}, patch)
    assert found["items"] == [{"name": "a", "value": 1, "tags": []}, {"name": "b"}]


def test_numbers_booleans_and_floats_are_different_keys() -> None:
    target = {"items": [{"name": 1}, {"name": True}]}
    found = merged(target, {"items": [{"name": 1.0, "value": "f"}]})
    assert len(found["items"]) == 3


def test_delete_and_replace_directives_of_items() -> None:
    target = {"items": named("a", "b", "a")}
    assert merged(target, {"items": [{"name": "a", "$patch": "delete"}]})["items"] == named("b")
    unknown = {"items": [{"name": "z", "$patch": "delete"}]}
    assert merged({"items": named("a", "b")}, unknown)["items"] == named("a", "b")
    replaced = merged(target, {"items": [{"$patch": "replace"}, {"name": "c"}]})
    assert replaced["items"] == named("c")
    assert merged(target, {"items": [{"$patch": "replace"}]})["items"] == []


def test_directives_of_maps() -> None:
    target = {"chosen": {"a": 1}, "size": 1}
    assert merged(target, {"chosen": {"$patch": "replace", "b": 2}})["chosen"] == {"b": 2}
    assert merged(target, {"chosen": {"$patch": "delete"}})["chosen"] == {}
    assert merged(target, {"$patch": "replace", "size": 2}) == {"size": 2}


def test_a_strategy_may_be_to_replace_a_map() -> None:
    assert merged({"whole": {"a": 1}}, {"whole": {"b": 2}}) == {"whole": {"b": 2}}


def test_retained_keys() -> None:
    patch = {"chosen": {"$retainKeys": ["b"], "b": 2, "a": None}}
    assert merged({"chosen": {"a": 1}}, patch) == {"chosen": {"b": 2}}


def test_a_patch_of_what_was_not_there_brings_no_nulls_and_no_directives() -> None:
    patch = {
        "chosen": {"a": None, "b": {"c": None, "d": 1}, "e": {"$patch": "delete"}},
        "items": [{"name": "a"}, {"name": "b", "$patch": "delete"}],
        "labels": {"$patch": "delete"},
    }
    assert merged({}, patch) == {"chosen": {"b": {"d": 1}}, "items": [{"name": "a"}]}


def test_values_are_taken_from_a_list_of_primitives() -> None:
    target = {"words": ["a", "b", "c"]}
    patch = {"$deleteFromPrimitiveList/words": ["a", "z"], "$setElementOrder/words": ["c", "b"]}
    assert merged(target, patch) == {"words": ["c", "b"]}
    assert merged({}, {"$deleteFromPrimitiveList/words": ["a"]}) == {}


def test_the_order_can_be_set_with_and_without_a_patch_of_the_list() -> None:
    target = {"items": named("a", "b", "c")}
    only_order = {"$setElementOrder/items": named("c", "a")}
    assert merged(target, only_order)["items"] == named("b", "c", "a")
    patch = {"$setElementOrder/items": named("d", "a"), "items": named("d")}
    assert merged(target, patch)["items"] == named("d", "a", "b", "c")
    assert merged({}, patch)["items"] == named("d")
    assert merged({}, only_order) == {}


def test_an_order_of_scalars_that_names_missing_ones_is_ignored() -> None:
    patch = {"$setElementOrder/words": [["b"], {"a": 1}, None, 1, "b"]}
    assert merged({"words": ["a", "b"]}, patch) == {"words": ["a", "b"]}


@pytest.mark.parametrize(
    ("patch", "error", "text"),
    [
        (
            {"items": [{"value": 1}]},
            Unclassified,
            "map: map[value:1] does not contain declared merge key: name",
        ),
        (
            {"items": [{"$patch": "delete"}]},
            Unclassified,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            {"items": [{"name": "a", "$patch": "merge"}]},
            Unclassified,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            {"chosen": {"$patch": "frob"}},
            Unclassified,
            "unknown patch type: frob in map: map[$patch:frob]",
        ),
        (
            {"items": ["a"]},
            Unclassified,
            "list element types are not identical: [[map[name:a]] [a]]",
        ),
        ({"words": [["a"]]}, Unclassified, "list element types are not identical: [[w] [[a]]]"),
        ({"chosen": {"$retainKeys": "a"}}, BadRequest, "invalid patch format of retainKeys"),
        (
            {"chosen": {"$retainKeys": ["a"], "b": 1}},
            BadRequest,
            "invalid patch format of retainKeys",
        ),
        ({"$setElementOrder": []}, BadRequest, "invalid patch format of setElementOrder list"),
        (
            {"$deleteFromPrimitiveListX/words": []},
            BadRequest,
            "invalid patch format of primitive list",
        ),
        (
            {"$setElementOrder/words": "a"},
            Unclassified,
            "expected a []interface {}, but received a string",
        ),
        (
            {"$setElementOrder/words": [], "words": None},
            Unclassified,
            "expected a []interface {}, but received a %!s(<nil>)",
        ),
        (
            {"$setElementOrder/items": ["a"]},
            Unclassified,
            "expected a map[string]interface {}, but received a string",
        ),
        (
            {"$setElementOrder/words": ["a", "b"], "words": ["b", "a"]},
            Unclassified,
            "The order in patch list:\n[b a]\n doesn't match $setElementOrder list:\n[a b]\n",
        ),
        (
            {"$setElementOrder/nothing": []},
            Unclassified,
            'unable to find api field in struct Thing for the json field "nothing"',
        ),
        (
            {"$setElementOrder/size": []},
            Unclassified,
            "expected slice or array type, but got: struct",
        ),
        (
            {"raw": {"x": {"z": 2}}},
            Unclassified,
            'unable to find api field in struct RawExtension for the json field "x"',
        ),
    ],
)
def test_refusals(patch: dict[str, Any], error: type[ApiError], text: str) -> None:
    target = {
        "items": named("a"),
        "words": ["w"],
        "chosen": {"a": 1},
        "raw": {"x": {"y": 1}},
    }
    with pytest.raises(error) as caught:
        merged(target, patch)
    assert type(caught.value) is error
    assert caught.value.message == text


def test_lists_of_lists() -> None:
    with pytest.raises(Invalid):
        merged({"words": [["a"]]}, {"words": [["b"]]})


def test_long_lists_are_merged_in_one_pass() -> None:
    schema = schema_of("v1", "ConfigMap")
    assert schema is not None

    def merge(many: int) -> None:
        finalizers = [f"example.com/{number}" for number in range(10 * many)]
        owners = [{"uid": str(number), "name": "n"} for number in range(many)]
        target = {"metadata": {"finalizers": finalizers, "ownerReferences": owners}}
        patch = {
            "metadata": {
                "finalizers": finalizers[::-1],
                "$setElementOrder/finalizers": finalizers[::-1],
                "ownerReferences": [{"uid": owner["uid"], "name": "m"} for owner in owners[::-1]],
            }
        }
        found = strategic_merge(target, patch, schema)["metadata"]
        assert found["finalizers"] == finalizers[::-1]
        assert [owner["uid"] for owner in found["ownerReferences"]] == [
            owner["uid"] for owner in owners[::-1]
        ]

    merge(10)
    assert calls_of(lambda: merge(2_000)) < 11 * calls_of(lambda: merge(200))


SCALAR = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b", "$patch"])
NAMES = st.sampled_from(
    [
        *THING["properties"],
        "name",
        "$patch",
        "$retainKeys",
        "$setElementOrder/items",
        "$setElementOrder/words",
        "$deleteFromPrimitiveList/words",
    ]
)
ANYTHING = st.recursive(
    SCALAR | st.sampled_from(["delete", "replace"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)
ITEMS = st.lists(st.fixed_dictionaries({"name": st.sampled_from("abcd")}), max_size=4)


@given(
    st.dictionaries(NAMES.filter(lambda name: "$" not in name), ANYTHING, max_size=5),
    st.dictionaries(NAMES, ANYTHING, max_size=5),
)
def test_any_patch_of_anything_is_merged_or_refused_and_changes_no_argument(
    target: dict[str, Any], patch: dict[str, Any]
) -> None:
    kept = copy_json([target, patch])
    with suppress(ApiError):
        merged(target, patch)
    assert [target, patch] == kept


@given(ITEMS, ITEMS)
def test_a_merge_neither_loses_nor_adds_items(
    old: list[dict[str, str]], new: list[dict[str, str]]
) -> None:
    found = merged({"items": old}, {"items": new})["items"]
    assert {item["name"] for item in found} == {item["name"] for item in [*old, *new]}
    again = merged({"items": found}, {"items": new})["items"]
    assert again == found
