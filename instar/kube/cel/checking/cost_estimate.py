"""Cost estimate: the worst-case cost of an expression from declared maximum sizes.

Called by ``kube/schema/cel_rules/compile.py`` when a CRD is written. The estimate follows upstream
step by step, because the result decides whether a rule is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from instar.kube.cel.checking.checked import Checked, OpenedOptional, Variable
from instar.kube.cel.checking.cost_ranges import MOST, NOTHING, ONE, UNKNOWN, Range, exactly
from instar.kube.cel.functions import (
    LIST_COST,
    MAP_COST,
    STRUCT_COST,
    Argument,
    CallSite,
    CostEstimate,
    Overload,
    Path,
    SizeAt,
)
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
)
from instar.kube.cel.types import CelKind, Type, unwrap_optional

_NO_ITEMS = Range(MOST, 0)
"""Size of a literal's elements before the first one is counted."""
_SCALARS = ("bool", "double", "int", "uint", "duration", "timestamp")
_STEPPED = (CelKind.MAP, CelKind.OBJECT, CelKind.PARAM)


class Entries(NamedTuple):
    """Sizes of the keys and values of a container that the expression builds."""

    is_list: bool
    key: Range
    value: Range


class _Local(NamedTuple):
    """Known size and path of a loop variable or accumulator."""

    path: Path
    size: Range | None
    entries: Entries | None


def estimate(checked: Checked, size_at: SizeAt) -> Range:
    """Return the cost of one evaluation at the smallest and largest possible sizes."""
    return _Estimator(checked, size_at).run()


class _Estimator:
    def __init__(self, checked: Checked, size_at: SizeAt) -> None:
        self._checked = checked
        self._size_at = size_at
        self._costs: dict[int, Range] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, Entries] = {}
        self._paths: dict[int, Path] = {}
        self._locals: dict[Variable, _Local] = {}

    def run(self) -> Range:
        for node in self._checked.order:
            if isinstance(node, OpenedOptional):
                self._open(node)
            else:
                self._costs[id(node)] = _COSTS[type(node)](self, node)
        return self._costs[id(self._checked.tree)]

    def _cost(self, node: Node) -> Range:
        return self._costs[id(node)]

    def _type(self, node: Node) -> Type:
        return self._checked.types[id(node)]

    # Sizes and paths

    def _local(self, node: Node) -> _Local | None:
        variable = self._checked.names.get(id(node))
        return None if variable is None else self._locals.get(variable)

    def _path(self, node: Node) -> Path:
        if isinstance(node, SharedTree):
            return self._path(node.node)
        local = self._local(node)
        return self._paths.get(id(node), ()) if local is None else local.path

    def _size(self, node: Node) -> Range | None:
        if isinstance(node, SharedTree):
            return self._size(node.node)
        known = self._sizes.get(id(node))
        if known is not None:
            return known
        literal = _literal_size(node)
        if literal is not None:
            return literal
        path = self._path(node)
        declared = self._size_at(path) if path else None
        if declared is not None:
            self._sizes[id(node)] = declared
            return declared
        if _is_scalar(self._type(node)):
            return ONE
        local = self._local(node)
        return None if local is None else local.size

    def _known_size(self, node: Node) -> Range:
        size = self._size(node)
        return UNKNOWN if size is None else size

    def _entries_of(self, node: Node) -> Entries | None:
        if isinstance(node, SharedTree):
            return self._entries_of(node.node)
        found = self._entries.get(id(node))
        if found is None and (local := self._local(node)) is not None:
            return local.entries
        return found

    def _same_sizes(self, node: Node, source: Node) -> None:
        size, entries = self._size(source), self._entries_of(source)
        if size is not None:
            self._sizes[id(node)] = size
        if entries is not None:
            self._entries[id(node)] = entries

    # Nodes

    def _const(self, _node: Const) -> Range:
        return NOTHING

    def _ident(self, node: Node) -> Range:
        variable = self._checked.names.get(id(node))
        if variable is None:
            self._paths[id(node)] = (self._checked.type_names[id(node)],)
        elif variable not in self._locals:
            self._paths[id(node)] = (variable.name,)
        return ONE

    def _select(self, node: Select) -> Range:
        if id(node) in self._checked.names or id(node) in self._checked.type_names:
            return self._ident(node)
        cost = self._cost(node.operand)
        if node.test:
            return cost
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return cost.plus(ONE) if self._type(node.operand).kind in _STEPPED else cost

    def _shared_tree(self, node: SharedTree) -> Range:
        return self._cost(node.node)

    def _list(self, node: ListLiteral) -> Range:
        cost, items = exactly(LIST_COST), _NO_ITEMS if node.items else NOTHING
        for item in node.items:
            cost = cost.plus(self._cost(item))
            items = items.union(self._known_size(item))
        self._entries[id(node)] = Entries(True, ONE, items)
        return cost

    def _map(self, node: MapLiteral) -> Range:
        cost = exactly(MAP_COST)
        keys = values = _NO_ITEMS if node.entries else NOTHING
        for entry in node.entries:
            cost = cost.plus(self._cost(entry.key)).plus(self._cost(entry.value))
            keys = keys.union(self._known_size(entry.key))
            values = values.union(self._known_size(entry.value))
        self._entries[id(node)] = Entries(False, keys, values)
        return cost

    def _struct(self, node: StructLiteral) -> Range:
        cost = exactly(STRUCT_COST)
        for field in node.fields:
            cost = cost.plus(self._cost(field.value))
        return cost

    # Calls

    def _call(self, node: CallNode) -> Range:
        match node.function:
            case "_&&_" | "_||_":
                left, right = self._cost(node.args[0]), self._cost(node.args[1])
                return Range(left.low, left.plus(right).high)
            case "_?_:_":
                return self._choice(node)
            case "_?._":
                return self._cost(node.args[0]).plus(ONE)
            case "dyn":
                self._same_sizes(node, node.args[0])
                return self._cost(node.args[0]).plus(ONE)
        return self._function(node)

    def _choice(self, node: CallNode) -> Range:
        condition, then, otherwise = node.args
        size = self._known_size(then).union(self._known_size(otherwise))
        self._sizes[id(node)] = size
        self._join_entries(node, then, otherwise)
        return self._cost(condition).plus(self._cost(then).union(self._cost(otherwise)))

    def _join_entries(self, node: Node, left: Node, right: Node) -> None:
        one, other = self._entries_of(left), self._entries_of(right)
        if one is not None and other is not None:
            keys, values = one.key.union(other.key), one.value.union(other.value)
            self._entries[id(node)] = Entries(one.is_list, keys, values)

    def _function(self, node: CallNode) -> Range:
        total = NOTHING
        for each in self._checked.operands(node):
            total = total.plus(self._cost(each))
        overloads = self._checked.calls[id(node)]
        if len(overloads) == 1 and overloads[0].estimate is None and node.function != "_[_]":
            size = self._size(node)
            if size is not None:
                self._sizes[id(node)] = size
            return total.plus(ONE)
        return total.plus(self._own_cost(node, overloads))

    def _own_cost(self, node: CallNode, overloads: Sequence[Overload]) -> Range:
        arguments = [self._argument(each) for each in node.args]
        receiver = self._checked.receiver(node)
        target = None if receiver is None else self._argument(receiver)
        site = CallSite(target, arguments, self._size_at)
        if node.function == "_+_":
            self._join_entries(node, node.args[1], node.args[0])
        own, size = Range(MOST, 0), None
        for overload in overloads:
            found = CostEstimate(ONE) if overload.estimate is None else overload.estimate(site)
            own = own.union(found.cost)
            if found.size is not None:
                size = found.size if size is None else size.union(found.size)
            if node.function == "_[_]":
                size = self._step_into(node, overload.params[0])
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[id(node)] = size
        return own

    def _argument(self, node: Node) -> Argument:
        return Argument(node, self._type(node), self._path(node) or None, self._size(node))

    def _step_into(self, node: CallNode, container: Type) -> Range | None:
        """Return the size of an element: that of the container's elements, or that declared for
        the path."""
        if container.kind not in (CelKind.LIST, CelKind.MAP):
            return None
        step = "@items" if container.kind is CelKind.LIST else "@values"
        self._paths[id(node)] = (*self._path(node.args[0]), step)
        entries = self._entries_of(node.args[0])
        return None if entries is None else entries.value

    # Folds

    def _open(self, opened: OpenedOptional) -> None:
        fold = opened.fold
        initial = fold.initial
        self._locals[opened.accumulator] = _Local(
            self._path(initial), self._size(initial), self._entries_of(initial)
        )
        entries = self._entries_of(fold.range)
        listed = self._type(fold.range).kind is CelKind.LIST if entries is None else entries.is_list
        path = self._path(fold.range)
        key, value = (None, None) if entries is None else (entries.key, entries.value)
        by_key = _Local((*path, "@indices" if listed else "@keys"), key, None)
        by_value = _Local((*path, "@items" if listed else "@values"), value, None)
        single = by_value if listed else by_key
        known = (by_key, by_value) if len(opened.variables) == 2 else (single,)
        self._locals.update(zip(opened.variables, known, strict=True))

    def _fold(self, node: Fold) -> Range:
        entry = self._cost(node.range).plus(self._cost(node.initial)).plus(self._cost(node.result))
        if node.macro is Macro.BIND:
            self._same_sizes(node, node.result)
            return entry
        turns = self._known_size(node.range)
        turn = self._cost(node.step).plus(self._cost(node.condition))
        if isinstance(node.initial, Const):
            size = self._size(node.initial)
            if size is not None:
                self._sizes[id(node)] = size
        else:
            self._sizes[id(node)] = turns
            entries = self._entries_of(node.step)
            if entries is not None:
                self._entries[id(node)] = entries
        return entry.plus(turns.times(turn))


def _literal_size(node: Node) -> Range | None:
    match node:
        case Const(value=str() | bytes()):
            return exactly(len(node.value))
        case Const():
            return ONE
        case ListLiteral():
            return exactly(len(node.items))
        case MapLiteral():
            return exactly(len(node.entries))
    return None


def _is_scalar(of: Type) -> bool:
    return unwrap_optional(of).name in _SCALARS and not unwrap_optional(of).params


_COSTS: dict[type, Callable[[_Estimator, Any], Range]] = {
    Const: _Estimator._const,
    Ident: _Estimator._ident,
    Select: _Estimator._select,
    CallNode: _Estimator._call,
    ListLiteral: _Estimator._list,
    MapLiteral: _Estimator._map,
    StructLiteral: _Estimator._struct,
    Fold: _Estimator._fold,
    SharedTree: _Estimator._shared_tree,
}
