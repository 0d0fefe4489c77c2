"""A checked tree becomes closures once; running it is calling them.

Every node is compiled to its closure and the part of its cost that does not depend on data.
Branches charge their own part only when taken. What is constant is computed here, once, and is free
from then on; a constant that cannot be computed makes the whole expression no program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from instar.cel import access, calls, comprehensions, logic
from instar.cel.ast import (
    Again,
    Call,
    Const,
    Fold,
    Ident,
    ListLiteral,
    Macro,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    scaffold,
)
from instar.cel.checked import Checked, Opened, Variable
from instar.cel.compiled import (
    Compiled,
    Form,
    Runnable,
    as_constant,
    compiles_pattern,
    dispatched,
    folded,
    height_above,
    literal,
    loop_part,
    membership,
    metered_texts,
    refuse_bad_key,
)
from instar.cel.dispatch import certain
from instar.cel.frame import FIRST_VARIABLE, Step
from instar.cel.functions import LIST_COST, MAP_COST, STRUCT_COST, Overload, tenth
from instar.cel.issues import BadProgram
from instar.cel.types import BYTES, STRING, Kind, Type, is_optional, runtime_name
from instar.cel.values import TypeValue

MAX_HEIGHT = 600
"""Closures inside each other: Python's stack must hold them, whatever stands below."""


def compile_tree(checked: Checked, variables: Sequence[str]) -> Runnable:
    """Raises BadProgram."""
    builder = _Builder(checked, variables)
    whole = builder.build()
    return Runnable(whole.step, whole.cost, (None,) * (builder.slots - len(variables)))


class _Builder:
    def __init__(self, checked: Checked, variables: Sequence[str]) -> None:
        self._checked = checked
        self.slots = 0
        self._declared = {name: self._new_slot() for name in variables}
        self._slots: dict[Variable, int] = {}
        self._binds: dict[Variable, tuple[int, Compiled]] = {}
        self._loops: dict[int, tuple[int, ...]] = {}
        self._unused: set[int] = set()
        """Nodes macros are made of: a loop runs without them."""
        self._done: dict[int, Compiled] = {}
        repeated = (node for node in checked.order if isinstance(node, Again))
        self._repeated = {id(node.node): self._new_slot() for node in repeated}

    def build(self) -> Compiled:
        done, repeated = self._done, self._repeated
        for node in self._checked.order:
            if isinstance(node, Opened):
                self._open(node)
                continue
            if id(node) in self._unused:
                continue
            if id(node) in self._checked.type_names:
                compiled = self._type_name(node)
            else:
                compiled = _BUILD[type(node)](self, node)
            if compiled.height > MAX_HEIGHT:
                raise BadProgram(f"expression is nested more than {MAX_HEIGHT} levels deep")
            if id(node) in repeated and compiled.form is not Form.CONSTANT:
                step = access.remembered(repeated[id(node)], compiled.step)
                compiled = compiled._replace(step=step)
            done[id(node)] = compiled
        return done[id(self._checked.tree)]

    def _part(self, node: Node) -> Compiled:
        return self._done[id(node)]

    def _type(self, node: Node) -> Type:
        return self._checked.types[id(node)]

    def _new_slot(self) -> int:
        self.slots += 1
        return FIRST_VARIABLE + self.slots - 1

    # Names and literals.

    def _type_name(self, node: Node) -> Compiled:
        name = self._checked.type_names[id(node)]
        return as_constant(TypeValue(runtime_name(name)))

    def _const(self, node: Const) -> Compiled:
        return as_constant(node.value)

    def _ident(self, node: Node) -> Compiled:
        variable = self._checked.names[id(node)]
        if variable in self._binds:
            slot, value = self._binds[variable]
            step = access.bound(slot, value.step, value.cost)
            return Compiled(step, 1, Form.ATTRIBUTE, height=value.height + 1)
        return Compiled(access.variable(self._slot(variable)), 1, Form.ATTRIBUTE)

    def _slot(self, variable: Variable) -> int:
        return self._slots[variable] if variable.fold else self._declared[variable.name]

    def _again(self, node: Again) -> Compiled:
        first = self._part(node.node)
        if first.form is Form.CONSTANT:
            return first
        return first._replace(step=access.again(self._repeated[id(node.node)]), height=1)

    def _list(self, node: ListLiteral) -> Compiled:
        items = [self._part(item) for item in node.items]
        made = access.make_list(
            [item.step for item in items], [item.cost for item in items], node.optional
        )
        return literal(made, items, LIST_COST)

    def _map(self, node: MapLiteral) -> Compiled:
        parts: list[Compiled] = []
        entries: list[tuple[Step, Step, bool]] = []
        for entry in node.entries:
            key, value = self._part(entry.key), self._part(entry.value)
            parts += (key, value)
            entries.append((key.step, value.step, entry.optional))
        kinds = {self._type(entry.key) for entry in node.entries}
        made = access.make_map(entries, [part.cost for part in parts], len(kinds) > 1)
        return literal(made, parts, MAP_COST)

    def _struct(self, node: StructLiteral) -> Compiled:
        parts = [self._part(field.value) for field in node.fields]
        fields = [
            (field.name, part.step, field.optional)
            for field, part in zip(node.fields, parts, strict=True)
        ]
        name = self._type(node).name
        made = access.make_struct(name, fields, [part.cost for part in parts])
        cost = sum(part.cost for part in parts) + STRUCT_COST
        return Compiled(made, cost, height=height_above(parts))

    # Access.

    def _select(self, node: Select) -> Compiled:
        if id(node) in self._checked.names:
            return self._ident(node)
        operand, of = self._part(node.operand), self._type(node.operand)
        form = Form.CHOICE if operand.form is Form.CHOICE else Form.ATTRIBUTE
        height = operand.height + 1
        if is_optional(of) and self._lies_in_a_map(node.operand):
            step = access.sealed(operand.step, node.field, test=node.test)
            return Compiled(step, operand.qualified() + (not node.test), form, height=height)
        declared = of.declared if of.kind is Kind.OBJECT else None
        field = None if declared is None else declared.field_named(node.field)
        if node.test:
            if field is not None:
                step = access.has_field(operand.step, node.field, field)
            else:
                step = access.has_selected(operand.step, node.field)
            return Compiled(step, operand.qualified(), height=height)
        if is_optional(of):
            step = access.optional_field(operand.step, node.field)
            return Compiled(step, operand.qualified(), form, height=height)
        if field is None:
            step = access.selected(operand.step, node.field)
        elif isinstance(node.operand, Ident) and not operand.height:
            slot = self._slot(self._checked.names[id(node.operand)])
            step = access.variable_field(slot, node.field, field)
        else:
            step = access.field(operand.step, node.field, field)
        return Compiled(step, operand.qualified() + 1, form, height=height)

    def _lies_in_a_map(self, node: Node) -> bool:
        """The optional is what a field or element holds, not what reaching it made."""
        if isinstance(node, Call) and node.function == "_[_]" and node.target is None:
            return not is_optional(self._type(node.args[0]))
        if isinstance(node, Select) and id(node) not in self._checked.names:
            return not is_optional(self._type(node.operand))
        return False

    def _index(self, node: Call) -> Compiled:
        container, key = self._part(node.args[0]), self._part(node.args[1])
        form = Form.CHOICE if container.form is Form.CHOICE else Form.ATTRIBUTE
        height = 1 + max(container.height, key.height)
        if key.form is Form.CONSTANT:
            refuse_bad_key(key.value)
        if node.function == "_[?_]" or is_optional(self._type(node.args[0])):
            step = access.optional_index(container.step, key.step, key.inner())
            return Compiled(step, container.qualified(), form, height=height)
        if key.form is Form.CONSTANT:
            step = access.selected(container.step, key.value)
        else:
            step = access.indexed(container.step, key.step, key.inner())
        return Compiled(step, container.qualified() + key.inner() + 1, form, height=height)

    def _optional_select(self, node: Call) -> Compiled:
        operand, name = self._part(node.args[0]), node.args[1]
        assert isinstance(name, Const)
        form = Form.CHOICE if operand.form is Form.CHOICE else Form.ATTRIBUTE
        step = access.optional_field(operand.step, name.value)
        return Compiled(step, operand.qualified(), form, height=operand.height + 1)

    # Calls.

    def _call(self, node: Call) -> Compiled:
        special = _SPECIAL.get(node.function) if node.target is None else None
        if special is None and node.target is not None:
            special = _SPECIAL_METHODS.get(node.function)
        if special is not None:
            return special(self, node)
        operands = self._checked.operands(node)
        parts = [self._part(each) for each in operands]
        cost, height = sum(part.cost for part in parts), height_above(parts)
        arguments = [part.step for part in parts]
        candidates = self._checked.calls[id(node)]
        overload = candidates[0]
        if len(candidates) > 1 or not certain(overload.params, tuple(map(self._type, operands))):
            step = dispatched(candidates, arguments)
        elif compiles_pattern(overload, parts) and len(parts) == 2:
            step = calls.with_pattern(overload, arguments[0], parts[1].value)
        elif len(parts) > 2 or overload.function == "format":
            step = calls.early(overload, arguments, [part.cost for part in parts])
        elif overload.work is None and overload.weigh is None:
            step, cost = calls.call(overload, arguments), cost + 1
        elif self._are_texts(overload, operands):
            step = metered_texts(overload, parts)
        else:
            step = calls.metered(overload, arguments)
        return folded(overload, Compiled(step, cost, height=height), parts)

    def _are_texts(self, overload: Overload, operands: Sequence[Node]) -> bool:
        texts = all(self._type(each) in (STRING, BYTES) for each in operands)
        return overload.work is not None and len(operands) == 2 and texts

    def _logical(self, node: Call) -> Compiled:
        left, right = self._part(node.args[0]), self._part(node.args[1])
        decisive = node.function == "_||_"
        step = logic.logical(left.step, right.step, right.cost, decisive)
        return Compiled(step, left.cost, height=1 + max(left.height, right.height))

    def _choice(self, node: Call) -> Compiled:
        condition, then, otherwise = [self._part(each) for each in node.args]
        step = logic.choice(
            condition.step, then.step, then.inner(), otherwise.step, otherwise.inner()
        )
        height = height_above([condition, then, otherwise])
        return Compiled(step, condition.cost, Form.CHOICE, height=height)

    def _first_present(self, node: Call) -> Compiled:
        assert node.target is not None
        left, right = self._part(node.target), self._part(node.args[0])
        unwrap = node.function == "orValue"
        step = logic.first_present(left.step, right.step, right.cost, unwrap=unwrap)
        return Compiled(step, left.cost, height=1 + max(left.height, right.height))

    def _equality(self, node: Call) -> Compiled:
        negated = node.function == "_!=_"
        left, right = self._part(node.args[0]), self._part(node.args[1])
        cost, height = left.cost + right.cost, 1 + max(left.height, right.height)
        kind = self._type(node.args[0])
        if right.form is Form.CONSTANT and type(right.value) is str and kind == STRING:
            step = calls.equals_text(left.step, right.value, negated)
            return Compiled(step, cost + tenth(len(right.value)), height=height)
        if kind.kind is Kind.PRIMITIVE and kind not in (STRING, BYTES):
            step = calls.equals_scalar(left.step, right.step, negated)
            return Compiled(step, cost + 1, height=height)
        return Compiled(calls.equals(left.step, right.step, negated), cost, height=height)

    def _contains(self, node: Call) -> Compiled:
        value, container = self._part(node.args[0]), self._part(node.args[1])
        candidates = self._checked.calls[id(node)]
        listed = len(candidates) == 1 and candidates[0].params[1].kind is Kind.LIST
        if listed and container.form is Form.CONSTANT:
            if not container.value:
                return as_constant(False)
            found = membership(value.step, container.value)
            if found is not None:
                return Compiled(found, value.cost, height=value.height + 1)
        step = calls.contained(value.step, container.step, per_element=listed)
        cost = value.cost + container.cost + (0 if listed else 1)
        return Compiled(step, cost, height=1 + max(value.height, container.height))

    # Folds.

    def _open(self, opened: Opened) -> None:
        if opened.fold.macro is Macro.BIND:
            value = self._part(opened.fold.initial)
            self._binds[opened.accumulator] = (self._new_slot(), value)
            return
        for variable in opened.variables:
            self._slots[variable] = self._new_slot()
        self._loops[id(opened.fold)] = tuple(self._slots[each] for each in opened.variables)
        self._unused.update(map(id, scaffold(opened.fold)))

    def _fold(self, node: Fold) -> Compiled:
        if node.macro is Macro.BIND:
            return self._bind(node)
        source = self._part(node.range)
        condition = None if node.filter is None else self._part(node.filter)
        body = None if node.body is None else self._part(node.body)
        step = comprehensions.BUILDERS[node.macro](
            source.step, self._loops[id(node)], loop_part(condition), loop_part(body)
        )
        cost = source.cost + comprehensions.ENTRY_COST[node.macro]
        return Compiled(step, cost, height=_loop_height(node.macro, source, condition, body))

    def _bind(self, node: Fold) -> Compiled:
        body = self._part(node.result)
        variable = next(each for each in self._binds if each.fold is node)
        step = access.opened(self._binds[variable][0], body.step)
        return Compiled(step, body.cost, height=body.height + 1)


_BUILD: dict[type, Callable[[_Builder, Any], Compiled]] = {
    Const: _Builder._const,
    Ident: _Builder._ident,
    Select: _Builder._select,
    Call: _Builder._call,
    ListLiteral: _Builder._list,
    MapLiteral: _Builder._map,
    StructLiteral: _Builder._struct,
    Fold: _Builder._fold,
    Again: _Builder._again,
}
_SPECIAL: dict[str, Callable[[_Builder, Call], Compiled]] = {
    "_&&_": _Builder._logical,
    "_||_": _Builder._logical,
    "_?_:_": _Builder._choice,
    "_==_": _Builder._equality,
    "_!=_": _Builder._equality,
    "@in": _Builder._contains,
    "_[_]": _Builder._index,
    "_?._": _Builder._optional_select,
    "_[?_]": _Builder._index,
}
_SPECIAL_METHODS: dict[str, Callable[[_Builder, Call], Compiled]] = {
    "or": _Builder._first_present,
    "orValue": _Builder._first_present,
}


def _loop_height(
    macro: Macro, source: Compiled, condition: Compiled | None, body: Compiled | None
) -> int:
    """How many Python frames lie between a loop and what is innermost in its parts."""
    asking = 1 if macro in (Macro.ALL, Macro.EXISTS) else 4
    return max(
        source.height + 2,
        0 if condition is None else condition.height + asking,
        0 if body is None else body.height + 3,
    )
