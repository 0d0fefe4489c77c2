"""Checks a schema's CEL rules when a CRD is written: compilation, bool result, estimated cost.

Called through ``lazy_engine.py`` by ``kube/crds/validation/schema.py``. The rules' static checks
(blank text, line breaks, reasons) are in ``kube/crds/validation/cel_rules.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import FieldError, child, forbidden, index, internal, invalid, key
from instar.kube.cel.checking.cost_ranges import MOST
from instar.kube.cel.declared_types import Declared
from instar.kube.schema.cel_rules.compile import (
    CompiledRule,
    compile_rule,
    declaration_of,
    type_key,
)
from instar.kube.schema.cel_rules.declare import MAX_REQUEST
from instar.kube.schema.cel_rules.defaults import default_rule_errors
from instar.kube.schema.structure.structural import Structural, ValidationRule

EXPRESSION_LIMIT = 10_000_000
SCHEMA_LIMIT = 100_000_000
_MIN_NAMED_COST = SCHEMA_LIMIT // 100
"""The error about the total cost does not name rules that cost less."""
_MAX_NAMED_RULES = 4
"""The error about the total cost names this number of the most expensive rules."""
_CORRELATABLE_MAPS = (None, "atomic", "granular")
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
    """Current schema position, and how often a value can occur there."""

    path: str
    root: bool = False
    cardinality: int | None = 1
    """None below a list or map without a size limit."""
    uncorrelatable: str | None = None
    """Path of the outermost list or map with content that cannot be correlated with old values."""

    def times(self, most: Any) -> int | None:
        known = isinstance(most, int) and self.cardinality is not None
        return self.cardinality * max(most, 0) if known and self.cardinality is not None else None


@dataclass(slots=True)
class _CostTotals:
    waived: bool
    spoiled: Callable[[str], bool]
    errors: list[FieldError] = field(default_factory=list)
    total: int = 0
    costs: list[tuple[int, str]] = field(default_factory=list)

    def charge(self, path: str, cost: int, what: str) -> None:
        if cost > EXPRESSION_LIMIT and not self.waived:
            factor = _factor(cost, EXPRESSION_LIMIT)
            text = f"estimated {what} cost exceeds budget by factor of {factor} {_ADVICE}"
            self.errors.append(forbidden(path, text))
        self.total = min(self.total + cost, MOST)
        if cost >= _MIN_NAMED_COST:
            self.costs.append((cost, path))


def _none(_path: str) -> bool:
    return False


def check_rules(
    root: Structural,
    path: str,
    known_rules: frozenset[str],
    per_expression_limit_waived: bool,
    spoiled: Callable[[str], bool] = _none,
) -> list[FieldError]:
    """Return all errors of the rules of one schema at ``path``.

    ``spoiled`` tells which nodes have other errors; their rules are skipped. A default that breaks
    a rule is reported alone, as upstream does. ``known_rules`` are texts that the stored CRD
    already has; upstream compiles them with newer libraries. Every library here is available for
    both, so they are not used.
    """
    found = default_rule_errors(root, path)
    if found:
        return found
    totals = _CostTotals(per_expression_limit_waived, spoiled)
    _walk(root, _Place(path, root=True), totals)
    if totals.total > SCHEMA_LIMIT:
        totals.errors += _total_errors(totals, path)
    return totals.errors


def _total_errors(totals: _CostTotals, path: str) -> list[FieldError]:
    dearest = sorted(totals.costs, key=lambda entry: -entry[0])[:_MAX_NAMED_RULES]
    named = (
        "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    )
    text = (
        "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds "
        f"budget by factor of {_factor(totals.total, SCHEMA_LIMIT)} {_ADVICE}"
    )
    return [*(forbidden(where, named) for _, where in dearest), forbidden(path, text)]


def _factor(cost: int, limit: int) -> str:
    ratio = cost / limit
    if ratio > 100:
        return "more than 100x"
    return f"{ratio:f}x" if ratio < 1.5 else f"{ratio:.1f}x"


def _walk(node: Structural, place: _Place, totals: _CostTotals) -> None:
    path = place.path
    if node.rules and not totals.spoiled(path):
        _node(node, place, totals)
    if node.items is not None:
        correlatable = node.list_type == "map"
        items = replace(
            place,
            path=child(path, "items"),
            root=False,
            cardinality=place.times(node.raw.get("maxItems")),
            uncorrelatable=place.uncorrelatable or (None if correlatable else path),
        )
        _walk(node.items, items, totals)
    inside = replace(place, root=False)
    if place.uncorrelatable is None and node.map_type not in _CORRELATABLE_MAPS:
        inside = replace(inside, uncorrelatable=path)
    for name, item in node.properties.items():
        _walk(item, replace(inside, path=key(child(path, "properties"), name)), totals)
    if isinstance(node.additional, Structural):
        values = replace(
            inside,
            path=child(path, "additionalProperties"),
            cardinality=place.times(node.raw.get("maxProperties")),
        )
        _walk(node.additional, values, totals)


def _node(node: Structural, place: _Place, totals: _CostTotals) -> None:
    where = child(place.path, "x-kubernetes-validations")
    type_of_self = type_key(node, root=place.root)
    declared = declaration_of(type_of_self)
    if declared is None:
        totals.errors.append(internal(where, _UNDECLARED))
        return
    times = most_occurrences(declared) if place.cardinality is None else place.cardinality
    for position, rule in enumerate(node.rules):
        if not rule.rule.strip():
            continue
        _rule(compile_rule(rule, type_of_self), index(where, position), times, place, totals)


def most_occurrences(declared: Declared) -> int:
    """Return how often a value can occur in one request if no schema limits it."""
    return MAX_REQUEST // (declared.min_bytes + 1)


def _rule(
    compiled: CompiledRule, path: str, times: int, place: _Place, totals: _CostTotals
) -> None:
    rule, condition, message = compiled.rule, compiled.condition, compiled.message
    at = child(path, "rule")
    totals.charge(at, min(condition.cost * times, MOST), "rule")
    errors = totals.errors
    if condition.problem:
        errors.append(invalid(at, _go_rule(rule), condition.problem))
    if message is not None:
        at_message = child(path, "messageExpression")
        if message.problem:
            errors.append(invalid(at_message, _go_rule(rule), message.problem))
        else:
            totals.charge(at_message, message.cost, "messageExpression")
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


def _go_rule(rule: ValidationRule) -> dict[str, Any]:
    """Return the rule as upstream prints its own struct."""
    return {
        "Rule": rule.rule,
        "Message": rule.message,
        "MessageExpression": rule.message_expression,
        "Reason": rule.reason,
        "FieldPath": rule.field_path,
        "OptionalOldSelf": rule.optional_old_self,
    }
