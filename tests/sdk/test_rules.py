from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.sdk import (
    ConversionError,
    ConversionRule,
    ConverterDefinitionError,
    constant,
    enum,
    join,
    keep,
    list_of_one,
    list_to_map,
    lossy,
    map_to_list,
    move,
    scale,
    split,
    wrap,
)
from instar.tools.sdk.kept_values import PREFIX
from instar.tools.sdk.ruleset import RuleSet

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def _there(obj: dict[str, Any], *rules: ConversionRule) -> dict[str, Any]:
    return RuleSet("v1", "v2", rules).there(_framed(obj))


def _back(obj: dict[str, Any], *rules: ConversionRule) -> dict[str, Any]:
    return RuleSet("v1", "v2", rules).back(_framed(obj))


def _framed(obj: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy({"metadata": {}, **obj})


def _plain(obj: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name != "metadata"}


def _kept(obj: dict[str, Any]) -> list[str]:
    return sorted(obj["metadata"].get("annotations", {}))


@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        (move("spec.a", "spec.b.c"), {"spec": {"a": 1}}, {"spec": {"b": {"c": 1}}}),
        (move("spec.a", "status.a"), {"spec": {"a": None}}, {"status": {"a": None}}),
        (wrap("spec.a", "value"), {"spec": {"a": [1]}}, {"spec": {"a": {"value": [1]}}}),
        (
            wrap("spec.a", "value", side="old"),
            {"spec": {"a": {"value": 2}}},
            {"spec": {"a": 2}},
        ),
        (
            split("hostPort", "{host}:{port:int}"),
            {"hostPort": "h:80"},
            {"host": "h", "port": 80},
        ),
        (join("{host}/{path}", "url"), {"host": "h", "path": "p/q"}, {"url": "h/p/q"}),
        (list_of_one("ip", "ips"), {"ip": "a"}, {"ips": ["a"]}),
        (enum("mode", {"A": "alpha", "B": "beta"}), {"mode": "A"}, {"mode": "alpha"}),
        (enum("mode", {"A": "alpha"}, "kind2"), {"mode": "C"}, {"kind2": "C"}),
        (scale("seconds", "millis", 1000), {"seconds": 3}, {"millis": 3000}),
        (
            list_to_map("env", "env", key="name"),
            {"env": [{"name": "a", "v": 1}, {"name": "b"}]},
            {"env": {"a": {"v": 1}, "b": {}}},
        ),
        (
            map_to_list("env", "list", key="id"),
            {"env": {"x": {"v": 1}}},
            {"list": [{"id": "x", "v": 1}]},
        ),
        (constant("spec.mode", "x"), {"spec": {}}, {"spec": {"mode": "x"}}),
        (move('m["a.b"]', "n"), {"m": {"a.b": 1}}, {"n": 1}),
        (
            move("items[*].a", "items[*].b"),
            {"items": [{"a": 1}, {}, {"a": 2}]},
            {"items": [{"b": 1}, {}, {"b": 2}]},
        ),
        (
            scale("map[*].s", "map[*].ms", 1000),
            {"map": {"one": {"s": 1}, "two": {"s": 2}}},
            {"map": {"one": {"ms": 1000}, "two": {"ms": 2000}}},
        ),
    ],
)
def test_a_rule_converts_both_ways_without_keeping_anything(
    rule: ConversionRule, old: dict[str, Any], new: dict[str, Any]
) -> None:
    there, back = _there(old, rule), _back(new, rule)

    assert (_plain(there), _kept(there)) == (new, [])
    assert (_plain(back), _kept(back)) == (old, [])


ONE_OF_EACH = (
    move("a", "b.c"),
    split("text", "{left}-{right}", unmatched="keep"),
    list_of_one("one", "many"),
    enum("word", {"x": "y", "y": "z"}),
    scale("small", "large", 60),
    list_to_map("list", "map", key="name"),
    constant("new", 1),
    keep("only", side="old"),
    keep("solely"),
)
OLD = st.fixed_dictionaries(
    {},
    optional={
        "a": JSON,
        "b": st.just({}),
        "text": st.text("ab-", max_size=5),
        "one": JSON,
        "word": st.sampled_from("wxyz"),
        "small": st.integers(-99, 99) | st.floats(-9, 9) | st.booleans(),
        "list": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from("abc"), "v": JSON}),
            unique_by=lambda item: str(item["name"]),
        ),
        "only": JSON,
    },
)
NEW = st.fixed_dictionaries(
    {},
    optional={
        "b": st.fixed_dictionaries({}, optional={"c": JSON, "d": JSON}),
        "left": st.text("ab-", max_size=3),
        "right": st.text("ab-", max_size=3),
        "many": st.lists(JSON, max_size=3),
        "word": st.sampled_from("wxyz"),
        "large": st.integers(-999, 999),
        "map": st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.just("v"), JSON)),
        "new": JSON,
        "solely": JSON,
    },
)


@given(OLD)
def test_old_to_new_to_old_is_exact(obj: dict[str, Any]) -> None:
    rules = RuleSet("v1", "v2", ONE_OF_EACH)

    result = rules.back(rules.there(_framed(obj)))

    assert _bytes(result) == _bytes(_framed(obj))


@given(NEW)
def test_new_to_old_to_new_is_exact(obj: dict[str, Any]) -> None:
    rules = RuleSet("v1", "v2", ONE_OF_EACH)

    result = rules.there(rules.back(_framed(obj)))

    assert _bytes(result) == _bytes(_framed(obj))


def _bytes(obj: dict[str, Any]) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)


def test_values_that_do_not_fit_are_kept_while_untouched() -> None:
    rule = scale("seconds", "millis", 1000)

    seen = _back({"millis": 1500}, rule)

    assert (seen["seconds"], _kept(seen)) == (1, [PREFIX + "v2"])
    assert _plain(_there(seen, rule)) == {"millis": 1500}


def test_an_edit_wins_over_what_was_kept() -> None:
    rule = scale("seconds", "millis", 1000)
    seen = _back({"millis": 1500}, rule)

    result = _there({**seen, "seconds": 7}, rule)

    assert _plain(result) == {"millis": 7000}
    assert _kept(result) == []


def test_a_removed_field_is_not_restored() -> None:
    rule = list_of_one("ip", "ips")
    seen = _back({"ips": ["a", "b"]}, rule)
    del seen["ip"]

    assert _plain(_there(seen, rule)) == {}


def test_kept_values_follow_keyed_items_and_not_positions() -> None:
    rule = scale("items[name=*].s", "items[name=*].ms", 1000)
    seen = _back({"items": [{"name": "a", "ms": 1500}, {"name": "b", "ms": 2500}]}, rule)
    seen["items"].reverse()

    items = _there(seen, rule)["items"]

    assert items == [{"name": "b", "ms": 2500}, {"name": "a", "ms": 1500}]


def test_kept_values_of_unkeyed_items_are_dropped_when_the_item_changed() -> None:
    rule = scale("items[*].s", "items[*].ms", 1000)
    seen = _back({"items": [{"x": 1, "ms": 1500}, {"x": 2, "ms": 1700}]}, rule)
    seen["items"].reverse()

    items = _there(seen, rule)["items"]

    assert items == [{"x": 2, "ms": 1000}, {"x": 1, "ms": 1000}]


def test_only_the_order_of_a_list_is_kept_and_it_survives_edits() -> None:
    rule = list_to_map("env", "env", key="name")
    seen = _there({"env": [{"name": "b"}, {"name": "c"}, {"name": "a"}]}, rule)
    seen["env"]["0"] = {}
    seen["env"]["c"] = {"v": 1}
    del seen["env"]["b"]

    kept = seen["metadata"]["annotations"][PREFIX + "v1"]
    assert orjson.loads(kept) == {"env": {"order": ["b", "c", "a"]}}
    assert _back(seen, rule)["env"] == [{"name": "c", "v": 1}, {"name": "a"}, {"name": "0"}]


def test_a_part_of_the_parts_is_kept_rather_than_guessed() -> None:
    rule = split("hostPort", "{host}:{port}")

    seen = _back({"host": "h"}, rule)

    assert "hostPort" not in seen
    assert _plain(_there(seen, rule)) == {"host": "h"}


def test_an_unparsable_string_is_an_error_that_names_the_field_and_not_the_value() -> None:
    with pytest.raises(ConversionError) as caught:
        _there({"hostPort": "secret"}, split("hostPort", "{host}:{port}"))

    assert str(caught.value) == "hostPort could not be parsed as {host}:{port}"


def test_lossy_drops_and_says_why() -> None:
    rule = lossy("spec.gone", "nobody used it")

    assert _there({"spec": {}}, rule)["spec"] == {}
    assert _back({"spec": {"gone": 1}}, rule) == {"spec": {}, "metadata": {}}
    [loss] = RuleSet("v1", "v2", (rule,)).losses()
    assert (loss.version, loss.path, loss.reason) == ("v2", "spec.gone", "nobody used it")


def test_an_occupied_target_is_an_error_and_not_overwritten() -> None:
    with pytest.raises(ConversionError, match=r"spec\.b is already there"):
        _there({"spec": {"a": 1, "b": 2}}, move("spec.a", "spec.b"))


def test_constants_are_not_invented_where_their_parent_is_absent() -> None:
    assert _plain(_there({}, constant("spec.mode", "x"))) == {}


def test_damaged_annotations_are_ignored() -> None:
    obj = {"seconds": 1, "metadata": {"annotations": {PREFIX + "v2": "{not json"}}}

    assert _plain(_there(obj, scale("seconds", "millis", 1000))) == {"millis": 1000}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: move("a..b", "c"), "not a path"),
        (lambda: move("a[*]", "c"), "names no field"),
        (lambda: move("a[*].b", "c"), "must name the same list"),
        (lambda: enum("a", {"x": 1, "y": 1}), "two values"),
        (lambda: scale("a", "b", 0), "positive"),
        (lambda: split("a", "nothing"), "no {part}"),
        (lambda: split("a", "{b"), "never closed"),
        (lambda: split("a", "{b:(x)}"), r"\(\?:…\)"),
    ],
)
def test_a_wrong_rule_is_refused_when_written(make: Any, message: str) -> None:
    with pytest.raises(ConverterDefinitionError, match=message):
        make()
