"""Rules when a CRD is written: places, wording, cost."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.schema.cel_rules.check import check_rules
from instar.kube.schema.structure.parse import structural

AT = "spec.validation.openAPIV3Schema"


def found(schema: dict[str, Any], *, waived: bool = False) -> list[str]:
    errors = check_rules(structural(schema), AT, frozenset(), waived)
    return [f"{error}" for error in errors]


def root(field: dict[str, Any], *rules: dict[str, Any]) -> dict[str, Any]:
    """``f`` at the root, with rules on it."""
    held = {**field, "x-kubernetes-validations": list(rules)}
    return {"type": "object", "properties": {"f": held}}


RULE = f"{AT}.properties[f].x-kubernetes-validations[0]"
OBJECT = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 10}}}


def shown(rule: str, message_expression: str = "") -> str:
    return (
        f'{{"Rule":"{rule}","Message":"","MessageExpression":"{message_expression}",'
        '"Reason":null,"FieldPath":"","OptionalOldSelf":null}'
    )


def test_an_undefined_field_is_framed_like_upstream() -> None:
    assert found(root(OBJECT, {"rule": "self.b == 1"})) == [
        f"{RULE}.rule: Invalid value: {shown('self.b == 1')}: compilation failed: "
        "ERROR: <input>:1:5: undefined field 'b'\n | self.b == 1\n | ....^"
    ]


def test_a_pattern_that_cannot_be_built_is_refused() -> None:
    errors = found(root(OBJECT, {"rule": "self.a.find(')') == ''"}))

    assert len(errors) == 1
    assert ": program instantiation failed: error parsing regexp: " in errors[0]


@pytest.mark.parametrize("rule", ["self.a", "dyn(true)", "1"])
def test_a_rule_must_be_exactly_a_bool(rule: str) -> None:
    assert found(root(OBJECT, {"rule": rule})) == [
        f"{RULE}.rule: Invalid value: {shown(rule)}: cel expression must evaluate to a bool"
    ]


def test_message_expressions_are_compiled_too() -> None:
    wrong = {"rule": "true", "messageExpression": "self.b"}
    number = {"rule": "true", "messageExpression": "1"}

    errors = found(root(OBJECT, wrong, number))

    assert errors[0].startswith(
        f"{RULE}.messageExpression: Invalid value: {shown('true', 'self.b')}: "
        "messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'b'"
    )
    assert errors[1].endswith("messageExpression must evaluate to a string")


@pytest.mark.parametrize("list_type", ["atomic", "set", None])
def test_old_self_needs_a_correlatable_place(list_type: str | None) -> None:
    rules = [{"rule": "self == oldSelf"}]
    held = {"type": "string", "maxLength": 5, "x-kubernetes-validations": rules}
    items: dict[str, Any] = {"type": "array", "maxItems": 5, "items": held}
    if list_type:
        items["x-kubernetes-list-type"] = list_type

    assert found({"type": "object", "properties": {"l": items}}) == [
        f"{AT}.properties[l].items.x-kubernetes-validations[0].rule: "
        'Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of '
        f"the schema within {AT}.properties[l]"
    ]


def test_map_lists_and_maps_are_correlatable() -> None:
    item = {
        "type": "object",
        "required": ["k"],
        "properties": {"k": {"type": "string", "maxLength": 5}},
        "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
    }
    keyed = {
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": item,
    }
    atomic = {
        "type": "object",
        "maxProperties": 5,
        "x-kubernetes-map-type": "atomic",
        "additionalProperties": item,
    }

    assert found({"type": "object", "properties": {"l": keyed, "m": atomic}}) == []


@pytest.mark.parametrize("value", [True, False])
def test_optional_old_self_needs_old_self(value: bool) -> None:
    assert found(root(OBJECT, {"rule": "true", "optionalOldSelf": value})) == [
        f"{RULE}.optionalOldSelf: Invalid value: {str(value).lower()}: may not be set if oldSelf "
        "is not used in rule"
    ]


@pytest.mark.parametrize(
    "field",
    [
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "array"},
        {"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": True}},
    ],
)
def test_a_place_without_a_type_cannot_have_rules(field: dict[str, Any]) -> None:
    assert found(root(field, {"rule": "true"})) == [
        f"{AT}.properties[f].x-kubernetes-validations: Internal error: internal error: failed to "
        "construct type information for x-kubernetes-validations rules: unable to convert "
        "structural schema to CEL declarations"
    ]


def test_undeclarable_members_are_invisible() -> None:
    hidden = {"type": "object", "properties": {"u": {"x-kubernetes-preserve-unknown-fields": True}}}

    assert "undefined field 'u'" in found(root(hidden, {"rule": "has(self.u)"}))[0]


NESTED = "self.all(x, self.all(y, x == y))"
ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)"
)


class TestCost:
    UNBOUNDED = root({"type": "array", "items": {"type": "string"}}, {"rule": NESTED})

    def test_an_unbounded_nested_loop_is_refused_with_advice(self) -> None:
        errors = found(self.UNBOUNDED)

        assert errors[0] == (
            f"{RULE}.rule: Forbidden: estimated rule cost exceeds budget by factor of more than "
            f"100x {ADVICE}"
        )
        assert errors[1] == (
            f"{RULE}.rule: Forbidden: contributed to estimated rule cost total exceeding cost "
            "limit for entire OpenAPIv3 schema"
        )
        assert errors[2] == (
            f"{AT}: Forbidden: x-kubernetes-validations estimated rule cost total for entire "
            f"OpenAPIv3 schema exceeds budget by factor of more than 100x {ADVICE}"
        )

    def test_limits_make_it_acceptable(self) -> None:
        bounded = {"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": 63}}

        assert found(root(bounded, {"rule": NESTED})) == []

    def test_the_limit_of_one_expression_can_be_waived_the_total_cannot(self) -> None:
        errors = found(self.UNBOUNDED, waived=True)

        assert len(errors) == 2
        assert all("total" in error for error in errors)

    def test_a_rule_is_multiplied_by_how_often_it_can_run(self) -> None:
        leaf = {"type": "string", "maxLength": 1000, "x-kubernetes-validations": [
            {"rule": "self.contains('some text to look for')"}]}  # fmt: skip
        few = {"type": "array", "maxItems": 100, "items": leaf}
        many = {"type": "array", "items": leaf}

        assert found({"type": "object", "properties": {"f": few}}) == []
        assert "exceeds budget" in found({"type": "object", "properties": {"f": many}})[0]

    def test_message_expressions_are_priced_once(self) -> None:
        loop = "string(self.all(x, self.all(y, x == y)))"
        items = {"type": "array", "items": {"type": "string"}}

        errors = found(root(items, {"rule": "true", "messageExpression": loop}))

        assert errors[0].startswith(
            f"{RULE}.messageExpression: Forbidden: estimated messageExpression cost exceeds budget "
        )

    @pytest.mark.parametrize(
        ("most", "factor"),
        [(1_000_000, None), (3_500_000, "1.400000x"), (13_500_000, "5.4x")],
    )
    def test_the_factor_is_written_as_precisely_as_upstream_does(
        self, most: int, factor: str | None
    ) -> None:
        # A turn of all(x, x) costs four units.
        items = {"type": "array", "maxItems": most, "items": {"type": "boolean"}}
        errors = found(root(items, {"rule": "self.all(x, x)"}))

        if factor is None:
            assert errors == []
        else:
            assert f"by factor of {factor} " in errors[0]
