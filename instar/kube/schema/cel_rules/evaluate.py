"""Runs a schema's CEL rules on an object and turns failures into field errors and warnings.

Called by ``schema/pipeline.py`` on every write, through ``Program``. One ``_Run`` per object has
the cost budget. A failure on an unchanged value becomes a warning (ratcheting), unless the rule
uses ``oldSelf``; an evaluation error always stays an error.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import field
from time import thread_time
from typing import Any, NamedTuple, NoReturn

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import FieldError, child, go_quote, index, key
from instar.kube.cel.declared_types import Declared
from instar.kube.cel.values import (
    MISSING,
    NONE,
    CelError,
    CostExceeded,
    NoSuchOverload,
    OptionalValue,
)
from instar.kube.schema.cel_rules.compile import CompiledRule, RuleNode, build
from instar.kube.schema.cel_rules.results import broken, failure, label, message_of, usable_message
from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.rule_engine import RuleResult
from instar.kube.schema.structure.structural import Structural
from instar.kube.schema.validation.ratchet import Correlated, child_partner, item_partners

CALL_LIMIT = 1_000_000
OBJECT_BUDGET = 10_000_000
TIME_LIMIT = 2.0
"""Seconds of processor time for the rules of one object, in case work takes longer than its
estimated cost."""

_OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_MESSAGE_OUT_OF_BUDGET = (
    "messageExpression evaluation failed due to running out of cost budget, "
    "no further validation rules will be run"
)
_IDENTITY = ("apiVersion", "kind")


def compile_rules(root: Structural) -> CelProgram | None:
    """Compile all rules of a schema; None when it has none."""
    tree = build(root, root=True)
    return None if tree is None else CelProgram(tree)


@dataclass(slots=True)
class Budget:
    """Cost budget of the rules of one object; ``remaining`` is negative once it is exceeded."""

    remaining: int = OBJECT_BUDGET
    call_limit: int = CALL_LIMIT
    deadline: float = field(default_factory=lambda: thread_time() + TIME_LIMIT)

    def late(self) -> bool:
        return thread_time() > self.deadline


class CelProgram:
    """The rules of one version's schema, ready to run. Has no state between objects."""

    __slots__ = ("_tree",)

    def __init__(self, tree: RuleNode) -> None:
        self._tree = tree

    def evaluate(self, new: Any, old: Any | None) -> RuleResult:
        return self.evaluate_at("", new, old, Budget(), ratchet=old is not None)

    def evaluate_at(
        self, path: str, new: Any, old: Any | None, budget: Budget, *, ratchet: bool = False
    ) -> RuleResult:
        """Run the rules on a value at ``path``; several calls may share one budget."""
        run = _Run(budget)
        partner = ABSENT if old is None else old
        start = _UNRELATED
        if ratchet and partner is not ABSENT:
            start = _Ratchet(Correlated(self._tree.schema, new, partner), None)
        with suppress(_Stopped):
            run.visit(self._tree, path, new, partner, start)
        return RuleResult(run.errors, run.warnings)


class _Stopped(Exception):
    """The budget is exceeded; no further rule runs."""


class _Ratchet(NamedTuple):
    """The old value that correlates with a new value, or that of the nearest parent that has
    one."""

    here: Correlated | None
    around: Correlated | None

    def ignores_failure(self) -> bool:
        place = self.here or self.around
        return place is not None and place.unchanged()

    def key(self, name: str) -> _Ratchet:
        if self.here is None:
            return self
        if self.around is None and name in _IDENTITY:
            # Old and new have the same version, so a change of apiVersion cannot be seen.
            return _UNRELATED
        return _Ratchet(self.here.key(name), self.here)

    def item(self, position: int) -> _Ratchet:
        return self if self.here is None else _Ratchet(self.here.index(position), self.here)


_UNRELATED = _Ratchet(None, None)


class _Run:
    __slots__ = ("_budget", "errors", "warnings")

    def __init__(self, budget: Budget) -> None:
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []
        self._budget = budget

    def visit(self, node: RuleNode, path: str, new: Any, old: Any, ratchet: _Ratchet) -> None:
        """Run the node's own rules, then those below. Null is checked from its parent only."""
        if new is None:
            return
        if node.rules:
            self._own_rules(node, path, new, old, ratchet)
        for branch in node.branches:
            self.visit(branch, path, new, old, _Ratchet(None, ratchet.around))
        if type(new) is dict:
            self._members(node, path, new, old, ratchet)
        elif type(new) is list and node.element is not None:
            partners = item_partners(node.schema, new, old)
            for position, item in enumerate(new):
                at = index(path, position)
                below = ratchet if ratchet is _UNRELATED else ratchet.item(position)
                self.visit(node.element, at, item, partners[position], below)

    def _members(
        self, node: RuleNode, path: str, new: dict[str, Any], old: Any, ratchet: _Ratchet
    ) -> None:
        related = ratchet is not _UNRELATED
        if node.element is not None:
            for name, item in new.items():
                below = ratchet.key(name) if related else ratchet
                self.visit(node.element, key(path, name), item, child_partner(old, name), below)
        for name, inner in node.fields.items():
            if name in new:
                below = ratchet.key(name) if related else ratchet
                at = child(path, name)
                self.visit(inner, at, new[name], child_partner(old, name), below)

    def _own_rules(self, node: RuleNode, path: str, new: Any, old: Any, ratchet: _Ratchet) -> None:
        declared, budget = node.declared, self._budget
        if declared is None:
            text = "failed to convert to declType for CEL validation rules"
            self.errors.append(broken(node, path, f"rule compiler initialization error: {text}"))
            return
        if budget.remaining <= 0:
            self._stop(broken(node, path, _OUT_OF_BUDGET))
        value = _cel_value(declared, new)
        before = ABSENT if old is ABSENT or old is None else _cel_value(declared, old)
        usable = not isinstance(value, CelError)
        limit, deadline = budget.call_limit, budget.deadline
        for rule in node.rules:
            values = value, before
            if not (rule.simple and usable):
                arguments = self._values(node, path, rule, value, before)
                if arguments is None:
                    continue
                values = arguments
            try:
                result, cost = rule.run(values, limit, deadline)
            except CostExceeded as exceeded:
                self._exceeded(node, path, rule, exceeded)
            if cost > budget.remaining:
                self._stop(broken(node, path, _OUT_OF_BUDGET))
            budget.remaining -= cost
            if result is not True:
                place = _Place(node, path, new, ratchet)
                self._add_failures(place, rule, result, value, before)

    def _exceeded(
        self, node: RuleNode, path: str, rule: CompiledRule, exceeded: CostExceeded
    ) -> NoReturn:
        text = _limit_text(label(rule.rule))
        if exceeded.cost > self._budget.remaining or self._budget.late():
            text = _OUT_OF_BUDGET
        self._stop(broken(node, path, text))

    def _values(
        self, node: RuleNode, path: str, rule: CompiledRule, value: Any, before: Any
    ) -> tuple[Any, Any] | None:
        """Return the CEL values for the rule; None if the rule does not run."""
        condition = rule.condition
        if condition.runner is None:
            self.errors.append(broken(node, path, f"rule compile error: {condition.problem}"))
            return None
        optional = rule.rule.optional_old_self is True
        if condition.uses_old and before is ABSENT and not optional:
            return None
        for reads, read in ((condition.uses_self, value), (condition.uses_old, before)):
            if reads and isinstance(read, CelError):
                text = _evaluation_text(read, label(rule.rule))
                self.errors.append(broken(node, path, text))
                self._budget.remaining -= 1
                return None
        return value, _optional(before) if optional else before

    def _add_failures(
        self, place: _Place, rule: CompiledRule, result: Any, value: Any, before: Any
    ) -> None:
        if isinstance(result, CelError):
            text = _evaluation_text(result, label(rule.rule))
            self.errors.append(broken(place.node, place.path, text))
            return
        message = self._dynamic_message(place, rule, value, before) or message_of(rule.rule)
        self._note(place, rule, failure(rule.rule, place.below(rule), place.raw, message))

    def _note(self, place: _Place, rule: CompiledRule, error: FieldError) -> None:
        if not rule.condition.uses_old and place.ratchet.ignores_failure():
            self.warnings.append(str(error))
        else:
            self.errors.append(error)

    def _dynamic_message(
        self, place: _Place, rule: CompiledRule, value: Any, before: Any
    ) -> str | None:
        """Return the result of messageExpression; None falls back to the static message."""
        compiled, budget = rule.message, self._budget
        if compiled is None or compiled.runner is None:
            return None
        values = value, MISSING if before is ABSENT else before
        try:
            text, cost = compiled.runner.run(values, budget.call_limit, budget.deadline)
        except CostExceeded as exceeded:
            problem = _MESSAGE_OUT_OF_BUDGET
            if exceeded.cost <= budget.remaining and not budget.late():
                source = go_quote(rule.rule.message_expression)
                problem = (
                    "no further validation rules will be run due to call cost exceeds limit for "
                    f"messageExpression: {source}"
                )
            self._stop_message(place, rule, problem)
        if cost > budget.remaining:
            self._stop_message(place, rule, _MESSAGE_OUT_OF_BUDGET)
        budget.remaining -= cost
        return usable_message(text)

    def _stop_message(self, place: _Place, rule: CompiledRule, text: str) -> NoReturn:
        self._budget.remaining = -1
        self._note(place, rule, broken(place.node, place.below(rule), text))
        raise _Stopped

    def _stop(self, error: FieldError) -> NoReturn:
        self._budget.remaining = -1
        self.errors.append(error)
        raise _Stopped


class _Place(NamedTuple):
    """Position of the rule that runs."""

    node: RuleNode
    path: str
    raw: Any
    ratchet: _Ratchet

    def below(self, rule: CompiledRule) -> str:
        """Return the field that an error of the rule names."""
        return child(self.path, rule.field_path) if rule.field_path else self.path


def _cel_value(declared: Declared, raw: Any) -> Any:
    """Return the CEL value, or the error that a rule gets when it reads the value."""
    try:
        return declared.convert(raw)
    except CelError as error:
        return error


def _optional(before: Any) -> OptionalValue:
    return NONE if before is ABSENT else OptionalValue(True, before)


def _evaluation_text(error: CelError, shown: str) -> str:
    if isinstance(error, NoSuchOverload):
        return (
            f"'{error}': call arguments did not match a supported operator, function or macro "
            f"signature for rule: {shown}"
        )
    return f"{error} evaluating rule: {shown}"


def _limit_text(shown: str) -> str:
    return (
        "'operation cancelled: actual cost limit exceeded': no further validation rules will be "
        f"run due to call cost exceeds limit for rule: {shown}"
    )
