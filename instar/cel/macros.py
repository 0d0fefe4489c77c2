"""Macros: calls that bind a name instead of passing a value. Expanded while parsing."""

from __future__ import annotations

from collections.abc import Callable

from instar.cel.ast import (
    Bind,
    Call,
    Comprehension,
    Ident,
    Macro,
    Node,
    Select,
)
from instar.cel.issues import BadExpression, Issue

_PREDICATES = {
    ("all", 1): Macro.ALL,
    ("exists", 1): Macro.EXISTS,
    ("exists_one", 1): Macro.EXISTS_ONE,
    ("existsOne", 1): Macro.EXISTS_ONE,
    ("filter", 1): Macro.FILTER,
    ("all", 2): Macro.ALL,
    ("exists", 2): Macro.EXISTS,
    ("existsOne", 2): Macro.EXISTS_ONE,
}
"""By name and number of variables; the last argument is the predicate."""

_BUILDERS = {
    ("map", 1): Macro.MAP,
    ("transformList", 2): Macro.MAP,
    ("transformMap", 2): Macro.TRANSFORM_MAP,
    ("transformMapEntry", 2): Macro.TRANSFORM_ENTRY,
}
"""By name and number of variables; an optional filter stands before the last argument."""


def expand(source: str, call: Call) -> Node:
    """The call itself, unless its name and argument count are a macro's."""
    if call.target is None:
        return _has(source, call) if call.function == "has" and len(call.args) == 1 else call
    count = len(call.args)
    predicate = _PREDICATES.get((call.function, count - 1))
    if predicate is not None:
        return _comprehension(source, call, predicate, count - 1)
    for variables in (1, 2):
        builder = _BUILDERS.get((call.function, variables))
        if builder is not None and count in (variables + 1, variables + 2):
            return _comprehension(source, call, builder, variables)
    special = _SPECIAL.get((call.function, count))
    return call if special is None else special(source, call)


def _has(source: str, call: Call) -> Node:
    argument = call.args[0]
    if isinstance(argument, Select) and not argument.test:
        return Select(call.pos, argument.operand, argument.field, test=True)
    raise BadExpression(source, [Issue(call.pos, "invalid argument to has() macro")])


def _comprehension(source: str, call: Call, macro: Macro, variables: int) -> Node:
    names = tuple(_variable(source, node) for node in call.args[:variables])
    if len(set(names)) != len(names):
        issue = Issue(call.args[1].pos, f"duplicate variable name: {names[1]}")
        raise BadExpression(source, [issue])
    rest = call.args[variables:]
    assert call.target is not None
    if (call.function, variables) in _PREDICATES:
        return Comprehension(call.pos, macro, names, call.target, rest[0], None)
    condition = rest[0] if len(rest) == 2 else None
    return Comprehension(call.pos, macro, names, call.target, condition, rest[-1])


def _variable(source: str, node: Node) -> str:
    if isinstance(node, Ident):
        return node.name
    raise BadExpression(source, [Issue(node.pos, "argument must be a simple name")])


def _opt_map(source: str, call: Call) -> Node:
    """``o.optMap(v, e)`` is ``o.hasValue() ? optional.of(e with v = o.value()) : none``."""
    return _optional(source, call, wrap=True)


def _opt_flat_map(source: str, call: Call) -> Node:
    return _optional(source, call, wrap=False)


def _optional(source: str, call: Call, *, wrap: bool) -> Node:
    name = _variable(source, call.args[0])
    assert call.target is not None
    pos = call.pos
    held = Ident(pos, "@optional")
    body: Node = Bind(pos, name, Call(pos, "value", held, []), call.args[1])
    if wrap:
        body = Call(pos, "optional.of", None, [body])
    none = Call(pos, "optional.none", None, [])
    choice = Call(pos, "_?_:_", None, [Call(pos, "hasValue", held, []), body, none])
    return Bind(pos, "@optional", call.target, choice)


def _sort_by(source: str, call: Call) -> Node:
    assert call.target is not None
    name = _variable(source, call.args[0])
    held = Ident(call.pos, "@list")
    keys = Comprehension(call.pos, Macro.MAP, (name,), held, None, call.args[1])
    ordered = Call(call.pos, "@sortByAssociatedKeys", held, [keys])
    return Bind(call.pos, "@list", call.target, ordered)


_SPECIAL: dict[tuple[str, int], Callable[[str, Call], Node]] = {
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
    ("sortBy", 2): _sort_by,
}
