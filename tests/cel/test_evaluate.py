"""Rules on objects: which run, what they see, what their results become."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.schema.cel_rules import evaluate as module
from instar.kube.schema.cel_rules.defaults import default_rule_errors
from instar.kube.schema.cel_rules.evaluate import compile_rules
from instar.kube.schema.rule_engine import RuleCompiler
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural import Structural
from tests.cel.support import errors, program, spec, warnings


def ruled(schema: dict[str, Any], rule: str, **more: Any) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [{"rule": rule, **more}]}


def field(schema: dict[str, Any], rule: str, **more: Any) -> Structural:
    """``spec.f`` with a rule on it."""
    return spec({"f": ruled(schema, rule, **more)})


ITEMS = {"type": "array", "items": {"type": "integer"}}
OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
KEYED = {
    "type": "object",
    "properties": {"a": {"type": "object", "additionalProperties": {"type": "integer"}}},
}


def test_no_rules_no_program() -> None:
    assert compile_rules(spec({"f": {"type": "string"}})) is None


@pytest.mark.parametrize(
    ("schema", "value", "rule", "more", "expected"),
    [
        ({"type": "integer"}, 1, "self > 5", {}, "spec.f: Invalid value: 1: failed rule: self > 5"),
        ({"type": "string"}, "x", "self == 'y'", {"message": " m "},
         'spec.f: Invalid value: "x": m'),
        (OBJECT, {"a": 2, "b": 1}, "self.a <= self.b", {},
         "spec.f: Invalid value: failed rule: self.a <= self.b"),
        ({"type": "array", "items": {"type": "integer"}}, [1], "self.size() == 2", {"message": "m"},
         "spec.f: Invalid value: m"),
        (OBJECT, {}, "false", {"reason": "FieldValueForbidden", "message": "m"},
         "spec.f: Forbidden: m"),
        (OBJECT, {}, "false", {"reason": "FieldValueRequired", "message": "m"},
         "spec.f: Required value: m"),
        ({"type": "integer"}, 1, "false", {"reason": "FieldValueDuplicate", "message": "m"},
         "spec.f: Duplicate value: 1"),
        (OBJECT, {}, "false", {"reason": "FieldValueDuplicate", "message": "m"},
         "spec.f: Duplicate value"),
        ({"type": "integer"}, 1, "false", {"reason": "FieldValueInvalid", "message": "m"},
         "spec.f: Invalid value: 1: m"),
        (OBJECT, {}, "false", {"fieldPath": ".a", "message": "m"}, "spec.f.a: Invalid value: m"),
        (OBJECT, {}, "false", {"fieldPath": "['a']", "message": "m"},
         "spec.f.a: Invalid value: m"),
        (KEYED, {}, "false", {"fieldPath": ".a['x.y']", "message": "m"},
         "spec.f.a[x.y]: Invalid value: m"),
        (KEYED, {}, "false", {"fieldPath": ".a.x", "message": "m"},
         "spec.f.a[x]: Invalid value: m"),
        (OBJECT, {"a": 1}, "self.b == 1", {"fieldPath": ".b"},
         'spec.f: Invalid value: "object": no such key: b evaluating rule: self.b == 1'),
        ({"x-kubernetes-int-or-string": True}, "x", "self + 1 == 2", {},
         "spec.f: Invalid value: \"\": 'no such overload': call arguments did not match a "
         "supported operator, function or macro signature for rule: self + 1 == 2"),
        (OBJECT, {"a": 1}, "self.a / 0 == 1", {"message": "m"},
         'spec.f: Invalid value: "object": division by zero evaluating rule: m'),
        ({"type": "integer"}, 1, "false", {"messageExpression": "'is ' + string(self)"},
         "spec.f: Invalid value: 1: is 1"),
        ({"type": "integer"}, 1, "false", {"message": "m", "messageExpression": "string(1 / 0)"},
         "spec.f: Invalid value: 1: m"),
        ({"type": "integer"}, 1, "false", {"message": "m", "messageExpression": "'  '"},
         "spec.f: Invalid value: 1: m"),
        ({"type": "integer"}, 1, "false", {"message": "m", "messageExpression": "'a\\nb'"},
         "spec.f: Invalid value: 1: m"),
    ],
)  # fmt: skip
def test_result_texts(
    schema: dict[str, Any], value: Any, rule: str, more: dict[str, Any], expected: str
) -> None:
    assert errors(field(schema, rule, **more), {"f": value}) == [expected]


def test_an_overlong_message_expression_falls_back() -> None:
    schema = field({"type": "string"}, "false", message="m", messageExpression="self")

    assert errors(schema, {"f": "x" * 5121})[0].endswith(": m")
    assert not errors(schema, {"f": "y" * 5120})[0].endswith(": m")


def test_rules_at_the_root_have_no_field() -> None:
    schema = structural(ruled({"type": "object"}, "self.metadata.name == 'x'"))

    found = program(schema).evaluate({"metadata": {"name": "y"}}, None).errors

    assert [str(e) for e in found] == [
        "<nil>: Invalid value: failed rule: self.metadata.name == 'x'"
    ]


def test_root_and_embedded_show_type_and_name_and_nothing_else() -> None:
    rule = "self.apiVersion == 'v1' && self.kind == 'K' && has(self.metadata.generateName)"
    embedded = ruled({"type": "object", "x-kubernetes-embedded-resource": True}, rule)
    value = {"apiVersion": "v1", "kind": "K", "metadata": {"generateName": "a-"}}

    assert errors(spec({"f": embedded}), {"f": value}) == []
    hidden = field(embedded, "self.metadata.namespace == 'x'")
    assert "undefined field 'namespace'" in errors(hidden, {"f": value})[0]


@pytest.mark.parametrize(
    ("schema", "value", "rule"),
    [
        ({"type": "string", "format": "date-time"}, "2020-01-02T03:04:05Z", "self.getMonth() == 0"),
        ({"type": "string", "format": "date"}, "2020-01-02", "self.getDate() == 2"),
        ({"type": "string", "format": "duration"}, "90m", "self.getHours() == 1"),
        ({"type": "string", "format": "duration"}, "2 weeks", "self == duration('336h')"),
        ({"type": "string", "format": "byte"}, "aGk=", "self == b'hi'"),
        ({"type": "string", "format": "datetime"}, "x", "self == 'x'"),
        ({"type": "number"}, 1, "self == 1.0"),
        ({"type": "number"}, 1.5, "self > 1"),
        ({"type": "boolean"}, True, "self"),
        ({"x-kubernetes-int-or-string": True}, 5, "type(self) == int ? self < 6 : self == '5%'"),
        ({"x-kubernetes-int-or-string": True}, "5%", "type(self) == string && self == '5%'"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a.b": 1},
         "self['a.b'] == 1 && self.all(k, self[k] > 0) && !('x' in self)"),
        ({"type": "array", "items": OBJECT}, [{"a": 1}], "self.all(x, has(x.a) && !has(x.b))"),
        (OBJECT, {"a": 1, "b": None}, "!has(self.b)"),
        ({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
         ["a", "b"], "self == ['b', 'a'] && self + ['c', 'a'] == ['c', 'b', 'a']"),
        ({"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}},
         ["a", "b"], "self != ['b', 'a']"),
        ({"type": "object", "properties": {"a-b": {"type": "integer"}, "c.d": {"type": "integer"},
          "namespace": {"type": "string"}, "x__y": {"type": "string"}, "e/f": {"type": "string"}}},
         {"a-b": 1, "c.d": 2, "namespace": "n", "x__y": "z", "e/f": "g"},
         "self.a__dash__b == 1 && self.c__dot__d == 2 && self.__namespace__ == 'n' "
         "&& self.x__underscores__y == 'z' && self.e__slash__f == 'g'"),
    ],
)  # fmt: skip
def test_values_have_the_type_of_their_schema(
    schema: dict[str, Any], value: Any, rule: str
) -> None:
    assert errors(field(schema, rule), {"f": value}) == []


def test_list_map_equality_and_merge_go_by_key() -> None:
    items = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object",
            "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
        },
    }
    both = {"l": items, "m": items}
    value: dict[str, Any] = {
        "l": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
        "m": [{"k": "b", "v": 2}, {"k": "a"}],
    }

    merged = spec(both, **ruled({}, "(self.l + self.l).size() == 2"))
    assert errors(merged, value) == []
    # Two lists at two places are two types, so only old and new can be compared.
    unequal = spec(both, **ruled({}, "self.l == self.m"))
    assert "found no matching overload for '_==_'" in errors(unequal, value)[0]
    moved = spec({"l": ruled(items, "self == oldSelf")})
    assert errors(moved, {"l": value["l"]}, {"l": value["l"][::-1]}) == []
    assert errors(moved, {"l": value["l"]}, {"l": value["m"]}) != []


@pytest.mark.parametrize(
    ("schema", "value", "rule", "text"),
    [
        ({"type": "integer"}, 2.0, "self == 2", "invalid data, expected int, got float64"),
        ({"type": "string", "format": "byte"}, "++//", "self == b''",
         "Invalid byte formatted string ++//: illegal base64 data at input byte 0"),
    ],
)  # fmt: skip
def test_data_that_does_not_convert_is_an_error(
    schema: dict[str, Any], value: Any, rule: str, text: str
) -> None:
    shown = schema["type"]
    expected = f'spec.f: Invalid value: "{shown}": {text} evaluating rule: {rule}'

    assert errors(field(schema, rule), {"f": value}) == [expected]
    untouched = spec({"f": schema}, **ruled({}, "true || has(self.f)"))
    assert errors(untouched, {"f": value}) == []
    asked = spec({"f": schema}, **ruled({}, "has(self.f)"))
    assert text in errors(asked, {"f": value})[0]


def test_null_and_absent_are_not_visited() -> None:
    schema = field({"type": "string", "nullable": True}, "false")

    assert errors(schema, {"f": None}) == []
    assert errors(schema, {}) == []
    parent = spec({"f": {"type": "string", "nullable": True}}, **ruled({}, "self.f == ''"))
    assert errors(parent, {"f": None}) == [
        "spec: Invalid value: \"object\": no such key: f evaluating rule: self.f == ''"
    ]


def test_own_rules_run_before_those_below() -> None:
    inner = ruled({"type": "integer"}, "false", message="inner")
    schema = spec({"f": inner}, **ruled({}, "false", message="outer"))

    assert [text.rpartition(": ")[2] for text in errors(schema, {"f": 1})] == ["outer", "inner"]


def test_paths_of_lists_and_maps() -> None:
    number = ruled({"type": "integer"}, "self > 0", message="m")
    schema = spec(
        {
            "l": {"type": "array", "items": number},
            "m": {"type": "object", "additionalProperties": number},
        }
    )

    found = errors(schema, {"l": [1, 0], "m": {"a.b": 0, "c": 1}})

    assert found == ["spec.l[1]: Invalid value: 0: m", "spec.m[a.b]: Invalid value: 0: m"]


class TestTransitions:
    def test_a_transition_rule_needs_an_old_value(self) -> None:
        schema = field({"type": "integer"}, "self >= oldSelf")

        assert errors(schema, {"f": 1}) == []
        assert errors(schema, {"f": 1}, {}) == []
        assert errors(schema, {"f": 1}, {"f": None}) == []
        assert errors(schema, {"f": 2}, {"f": 1}) == []
        assert errors(schema, {"f": 1}, {"f": 2}) == [
            "spec.f: Invalid value: 1: failed rule: self >= oldSelf"
        ]

    def test_optional_old_self_always_runs(self) -> None:
        rule = "oldSelf.hasValue() ? oldSelf.value() <= self : self == 0"
        schema = field({"type": "integer"}, rule, optionalOldSelf=True)

        assert errors(schema, {"f": 0}) == []
        assert len(errors(schema, {"f": 1})) == 1
        assert errors(schema, {"f": 2}, {"f": 1}) == []
        assert len(errors(schema, {"f": 1}, {"f": 2})) == 1

    def test_optional_old_self_selects_fields(self) -> None:
        schema = spec(
            {"a": {"type": "integer"}},
            **ruled({}, "oldSelf.?a.orValue(1) <= self.a", optionalOldSelf=True),
        )

        assert errors(schema, {"a": 1}) == []
        assert len(errors(schema, {"a": 1}, {"a": 2})) == 1

    def test_map_lists_are_correlated_by_key(self) -> None:
        item = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}
        schema = spec(
            {
                "l": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                    "items": ruled(item, "self.v >= oldSelf.v", message="m"),
                }
            }
        )
        old = {"l": [{"k": "a", "v": 5}, {"k": "b", "v": 1}]}

        assert errors(schema, {"l": [{"k": "b", "v": 1}, {"k": "c", "v": 0}]}, old) == []
        assert errors(schema, {"l": [{"k": "b", "v": 2}, {"k": "a", "v": 4}]}, old) == [
            "spec.l[1]: Invalid value: m"
        ]


class TestRatcheting:
    def test_an_unchanged_failure_is_a_warning(self) -> None:
        schema = spec({"f": ruled({"type": "integer"}, "self > 5"), "g": {"type": "integer"}})

        assert errors(schema, {"f": 1, "g": 2}, {"f": 1, "g": 1}) == []
        assert warnings(schema, {"f": 1, "g": 2}, {"f": 1, "g": 1}) == [
            "spec.f: Invalid value: 1: failed rule: self > 5"
        ]
        assert len(errors(schema, {"f": 2}, {"f": 1})) == 1

    def test_items_of_an_atomic_list_follow_the_whole_list(self) -> None:
        item = ruled({"type": "integer"}, "self > 5")
        schema = spec({"l": {"type": "array", "items": item}, "g": {"type": "integer"}})

        assert errors(schema, {"l": [1], "g": 2}, {"l": [1], "g": 1}) == []
        assert len(warnings(schema, {"l": [1], "g": 2}, {"l": [1], "g": 1})) == 1
        assert len(errors(schema, {"l": [1, 9]}, {"l": [1]})) == 1

    def test_transition_rules_are_not_forgiven(self) -> None:
        schema = field({"type": "integer"}, "self > oldSelf")

        assert len(errors(schema, {"f": 1}, {"f": 1})) == 1
        assert warnings(schema, {"f": 1}, {"f": 1}) == []

    def test_evaluation_errors_are_not_forgiven(self) -> None:
        schema = spec({"f": {"type": "integer"}}, **ruled({}, "self.f > 1"))

        assert len(errors(schema, {}, {})) == 1
        assert warnings(schema, {}, {}) == []


class TestBudgets:
    def test_an_expression_over_its_limit_stops_everything(self) -> None:
        slow = ruled(ITEMS, "self.all(x, self.all(y, x + y >= 0))", message="slow")
        schema = spec({"a": slow, "b": ruled({"type": "integer"}, "false")})

        found = errors(schema, {"a": list(range(1000)), "b": 1})

        assert found == [
            "spec.a: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': "
            "no further validation rules will be run due to call cost exceeds limit for rule: slow"
        ]

    def test_an_object_over_its_budget_stops_everything(self) -> None:
        item = ruled({"type": "integer"}, "[1, 2, 3].all(x, x < 10)")
        schema = spec({"l": {"type": "array", "items": item}})
        budget = module.Budget(1000)

        found = program(schema).evaluate_at("", {"spec": {"l": [1] * 1000}}, None, budget).errors

        assert budget.remaining < 0
        assert len(found) == 1
        assert str(found[0]).endswith(
            '"integer": validation failed due to running out of cost budget, no further '
            "validation rules will be run"
        )

    def test_the_clock_stops_what_the_price_does_not(self) -> None:
        schema = spec({"a": ruled(ITEMS, "self.all(x, self.all(y, x + y >= 0))")})
        budget = module.Budget(deadline=0.0)

        found = program(schema).evaluate_at("", {"spec": {"a": [1] * 400}}, None, budget).errors

        assert "running out of cost budget" in str(found[0])


class TestDefaults:
    def test_a_default_must_satisfy_its_rules(self) -> None:
        schema = spec({"f": {**ruled({"type": "integer"}, "self > 5"), "default": 1}})

        found = default_rule_errors(schema, "spec.validation.openAPIV3Schema")

        assert [str(error) for error in found] == [
            "spec.validation.openAPIV3Schema.properties[spec].properties[f].default: "
            "Invalid value: 1: failed rule: self > 5"
        ]

    def test_a_transition_rule_sees_the_default_on_both_sides(self) -> None:
        schema = spec({"f": {**ruled({"type": "integer"}, "self != oldSelf"), "default": 1}})

        assert len(default_rule_errors(schema, "x")) == 1

    def test_rules_below_the_default_count_too(self) -> None:
        inner = ruled({"type": "integer"}, "self > 5", message="m")
        holder = {"type": "object", "properties": {"i": inner}, "default": {"i": 1}}

        found = default_rule_errors(spec({"f": holder}), "x")

        assert [str(error) for error in found] == [
            "x.properties[spec].properties[f].default.i: Invalid value: 1: m"
        ]

    def test_good_defaults_pass(self) -> None:
        schema = spec({"f": {**ruled({"type": "integer"}, "self > 5"), "default": 6}})

        assert default_rule_errors(schema, "x") == []


def test_the_compiler_fits_the_seam() -> None:
    compiler: RuleCompiler = compile_rules

    assert compiler(structural({"type": "object"})) is None
