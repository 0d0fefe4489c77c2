"""Macro expansion: turns ``has``, ``all``, ``map``, ``optMap`` … into upstream's folds.

Called by ``parser.py`` for each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from instar.kube.cel.syntax.ast import (
    ACCUMULATOR,
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
)

_PREDICATES = {
    "all": (Macro.ALL, (1, 2)),
    "exists": (Macro.EXISTS, (1, 2)),
    "exists_one": (Macro.EXISTS_ONE, (1, 2)),
    "existsOne": (Macro.EXISTS_ONE, (1, 2)),
    "filter": (Macro.FILTER, (1,)),
}
"""The macro and its allowed numbers of variables; the last argument is the predicate."""

_BUILDERS = {
    "map": (Macro.MAP, 1),
    "transformList": (Macro.MAP, 2),
    "transformMap": (Macro.TRANSFORM_MAP, 2),
    "transformMapEntry": (Macro.TRANSFORM_ENTRY, 2),
}
"""The macro and its variables; an optional filter comes before the last argument."""

_OLD_ACCUMULATOR = "__result__"
_UNUSED = "#unused"
_SORTED = "@__sortBy_input__"


class MacroError(Exception):
    """The arguments do not fit the macro."""

    def __init__(self, pos: int, text: str) -> None:
        super().__init__(text)
        self.pos = pos


def expand(call: CallNode) -> Node:
    """Return the expanded macro, or the call itself if it is no macro. Raises MacroError."""
    name, count = call.function, len(call.args)
    if call.target is None:
        return _has(call) if name == "has" and count == 1 else call
    if name in _PREDICATES:
        macro, variables = _PREDICATES[name]
        return _fold(call, macro, count - 1) if count - 1 in variables else call
    if name in _BUILDERS:
        macro, wanted = _BUILDERS[name]
        return _fold(call, macro, wanted) if count in (wanted + 1, wanted + 2) else call
    special = _SPECIAL.get(name) if count == 2 else None
    return call if special is None else special(call, call.target)


def _has(call: CallNode) -> Node:
    argument = call.args[0]
    if isinstance(argument, Select):
        return Select(call.pos, argument.operand, argument.field, test=True)
    raise MacroError(argument.pos, "invalid argument to has() macro")


class _Loop(NamedTuple):
    """Arguments of a loop macro, and the nodes that all expansions use."""

    pos: int
    macro: Macro
    names: tuple[str, ...]
    source: Node
    filter: Node | None
    body: Node | None

    def so_far(self) -> Node:
        return Ident(self.pos, ACCUMULATOR)

    def literal(self, value: Any) -> Node:
        return Const(self.pos, value)

    def call(self, function: str, *args: Node) -> Node:
        return CallNode(self.pos, function, None, list(args))

    def fold(self, initial: Node, condition: Node, step: Node, result: Node) -> Fold:
        return Fold(
            self.pos,
            self.macro,
            self.names,
            self.source,
            ACCUMULATOR,
            initial,
            condition,
            step,
            result,
            self.filter,
            self.body,
        )

    def collected(self, nothing: Node, step: Node) -> Fold:
        """Return a fold over every element; those that fail the filter leave the result
        unchanged."""
        if self.filter is not None:
            step = self.call("_?_:_", self.filter, step, self.so_far())
        return self.fold(nothing, self.literal(True), step, self.so_far())


def _fold(call: CallNode, macro: Macro, variables: int) -> Fold:
    assert call.target is not None
    names = _variables(call, macro, variables)
    rest = call.args[variables:]
    predicate = call.function in _PREDICATES
    condition = rest[0] if predicate or len(rest) == 2 else None
    body = None if predicate else rest[-1]
    return _STEPS[macro](_Loop(call.pos, macro, names, call.target, condition, body))


def _variables(call: CallNode, macro: Macro, count: int) -> tuple[str, ...]:
    lists = count == 1 and macro in (Macro.MAP, Macro.FILTER)
    wanted = "argument is not an identifier" if lists else "argument must be a simple name"
    nodes = call.args[:count]
    names = tuple(_name(node, wanted) for node in nodes)
    if count == 2 and names[0] == names[1]:
        raise MacroError(nodes[1].pos, f"duplicate variable name: {names[0]}")
    for node, name in zip(nodes, names, strict=True):
        if name == _OLD_ACCUMULATOR:
            raise MacroError(node.pos, "iteration variable overwrites accumulator variable")
    return names


def _name(node: Node, otherwise: str) -> str:
    if isinstance(node, Ident):
        return node.name
    raise MacroError(node.pos, otherwise)


def _all(loop: _Loop) -> Fold:
    assert loop.filter is not None
    going = loop.call("@not_strictly_false", loop.so_far())
    step = loop.call("_&&_", loop.so_far(), loop.filter)
    return loop.fold(loop.literal(True), going, step, loop.so_far())


def _exists(loop: _Loop) -> Fold:
    assert loop.filter is not None
    going = loop.call("@not_strictly_false", loop.call("!_", loop.so_far()))
    step = loop.call("_||_", loop.so_far(), loop.filter)
    return loop.fold(loop.literal(False), going, step, loop.so_far())


def _exists_one(loop: _Loop) -> Fold:
    assert loop.filter is not None
    more = loop.call("_+_", loop.so_far(), loop.literal(1))
    step = loop.call("_?_:_", loop.filter, more, loop.so_far())
    result = loop.call("_==_", loop.so_far(), loop.literal(1))
    return loop.fold(loop.literal(0), loop.literal(True), step, result)


def _filter(loop: _Loop) -> Fold:
    return _append_each(loop, Ident(loop.pos, loop.names[0]))


def _map(loop: _Loop) -> Fold:
    assert loop.body is not None
    return _append_each(loop, loop.body)


def _append_each(loop: _Loop, element: Node) -> Fold:
    step = loop.call("_+_", loop.so_far(), ListLiteral(loop.pos, [element]))
    return loop.collected(ListLiteral(loop.pos, []), step)


def _transform_map(loop: _Loop) -> Fold:
    assert loop.body is not None
    key = Ident(loop.pos, loop.names[0])
    step = loop.call("cel.@mapInsert", loop.so_far(), key, loop.body)
    return loop.collected(MapLiteral(loop.pos, []), step)


def _transform_entry(loop: _Loop) -> Fold:
    assert loop.body is not None
    step = loop.call("cel.@mapInsert", loop.so_far(), loop.body)
    return loop.collected(MapLiteral(loop.pos, []), step)


_STEPS: dict[Macro, Callable[[_Loop], Fold]] = {
    Macro.ALL: _all,
    Macro.EXISTS: _exists,
    Macro.EXISTS_ONE: _exists_one,
    Macro.FILTER: _filter,
    Macro.MAP: _map,
    Macro.TRANSFORM_MAP: _transform_map,
    Macro.TRANSFORM_ENTRY: _transform_entry,
}


def _opt_map(call: CallNode, target: Node) -> Node:
    """Expand ``o.optMap(v, e)`` to ``o.hasValue() ? optional.of(e with v = o.value()) : none``."""
    body = CallNode(call.pos, "optional.of", None, [_with_value(call, target)])
    return _if_present(call.pos, target, body)


def _opt_flat_map(call: CallNode, target: Node) -> Node:
    return _if_present(call.pos, target, _with_value(call, target))


def _with_value(call: CallNode, target: Node) -> Node:
    otherwise = f"{call.function}() variable name must be a simple identifier"
    name = _name(call.args[0], otherwise)
    value = CallNode(call.pos, "value", SharedTree(target.pos, target), [])
    return _bind(call.pos, name, value, call.args[1])


def _if_present(pos: int, target: Node, then: Node) -> Node:
    present = CallNode(pos, "hasValue", target, [])
    return CallNode(pos, "_?_:_", None, [present, then, CallNode(pos, "optional.none", None, [])])


def _sort_by(call: CallNode, target: Node) -> Node:
    pos = call.pos
    if isinstance(target, (Const, MapLiteral)):
        text = (
            "sortBy can only be applied to a list, identifier, comprehension, call or select "
            "expression"
        )
        raise MacroError(target.pos, text)
    names = _variables(call, Macro.MAP, 1)
    keys = _map(_Loop(pos, Macro.MAP, names, Ident(pos, _SORTED), None, call.args[1]))
    ordered = CallNode(pos, "@sortByAssociatedKeys", Ident(pos, _SORTED), [keys])
    return _bind(pos, _SORTED, target, ordered)


def _bind(pos: int, name: str, value: Node, body: Node) -> Fold:
    nothing, never = ListLiteral(pos, []), Const(pos, False)
    return Fold(pos, Macro.BIND, (_UNUSED,), nothing, name, value, never, Ident(pos, name), body)


_SPECIAL: dict[str, Callable[[CallNode, Node], Node]] = {
    "optMap": _opt_map,
    "optFlatMap": _opt_flat_map,
    "sortBy": _sort_by,
}
