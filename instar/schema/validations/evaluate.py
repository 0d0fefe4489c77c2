"""Rules on an object: which run, in what order, and what their results become.

One ``_Run`` per object carries the budget. A rule that fails on something the write did not change
is a warning, unless it looks at ``oldSelf``; an error while evaluating is never forgiven.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from time import thread_time
from typing import Any

from instar.cel.values import (
    NONE,
    CelError,
    CostExceeded,
    NoSuchOverload,
    OptionalValue,
)
from instar.fields import FieldError, child, distinct, index, key
from instar.schema.ratchet import child_partner, item_partners, unchanged
from instar.schema.rules import Outcome
from instar.schema.structural import Structural
from instar.schema.validations.compile import CompiledRule, RuleNode, build
from instar.schema.validations.results import broken, failure, label, message_of, usable_message
from instar.schema.values import ABSENT

CALL_LIMIT = 1_000_000
OBJECT_BUDGET = 10_000_000
TIME_LIMIT = 2.0
"""Seconds of processor time for the rules of one object: where work outruns its price."""

_OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_MESSAGE_OUT_OF_BUDGET = (
    "messageExpression evaluation failed due to running out of cost budget, "
    "no further validation rules will be run"
)


def compile_rules(root: Structural) -> CelProgram | None:
    """All rules of a schema; None when it has none."""
    tree = build(root, root=True)
    return None if tree is None else CelProgram(tree)


class CelProgram:
    """The rules of one version's schema, ready to run. Keeps no state between objects."""

    __slots__ = ("_tree",)

    def __init__(self, tree: RuleNode) -> None:
        self._tree = tree

    def evaluate(self, new: Any, old: Any | None) -> Outcome:
        return self.evaluate_at("", new, old, Budget())

    def evaluate_at(self, path: str, new: Any, old: Any | None, budget: Budget) -> Outcome:
        """Findings below ``path``; several calls may share one budget."""
        run = _Run(budget)
        with suppress(_Stopped):
            run.visit(self._tree, path, new, ABSENT if old is None else old, None)
        return Outcome(run.errors, run.warnings)


@dataclass(slots=True)
class Budget:
    remaining: float = OBJECT_BUDGET
    deadline: float = field(default_factory=lambda: thread_time() + TIME_LIMIT)


class _Stopped(Exception):
    """The budget is gone; nothing further runs."""


class _Anchor:
    """The nearest place that has an old partner; compared at most once, and only on failure."""

    __slots__ = ("_new", "_old", "_same", "_schema")

    def __init__(self, schema: Structural, new: Any, old: Any) -> None:
        self._schema, self._new, self._old = schema, new, old
        self._same: bool | None = None

    def unchanged(self) -> bool:
        if self._same is None:
            self._same = unchanged(self._schema, self._new, self._old)
        return self._same


class _Run:
    __slots__ = ("_budget", "errors", "warnings")

    def __init__(self, budget: Budget) -> None:
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []
        self._budget = budget

    def visit(self, node: RuleNode, path: str, new: Any, old: Any, anchor: _Anchor | None) -> None:
        """Own rules first, then what lies below. Null is checked from its parent only."""
        if new is None:
            return
        if old is not ABSENT:
            anchor = _Anchor(node.schema, new, old)
        if node.rules:
            self._own_rules(node, path, new, old, anchor)
        if type(new) is dict:
            self._members(node, path, new, old, anchor)
        elif type(new) is list and node.element is not None:
            element = node.element
            partners = item_partners(node.schema, new, old)
            for position, item in enumerate(new):
                self.visit(element, index(path, position), item, partners[position], anchor)

    def _members(
        self, node: RuleNode, path: str, new: dict[str, Any], old: Any, anchor: _Anchor | None
    ) -> None:
        for name, below in node.fields.items():
            if name in new:
                partner = child_partner(old, name)
                self.visit(below, child(path, name), new[name], partner, anchor)
        if node.element is not None:
            for name, item in new.items():
                if name not in node.schema.properties:
                    partner = child_partner(old, name)
                    self.visit(node.element, key(path, name), item, partner, anchor)

    def _own_rules(
        self, node: RuleNode, path: str, new: Any, old: Any, anchor: _Anchor | None
    ) -> None:
        if node.declared is None:
            self._note(broken(node, path, "rule compile error: " + node.rules[0].condition.error))
            return
        try:
            value = node.declared.convert(new)
            before = ABSENT if old is ABSENT or old is None else node.declared.convert(old)
        except CelError as error:
            for rule in node.rules:
                self._note(broken(node, path, f"{error} evaluating rule: {label(rule.rule)}"))
            return
        for rule in node.rules:
            self._rule(node, rule, path, new, (value, before), anchor)

    def _rule(
        self,
        node: RuleNode,
        rule: CompiledRule,
        path: str,
        raw: Any,
        values: tuple[Any, Any],
        anchor: _Anchor | None,
    ) -> None:
        condition = rule.condition
        if condition.uses_old:
            value, before = values
            if rule.rule.optional_old_self:
                values = value, NONE if before is ABSENT else OptionalValue(True, before)
            elif before is ABSENT:
                return
        if condition.runner is None:
            self._note(broken(node, path, f"rule compile error: {condition.error}"))
            return
        budget = self._budget
        try:
            holds, cost = condition.runner.run(values, CALL_LIMIT, budget.deadline)
        except CelError as error:
            self._note(broken(node, path, _evaluation_text(error, label(rule.rule))))
            return
        except CostExceeded:
            self._stop(node, path, _limit_text(budget, label(rule.rule)))
        budget.remaining -= cost
        if budget.remaining < 0:
            self._stop(node, path, _OUT_OF_BUDGET)
        if holds is True:
            return
        self._failed(node, rule, path, raw, values, anchor)

    def _failed(
        self,
        node: RuleNode,
        rule: CompiledRule,
        path: str,
        raw: Any,
        values: tuple[Any, Any],
        anchor: _Anchor | None,
    ) -> None:
        text = self._dynamic_message(node, rule, path, values) or message_of(rule.rule)
        error = failure(node, rule.rule, path, raw, text)
        if not rule.condition.uses_old and anchor is not None and anchor.unchanged():
            self.warnings.append(str(error))
        else:
            self.errors.append(error)

    def _dynamic_message(
        self, node: RuleNode, rule: CompiledRule, path: str, values: tuple[Any, Any]
    ) -> str | None:
        """What messageExpression says; None falls back to the static message."""
        compiled = rule.message
        if compiled is None or compiled.runner is None:
            return None
        if compiled.uses_old and values[1] is ABSENT:
            return None
        try:
            text, cost = compiled.runner.run(values, CALL_LIMIT, self._budget.deadline)
        except CelError:
            return None
        except CostExceeded:
            if thread_time() > self._budget.deadline:
                self._stop(node, path, _MESSAGE_OUT_OF_BUDGET)
            source = rule.rule.message_expression
            self._stop(
                node,
                path,
                "no further validation rules will be run due to call cost exceeds limit for "
                f'messageExpression: "{source}"',
            )
        self._budget.remaining -= cost
        if self._budget.remaining < 0:
            self._stop(node, path, _MESSAGE_OUT_OF_BUDGET)
        return usable_message(text)

    def _note(self, error: FieldError) -> None:
        self.errors.append(error)

    def _stop(self, node: RuleNode, path: str, text: str) -> None:
        self._note(broken(node, path, text))
        raise _Stopped


def _evaluation_text(error: CelError, shown: str) -> str:
    if isinstance(error, NoSuchOverload):
        return (
            "'no such overload': call arguments did not match a supported operator, function or "
            f"macro signature for rule: {shown}"
        )
    return f"{error} evaluating rule: {shown}"


def _limit_text(budget: Budget, shown: str) -> str:
    if thread_time() > budget.deadline:
        return _OUT_OF_BUDGET
    return (
        "'operation cancelled: actual cost limit exceeded': no further validation rules will be "
        f"run due to call cost exceeds limit for rule: {shown}"
    )


def default_rule_errors(root: Structural, path: str) -> list[FieldError]:
    """Defaults against the rules of their own node and below: as an update, then as a create.

    Runs once per CRD write; all defaults of a schema share one budget.
    """
    return _default_errors(root, path, Budget(), root=True)


def _default_errors(
    node: Structural, path: str, budget: Budget, *, root: bool = False
) -> list[FieldError]:
    errors: list[FieldError] = []
    if node.default is not None:
        errors += _one_default(node, child(path, "default"), budget, root=root)
    if node.items is not None:
        errors += _default_errors(node.items, child(path, "items"), budget)
    for name, item in node.properties.items():
        errors += _default_errors(item, key(child(path, "properties"), name), budget)
    return errors


def _one_default(node: Structural, path: str, budget: Budget, *, root: bool) -> list[FieldError]:
    tree = build(node, root=root)
    if tree is None:
        return []
    program = CelProgram(tree)
    found = program.evaluate_at(path, node.default, node.default, budget).errors
    found += program.evaluate_at(path, node.default, None, budget).errors
    return distinct(found)
