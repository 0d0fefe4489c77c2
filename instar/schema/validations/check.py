"""Rules when a CRD is written: do they compile, are they bools, what may they cost.

Whether a rule text is well formed at all (blank, line breaks, reasons) is asked before, elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from instar.cel.types import BOOL, STRING, Type
from instar.fields import FieldError, child, forbidden, index, internal, invalid, key
from instar.schema.structural import Structural, ValidationRule
from instar.schema.validations.compile import (
    Compiled,
    CompiledRule,
    can_declare,
    compile_rule,
    type_key,
)
from instar.schema.validations.declare import MAX_REQUEST, declare

EXPRESSION_LIMIT = 10_000_000
SCHEMA_LIMIT = 100_000_000
_WORTH_NAMING = SCHEMA_LIMIT // 100
_NAMED = 4
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)"
)
_UNDECLARED = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: "
    "unable to convert structural schema to CEL declarations"
)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the walk is, and how often a value can occur there."""

    path: str
    root: bool = False
    cardinality: int | None = 1
    """None below something without a limit."""
    uncorrelatable: str | None = None
    """The outermost list whose items have no old partner."""

    def times(self, most: Any) -> int | None:
        known = isinstance(most, int) and self.cardinality is not None
        return self.cardinality * max(most, 0) if known and self.cardinality is not None else None


@dataclass(slots=True)
class _Ledger:
    waived: bool
    errors: list[FieldError] = field(default_factory=list)
    total: float = 0
    costs: list[tuple[float, str]] = field(default_factory=list)

    def charge(self, path: str, cost: float, what: str) -> None:
        if cost > EXPRESSION_LIMIT and not self.waived:
            factor = _factor(cost, EXPRESSION_LIMIT)
            text = f"estimated {what} cost exceeds budget by factor of {factor} {_ADVICE}"
            self.errors.append(forbidden(path, text))
        self.total += cost
        if cost >= _WORTH_NAMING:
            self.costs.append((cost, path))


def check_rules(
    root: Structural,
    path: str,
    known_rules: frozenset[str],
    per_expression_limit_waived: bool,
) -> list[FieldError]:
    """Everything wrong with the rules of one schema. ``path`` is that of the schema.

    ``known_rules`` are texts the stored CRD already has; upstream compiles them with newer
    libraries than new ones. Every library here is old enough for both, so they are not needed.
    """
    ledger = _Ledger(per_expression_limit_waived)
    _walk(root, _Place(path, root=True), ledger)
    if ledger.total > SCHEMA_LIMIT:
        ledger.errors += _total_errors(ledger, path)
    return ledger.errors


def _total_errors(ledger: _Ledger, path: str) -> list[FieldError]:
    dearest = sorted(ledger.costs, key=lambda entry: -entry[0])[:_NAMED]
    named = (
        "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    )
    text = (
        "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds "
        f"budget by factor of {_factor(ledger.total, SCHEMA_LIMIT)} {_ADVICE}"
    )
    return [*(forbidden(where, named) for _, where in dearest), forbidden(path, text)]


def _factor(cost: float, limit: float) -> str:
    ratio = cost / limit
    if ratio > 100:
        return "more than 100x"
    return f"{ratio:f}x" if ratio < 1.5 else f"{ratio:.1f}x"


def _walk(node: Structural, place: _Place, ledger: _Ledger) -> None:
    if node.rules:
        _node(node, place, ledger)
    path = place.path
    if node.items is not None:
        correlatable = node.list_type == "map"
        items = replace(
            place,
            path=child(path, "items"),
            root=False,
            cardinality=place.times(node.raw.get("maxItems")),
            uncorrelatable=place.uncorrelatable or (None if correlatable else path),
        )
        _walk(node.items, items, ledger)
    for name, item in node.properties.items():
        at = key(child(path, "properties"), name)
        _walk(item, replace(place, path=at, root=False), ledger)
    if isinstance(node.additional, Structural):
        values = replace(
            place,
            path=child(path, "additionalProperties"),
            root=False,
            cardinality=place.times(node.raw.get("maxProperties")),
        )
        _walk(node.additional, values, ledger)


def _node(node: Structural, place: _Place, ledger: _Ledger) -> None:
    where = child(place.path, "x-kubernetes-validations")
    type_of_self = type_key(node, root=place.root)
    if not can_declare(type_of_self):
        ledger.errors.append(internal(where, _UNDECLARED))
        return
    times = place.cardinality
    if times is None:
        declared = declare(node, root=place.root)
        times = MAX_REQUEST // ((declared.min_bytes if declared else 0) + 1)
    for position, rule in enumerate(node.rules):
        if not rule.rule.strip():
            continue
        _rule(compile_rule(rule, type_of_self), index(where, position), times, place, ledger)


def _rule(compiled: CompiledRule, path: str, times: int, place: _Place, ledger: _Ledger) -> None:
    rule, condition, message = compiled.rule, compiled.condition, compiled.message
    at = child(path, "rule")
    ledger.charge(at, condition.cost * times, "rule")
    errors = ledger.errors
    if problem := _problem(condition, "", BOOL, "cel expression must evaluate to a bool"):
        errors.append(invalid(at, _shown(rule), problem))
    if message is not None:
        at_message = child(path, "messageExpression")
        text = "messageExpression must evaluate to a string"
        if problem := _problem(message, "messageExpression", STRING, text):
            errors.append(invalid(at_message, _shown(rule), problem))
        else:
            ledger.charge(at_message, message.cost, "messageExpression")
    if condition.runner is None:
        return
    if condition.uses_old:
        if place.uncorrelatable is not None:
            text = (
                "oldSelf cannot be used on the uncorrelatable portion of the schema within "
                f"{place.uncorrelatable}"
            )
            errors.append(invalid(at, rule.rule, text))
    elif rule.optional_old_self is not None:
        text = "may not be set if oldSelf is not used in rule"
        errors.append(invalid(child(path, "optionalOldSelf"), rule.optional_old_self, text))


def _problem(compiled: Compiled, what: str, wanted: Type, otherwise: str) -> str | None:
    """``what`` is empty for a rule, whose failures read a little differently."""
    if compiled.runner is None:
        stage = "instantiation" if compiled.well_typed else "compilation"
        subject = what or ("program" if compiled.well_typed else "")
        return f"{subject} {stage} failed: {compiled.error}".lstrip()
    return None if compiled.type == wanted else otherwise


def _shown(rule: ValidationRule) -> dict[str, Any]:
    """The rule as upstream prints its own struct."""
    return {
        "Rule": rule.rule,
        "Message": rule.message,
        "MessageExpression": rule.message_expression,
        "Reason": rule.reason,
        "FieldPath": rule.field_path,
        "OptionalOldSelf": rule.optional_old_self,
    }
