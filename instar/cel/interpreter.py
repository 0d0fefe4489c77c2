"""A checked tree becomes closures once; running it is calling them.

Every ``_node`` method returns ``(step, cost)``: the closure and the part of its cost that does not
depend on data. Branches charge their own part only when taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from instar.cel import comprehensions, steps
from instar.cel.ast import (
    Bind,
    Call,
    Comprehension,
    Const,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)
from instar.cel.checker import Checked
from instar.cel.declared import Field
from instar.cel.dispatch import certain, choose
from instar.cel.frame import (
    CHECK_EVERY,
    DEADLINE,
    FIRST_VARIABLE,
    LIMIT,
    NEXT_CHECK,
    SPENT,
    Frame,
    Step,
    blank_frame,
)
from instar.cel.functions import Overload, smaller_of
from instar.cel.issues import BadProgram
from instar.cel.literals import pattern_problem
from instar.cel.types import BYTES, STRING, Kind, Type
from instar.cel.values import CelError, CostExceeded, TypeValue

LIST_COST, MAP_COST = 10, 30
Compiled = tuple[Step, float]


@dataclass(frozen=True, slots=True)
class Runnable:
    step: Step
    blank: Frame
    variables_end: int

    def run(self, values: Sequence[Any], limit: float, deadline: float) -> tuple[Any, float]:
        """Result and cost; ``values`` in the order the variables were declared."""
        frame = self.blank.copy()
        frame[FIRST_VARIABLE : self.variables_end] = values
        frame[NEXT_CHECK] = CHECK_EVERY if limit > CHECK_EVERY else limit
        frame[LIMIT] = limit
        frame[DEADLINE] = deadline
        result = self.step(frame)
        cost = frame[SPENT]
        if cost > limit:
            raise CostExceeded
        return result, cost


def compile_tree(checked: Checked, variables: Sequence[str]) -> Runnable:
    builder = _Builder(checked, variables)
    step, cost = builder.build(checked.tree)
    return Runnable(step, blank_frame(builder.slots, cost), FIRST_VARIABLE + len(variables))


class _Builder:
    def __init__(self, checked: Checked, variables: Sequence[str]) -> None:
        self._checked = checked
        self.slots = 0
        self._scopes = [{name: self._new_slot() for name in variables}]

    def build(self, node: Node) -> Compiled:
        named = self._checked.type_names.get(id(node))
        if named is not None:
            return steps.constant(TypeValue(_runtime_name(named))), 0
        match node:
            case Const():
                return steps.constant(node.value), 0
            case Ident():
                return steps.variable(self._slot(node.name)), 1
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                return self._comprehension(node)
            case Bind():
                return self._bind(node)
            case StructLiteral():
                raise AssertionError("the checker refuses struct literals")

    def _type(self, node: Node) -> Type:
        return self._checked.types[id(node)]

    def _slot(self, name: str) -> int:
        return next(scope[name] for scope in reversed(self._scopes) if name in scope)

    def _new_slot(self) -> int:
        self.slots += 1
        return FIRST_VARIABLE + self.slots - 1

    def _select(self, node: Select) -> Compiled:
        found = self._type(node.operand)
        operand, cost = self.build(node.operand)
        if found.kind is Kind.OBJECT and found.declared is not None:
            return self._declared_field(node, operand, cost, found.declared.fields[node.field])
        if node.test:
            return steps.has_dynamic(operand, node.field), cost
        return steps.select_dynamic(operand, node.field), cost + 1

    def _declared_field(self, node: Select, operand: Step, cost: float, field: Field) -> Compiled:
        if node.test:
            return steps.has_field(operand, node.field, field), cost
        if isinstance(node.operand, Ident):
            slot = self._slot(node.operand.name)
            return steps.variable_field(slot, node.field, field), cost + 1
        return steps.field(operand, node.field, field), cost + 1

    def _call(self, node: Call) -> Compiled:
        special = _SPECIAL.get(node.function) if node.target is None else None
        if special is not None:
            return special(self, node)
        operands = self._checked.operands(node)
        compiled = [self.build(each) for each in operands]
        cost = sum(each[1] for each in compiled)
        arguments = [each[0] for each in compiled]
        candidates = self._checked.calls[id(node)]
        if len(candidates) == 1 and certain(
            candidates[0].params, [self._type(each) for each in operands]
        ):
            _refuse_bad_pattern(candidates[0], operands)
            folded = _folded(candidates[0], operands)
            if folded is not None:
                return folded
            texts = all(self._type(each) in (STRING, BYTES) for each in operands)
            return self._direct(candidates[0], arguments, cost, texts)
        return steps.dispatched(choose(candidates), arguments), cost

    def _direct(
        self, overload: Overload, arguments: list[Step], cost: float, texts: bool
    ) -> Compiled:
        if overload.work is None:
            return steps.call(overload.impl, arguments), cost + 1
        if texts and len(arguments) == 2:
            return steps.metered_texts(overload.impl, overload.work, *arguments), cost
        return steps.metered_call(overload, arguments), cost

    def _logical(self, node: Call) -> Compiled:
        left, cost = self.build(node.args[0])
        right, right_cost = self.build(node.args[1])
        decisive = node.function == "_||_"
        return steps.logical(left, right, right_cost, decisive), cost

    def _choice(self, node: Call) -> Compiled:
        condition, cost = self.build(node.args[0])
        then, otherwise = self.build(node.args[1]), self.build(node.args[2])
        return steps.choice(condition, then, otherwise), cost

    def _equality(self, node: Call) -> Compiled:
        negated = node.function == "_!=_"
        left, left_cost = self.build(node.args[0])
        right, right_cost = self.build(node.args[1])
        constant = node.args[1]
        cost = left_cost + right_cost
        if isinstance(constant, Const) and type(constant.value) is str:
            charge = smaller_of(len(constant.value), len(constant.value))
            return steps.equals_text(left, constant.value, negated), cost + charge
        scalar = self._type(node.args[0]).kind is Kind.PRIMITIVE
        if scalar and self._type(node.args[0]).name not in ("string", "bytes"):
            return steps.equals_scalar(left, right, negated), cost + 1
        return steps.equals(left, right, negated), cost

    def _contains(self, node: Call) -> Compiled:
        value, cost = self.build(node.args[0])
        container, container_cost = self.build(node.args[1])
        literal = _literal_texts(node.args[1])
        if literal is not None:
            return steps.in_texts(value, literal), cost
        return steps.contained(value, container), cost + container_cost

    def _index(self, node: Call) -> Compiled:
        container, cost = self.build(node.args[0])
        key, key_cost = self.build(node.args[1])
        if isinstance(node.args[1], Ident):
            key_cost = 0
        return steps.indexed(container, key), cost + key_cost + 1

    def _optional_select(self, node: Call) -> Compiled:
        operand, cost = self.build(node.args[0])
        name = node.args[1]
        assert isinstance(name, Const)
        return steps.optional_select(operand, name.value), cost + 1

    def _optional_index(self, node: Call) -> Compiled:
        container, cost = self.build(node.args[0])
        key, key_cost = self.build(node.args[1])
        return steps.optional_index(container, key), cost + key_cost + 1

    def _list(self, node: ListLiteral) -> Compiled:
        items = [self.build(item) for item in node.items]
        cost = sum(each[1] for each in items) + LIST_COST
        if not node.optional and all(isinstance(item, Const) for item in node.items):
            values = [item.value for item in node.items if isinstance(item, Const)]
            return steps.constant(values), 0
        return steps.make_list([each[0] for each in items], node.optional), cost

    def _map(self, node: MapLiteral) -> Compiled:
        cost: float = MAP_COST
        entries: list[tuple[Step, Step, bool]] = []
        for entry in node.entries:
            key, key_cost = self.build(entry.key)
            value, value_cost = self.build(entry.value)
            cost += key_cost + value_cost
            entries.append((key, value, entry.optional))
        return steps.make_map(entries), cost

    def _comprehension(self, node: Comprehension) -> Compiled:
        source, cost = self.build(node.range)
        slots = tuple(self._new_slot() for _ in node.variables)
        self._scopes.append(dict(zip(node.variables, slots, strict=True)))
        condition = None if node.filter is None else self.build(node.filter)
        body = None if node.body is None else self.build(node.body)
        self._scopes.pop()
        step = comprehensions.BUILDERS[node.macro](source, slots, condition, body)
        return step, cost + comprehensions.ENTRY_COST[node.macro]

    def _bind(self, node: Bind) -> Compiled:
        value, cost = self.build(node.value)
        slot = self._new_slot()
        self._scopes.append({node.variable: slot})
        body, body_cost = self.build(node.body)
        self._scopes.pop()
        return steps.bound(slot, value, body), cost + body_cost


_SPECIAL = {
    "_&&_": _Builder._logical,
    "_||_": _Builder._logical,
    "_?_:_": _Builder._choice,
    "_==_": _Builder._equality,
    "_!=_": _Builder._equality,
    "@in": _Builder._contains,
    "_[_]": _Builder._index,
    "_?._": _Builder._optional_select,
    "_[?_]": _Builder._optional_index,
}

_RUNTIME_NAMES = {
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
    "null": "null_type",
}


def _runtime_name(name: str) -> str:
    return _RUNTIME_NAMES.get(name, name)


def _literal_texts(node: Node) -> frozenset[str] | None:
    """``['a', 'b']`` as a set, when every item is a text."""
    if not isinstance(node, ListLiteral) or node.optional:
        return None
    texts = [item.value for item in node.items if isinstance(item, Const)]
    if len(texts) != len(node.items) or any(type(text) is not str for text in texts):
        return None
    return frozenset(texts)


def _refuse_bad_pattern(overload: Overload, operands: list[Node]) -> None:
    if overload.function not in ("find", "findAll"):
        return
    pattern = operands[1]
    if isinstance(pattern, Const) and (problem := pattern_problem(pattern.value)) is not None:
        raise BadProgram(f"error parsing regexp: {problem}")


_CONVERSIONS = frozenset(
    {"int", "uint", "double", "bool", "string", "bytes", "duration", "timestamp", "dyn"}
)


def _folded(overload: Overload, operands: list[Node]) -> Compiled | None:
    """``duration('1s')`` is computed once, while compiling, and is free from then on."""
    if overload.function not in _CONVERSIONS or len(operands) != 1:
        return None
    operand = operands[0]
    if not isinstance(operand, Const):
        return None
    try:
        return steps.constant(overload.impl(operand.value)), 0
    except CelError:
        return None
