"""Compiler from a checked CEL tree to closures; running the expression calls them.

Called by ``engine.prepare``. Each node becomes a closure and its static cost; the cost of a branch
is charged only when the branch is taken. Constants are computed here, once; a constant that fails
makes the program invalid (BadProgram).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from instar.kube.cel.checking.checked import Checked, OpenedOptional, Variable
from instar.kube.cel.functions import LIST_COST, MAP_COST, STRUCT_COST, Overload, traversal_cost
from instar.kube.cel.runtime import calls, comprehensions, field_access, logic
from instar.kube.cel.runtime.compiled import (
    CompiledNode,
    NodeForm,
    Runnable,
    as_constant,
    compile_dispatch,
    compile_text_call,
    compiles_pattern,
    fold_constant_call,
    height_above,
    literal,
    loop_part,
    membership,
    refuse_bad_key,
)
from instar.kube.cel.runtime.dispatch import certain
from instar.kube.cel.runtime.frame import FIRST_VARIABLE, Step
from instar.kube.cel.syntax.ast import (
    CallNode,
    Const,
    Fold,
    Ident,
    ListLiteral,
    Macro,
    MapLiteral,
    Node,
    Select,
    SharedTree,
    StructLiteral,
    scaffold,
)
from instar.kube.cel.syntax.issues import BadProgram
from instar.kube.cel.types import BYTES, STRING, CelKind, Type, is_optional, runtime_name
from instar.kube.cel.values import TypeValue

MAX_HEIGHT = 600
"""Maximum nesting of closures, which Python's stack must hold."""


def compile_tree(checked: Checked, variables: Sequence[str]) -> Runnable:
    """Compile a tree. Raises BadProgram."""
    builder = _Builder(checked, variables)
    whole = builder.build()
    return Runnable(whole.step, whole.cost, (None,) * (builder.slots - len(variables)))


class _Builder:
    def __init__(self, checked: Checked, variables: Sequence[str]) -> None:
        self._checked = checked
        self.slots = 0
        self._declared = {name: self._new_slot() for name in variables}
        self._slots: dict[Variable, int] = {}
        self._binds: dict[Variable, tuple[int, CompiledNode]] = {}
        self._loops: dict[int, tuple[int, ...]] = {}
        self._unused: set[int] = set()
        """Nodes of macro expansions that the loops replace."""
        self._done: dict[int, CompiledNode] = {}
        repeated = (node for node in checked.order if isinstance(node, SharedTree))
        self._repeated = {id(node.node): self._new_slot() for node in repeated}

    def build(self) -> CompiledNode:
        done, repeated = self._done, self._repeated
        for node in self._checked.order:
            if isinstance(node, OpenedOptional):
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
            if id(node) in repeated and compiled.form is not NodeForm.CONSTANT:
                step = field_access.store_in_slot(repeated[id(node)], compiled.step)
                compiled = compiled._replace(step=step)
            done[id(node)] = compiled
        return done[id(self._checked.tree)]

    def _part(self, node: Node) -> CompiledNode:
        return self._done[id(node)]

    def _type(self, node: Node) -> Type:
        return self._checked.types[id(node)]

    def _new_slot(self) -> int:
        self.slots += 1
        return FIRST_VARIABLE + self.slots - 1

    # Names and literals

    def _type_name(self, node: Node) -> CompiledNode:
        name = self._checked.type_names[id(node)]
        return as_constant(TypeValue(runtime_name(name)))

    def _const(self, node: Const) -> CompiledNode:
        return as_constant(node.value)

    def _ident(self, node: Node) -> CompiledNode:
        variable = self._checked.names[id(node)]
        if variable in self._binds:
            slot, value = self._binds[variable]
            step = field_access.bound(slot, value.step, value.cost)
            return CompiledNode(step, 1, NodeForm.ATTRIBUTE, height=value.height + 1)
        return CompiledNode(field_access.variable(self._slot(variable)), 1, NodeForm.ATTRIBUTE)

    def _slot(self, variable: Variable) -> int:
        return self._slots[variable] if variable.fold else self._declared[variable.name]

    def _shared_tree(self, node: SharedTree) -> CompiledNode:
        first = self._part(node.node)
        if first.form is NodeForm.CONSTANT:
            return first
        return first._replace(
            step=field_access.load_from_slot(self._repeated[id(node.node)]), height=1
        )

    def _list(self, node: ListLiteral) -> CompiledNode:
        items = [self._part(item) for item in node.items]
        made = field_access.make_list(
            [item.step for item in items], [item.cost for item in items], node.optional
        )
        return literal(made, items, LIST_COST)

    def _map(self, node: MapLiteral) -> CompiledNode:
        parts: list[CompiledNode] = []
        entries: list[tuple[Step, Step, bool]] = []
        for entry in node.entries:
            key, value = self._part(entry.key), self._part(entry.value)
            parts += (key, value)
            entries.append((key.step, value.step, entry.optional))
        kinds = {self._type(entry.key) for entry in node.entries}
        made = field_access.make_map(entries, [part.cost for part in parts], len(kinds) > 1)
        return literal(made, parts, MAP_COST)

    def _struct(self, node: StructLiteral) -> CompiledNode:
        parts = [self._part(field.value) for field in node.fields]
        fields = [
            (field.name, part.step, field.optional)
            for field, part in zip(node.fields, parts, strict=True)
        ]
        name = self._type(node).name
        made = field_access.make_struct(name, fields, [part.cost for part in parts])
        cost = sum(part.cost for part in parts) + STRUCT_COST
        return CompiledNode(made, cost, height=height_above(parts))

    # Access

    def _select(self, node: Select) -> CompiledNode:
        if id(node) in self._checked.names:
            return self._ident(node)
        operand, of = self._part(node.operand), self._type(node.operand)
        form = NodeForm.CHOICE if operand.form is NodeForm.CHOICE else NodeForm.ATTRIBUTE
        height = operand.height + 1
        if is_optional(of) and self._is_stored_optional(node.operand):
            step = field_access.select_optional_member(operand.step, node.field, test=node.test)
            return CompiledNode(step, operand.qualified() + (not node.test), form, height=height)
        declared = of.declared if of.kind is CelKind.OBJECT else None
        field = None if declared is None else declared.field_named(node.field)
        if node.test:
            if field is not None:
                step = field_access.has_field(operand.step, node.field, field)
            else:
                step = field_access.has_selected(operand.step, node.field)
            return CompiledNode(step, operand.qualified(), height=height)
        if is_optional(of):
            step = field_access.optional_field(operand.step, node.field)
            return CompiledNode(step, operand.qualified(), form, height=height)
        if field is None:
            step = field_access.select_dynamic(operand.step, node.field)
        elif isinstance(node.operand, Ident) and not operand.height:
            slot = self._slot(self._checked.names[id(node.operand)])
            step = field_access.variable_field(slot, node.field, field)
        else:
            step = field_access.field(operand.step, node.field, field)
        return CompiledNode(step, operand.qualified() + 1, form, height=height)

    def _is_stored_optional(self, node: Node) -> bool:
        """Return whether the optional is the value of a field or element, not the result of an
        optional access."""
        if isinstance(node, CallNode) and node.function == "_[_]" and node.target is None:
            return not is_optional(self._type(node.args[0]))
        if isinstance(node, Select) and id(node) not in self._checked.names:
            return not is_optional(self._type(node.operand))
        return False

    def _index(self, node: CallNode) -> CompiledNode:
        container, key = self._part(node.args[0]), self._part(node.args[1])
        form = NodeForm.CHOICE if container.form is NodeForm.CHOICE else NodeForm.ATTRIBUTE
        height = 1 + max(container.height, key.height)
        if key.form is NodeForm.CONSTANT:
            refuse_bad_key(key.value)
        if node.function == "_[?_]" or is_optional(self._type(node.args[0])):
            step = field_access.optional_index(container.step, key.step, key.inner())
            return CompiledNode(step, container.qualified(), form, height=height)
        if key.form is NodeForm.CONSTANT:
            step = field_access.select_dynamic(container.step, key.value)
        else:
            step = field_access.index_container(container.step, key.step, key.inner())
        return CompiledNode(step, container.qualified() + key.inner() + 1, form, height=height)

    def _optional_select(self, node: CallNode) -> CompiledNode:
        operand, name = self._part(node.args[0]), node.args[1]
        assert isinstance(name, Const)
        form = NodeForm.CHOICE if operand.form is NodeForm.CHOICE else NodeForm.ATTRIBUTE
        step = field_access.optional_field(operand.step, name.value)
        return CompiledNode(step, operand.qualified(), form, height=operand.height + 1)

    # Calls

    def _call(self, node: CallNode) -> CompiledNode:
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
            step = compile_dispatch(candidates, arguments)
        elif compiles_pattern(overload, parts) and len(parts) == 2:
            step = calls.with_pattern(overload, arguments[0], parts[1].value)
        elif len(parts) > 2 or overload.function == "format":
            step = calls.early(overload, arguments, [part.cost for part in parts])
        elif overload.work is None and overload.weigh is None:
            step, cost = calls.call(overload, arguments), cost + 1
        elif self._are_texts(overload, operands):
            step = compile_text_call(overload, parts)
        else:
            step = calls.metered_call(overload, arguments)
        return fold_constant_call(overload, CompiledNode(step, cost, height=height), parts)

    def _are_texts(self, overload: Overload, operands: Sequence[Node]) -> bool:
        texts = all(self._type(each) in (STRING, BYTES) for each in operands)
        return overload.work is not None and len(operands) == 2 and texts

    def _logical(self, node: CallNode) -> CompiledNode:
        left, right = self._part(node.args[0]), self._part(node.args[1])
        decisive = node.function == "_||_"
        step = logic.logical(left.step, right.step, right.cost, decisive)
        return CompiledNode(step, left.cost, height=1 + max(left.height, right.height))

    def _choice(self, node: CallNode) -> CompiledNode:
        condition, then, otherwise = [self._part(each) for each in node.args]
        step = logic.choice(
            condition.step, then.step, then.inner(), otherwise.step, otherwise.inner()
        )
        height = height_above([condition, then, otherwise])
        return CompiledNode(step, condition.cost, NodeForm.CHOICE, height=height)

    def _first_present(self, node: CallNode) -> CompiledNode:
        assert node.target is not None
        left, right = self._part(node.target), self._part(node.args[0])
        unwrap = node.function == "orValue"
        step = logic.first_present(left.step, right.step, right.cost, unwrap=unwrap)
        return CompiledNode(step, left.cost, height=1 + max(left.height, right.height))

    def _equality(self, node: CallNode) -> CompiledNode:
        negated = node.function == "_!=_"
        left, right = self._part(node.args[0]), self._part(node.args[1])
        cost, height = left.cost + right.cost, 1 + max(left.height, right.height)
        kind = self._type(node.args[0])
        if right.form is NodeForm.CONSTANT and type(right.value) is str and kind == STRING:
            step = calls.equals_text(left.step, right.value, negated)
            return CompiledNode(step, cost + traversal_cost(len(right.value)), height=height)
        if kind.kind is CelKind.PRIMITIVE and kind not in (STRING, BYTES):
            step = calls.equals_scalar(left.step, right.step, negated)
            return CompiledNode(step, cost + 1, height=height)
        return CompiledNode(calls.equals(left.step, right.step, negated), cost, height=height)

    def _contains(self, node: CallNode) -> CompiledNode:
        value, container = self._part(node.args[0]), self._part(node.args[1])
        candidates = self._checked.calls[id(node)]
        listed = len(candidates) == 1 and candidates[0].params[1].kind is CelKind.LIST
        if listed and container.form is NodeForm.CONSTANT:
            if not container.value:
                return as_constant(False)
            found = membership(value.step, container.value)
            if found is not None:
                return CompiledNode(found, value.cost, height=value.height + 1)
        step = calls.membership_test(value.step, container.step, per_element=listed)
        cost = value.cost + container.cost + (0 if listed else 1)
        return CompiledNode(step, cost, height=1 + max(value.height, container.height))

    # Folds

    def _open(self, opened: OpenedOptional) -> None:
        if opened.fold.macro is Macro.BIND:
            value = self._part(opened.fold.initial)
            self._binds[opened.accumulator] = (self._new_slot(), value)
            return
        for variable in opened.variables:
            self._slots[variable] = self._new_slot()
        self._loops[id(opened.fold)] = tuple(self._slots[each] for each in opened.variables)
        self._unused.update(map(id, scaffold(opened.fold)))

    def _fold(self, node: Fold) -> CompiledNode:
        if node.macro is Macro.BIND:
            return self._bind(node)
        source = self._part(node.range)
        condition = None if node.filter is None else self._part(node.filter)
        body = None if node.body is None else self._part(node.body)
        step = comprehensions.BUILDERS[node.macro](
            source.step, self._loops[id(node)], loop_part(condition), loop_part(body)
        )
        cost = source.cost + comprehensions.ENTRY_COST[node.macro]
        return CompiledNode(step, cost, height=_loop_height(node.macro, source, condition, body))

    def _bind(self, node: Fold) -> CompiledNode:
        body = self._part(node.result)
        variable = next(each for each in self._binds if each.fold is node)
        step = field_access.clear_slot_before(self._binds[variable][0], body.step)
        return CompiledNode(step, body.cost, height=body.height + 1)


_BUILD: dict[type, Callable[[_Builder, Any], CompiledNode]] = {
    Const: _Builder._const,
    Ident: _Builder._ident,
    Select: _Builder._select,
    CallNode: _Builder._call,
    ListLiteral: _Builder._list,
    MapLiteral: _Builder._map,
    StructLiteral: _Builder._struct,
    Fold: _Builder._fold,
    SharedTree: _Builder._shared_tree,
}
_SPECIAL: dict[str, Callable[[_Builder, CallNode], CompiledNode]] = {
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
_SPECIAL_METHODS: dict[str, Callable[[_Builder, CallNode], CompiledNode]] = {
    "or": _Builder._first_present,
    "orValue": _Builder._first_present,
}


def _loop_height(
    macro: Macro, source: CompiledNode, condition: CompiledNode | None, body: CompiledNode | None
) -> int:
    """Return the Python frames between a loop and the innermost of its parts."""
    asking = 1 if macro in (Macro.ALL, Macro.EXISTS) else 4
    return max(
        source.height + 2,
        0 if condition is None else condition.height + asking,
        0 if body is None else body.height + 3,
    )
