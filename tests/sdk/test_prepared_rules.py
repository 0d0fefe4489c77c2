"""What rules prepare once, so that an object costs little, must not change what they do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.json_values import copy_json
from instar.tools.sdk.errors import ConversionError
from instar.tools.sdk.paths import MISSING, Occupied, parse_path, pop, putter, scopes, taker
from instar.tools.sdk.rules import ConversionRule, move
from instar.tools.sdk.ruleset import RuleSet
from instar.tools.sdk.templates import Template

_NODES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(["text", 1, None, {}]),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(tuple)


@given(st.text(alphabet="ab:%\n", max_size=8))
def test_a_separator_splits_as_the_pattern_does(text: str) -> None:
    quick, pattern = Template("{a}:{b}"), Template("{a:(?:.*?)}:{b:(?:.*?)}")
    assert quick.split(text) == pattern.split(text)


def test_a_template_may_hold_percent_signs() -> None:
    template = Template("100% {a}%s{b:int}%%")
    assert template.join(["x", 5]) == "100% x%s5%%"
    assert template.split("100% x%s5%%") == ["x", 5]


@pytest.mark.parametrize("values", [["x", "5"], ["x", True], [1, 5], ["x", MISSING]])
def test_a_template_joins_only_parts_of_its_types(values: list[Any]) -> None:
    assert Template("{a}:{b:int}").join(values) is None


@given(st.dictionaries(st.sampled_from("abc"), _NODES), _FIELDS, st.integers(0, 2))
def test_a_prepared_take_is_a_pop(node: dict[str, Any], fields: Any, spare: int) -> None:
    spare = min(spare, len(fields) - 1)
    popped = copy_json(node)
    wanted = [pop(popped, fields, spare=spare)]
    assert taker([(fields, spare)])(node) == wanted
    assert node == popped


@given(st.dictionaries(st.sampled_from("abc"), _NODES), _FIELDS)
def test_a_value_put_at_a_path_is_found_there(node: dict[str, Any], fields: Any) -> None:
    before = copy_json(node)
    try:
        putter([(fields, 0)])(node, ["new"])
    except Occupied:
        return
    assert pop(node, fields, spare=len(fields)) == "new"
    assert pop(before, fields, spare=0) is MISSING


def test_items_are_named_as_they_were_when_the_rule_met_them() -> None:
    path = parse_path("spec.list[name=*].map[*].positions[*].field")
    item = {"name": {"odd": 1}, "map": {"a.b": {"positions": [{"field": 1}]}}}
    (scope,) = scopes({"spec": {"list": [item]}}, path.scope)
    item["name"]["odd"] = 2  # type: ignore[index]
    assert scope.where == 'spec.list[name={"odd": 1}].map["a.b"].positions[0]'
    assert scope.by_position


def test_a_value_in_the_way_is_named_with_its_whole_path() -> None:
    rules = RuleSet("v1", "v2", [move("items[name=*].a", "items[name=*].b.c")])
    obj = {"metadata": {}, "items": [{"name": "x", "a": 1, "b": "text"}]}
    with pytest.raises(ConversionError) as caught:
        rules.there(obj)
    assert str(caught.value).startswith('items[name="x"].b is not an object')


def test_a_rule_that_returns_too_many_values_is_refused() -> None:
    rule = ConversionRule(
        name="odd",
        old=(parse_path("a"),),
        new=(parse_path("b"),),
        there=lambda values: [*values, 1],
        back=list,
    )
    with pytest.raises(ValueError):
        RuleSet("v1", "v2", [rule]).there({"metadata": {}, "a": 1})
