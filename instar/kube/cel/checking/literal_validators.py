"""Checks of literals after type checking: durations, timestamps, patterns, ``format`` arguments.

Called by ``engine.analyse``. The module also checks that literal lists and maps are homogeneous.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.kube.cel.checking.checked import Checked, OpenedOptional
from instar.kube.cel.library.formatting import format_issues
from instar.kube.cel.library.standard import pattern
from instar.kube.cel.syntax.ast import CallNode, Const, ListLiteral, MapLiteral, Node, children
from instar.kube.cel.syntax.issues import BadExpression, Issue
from instar.kube.cel.types import Type, equivalent, unwrap_optional
from instar.kube.cel.values import CelError

_EVALUATED_FUNCTIONS = ("duration", "timestamp")
_MIXING_FUNCTION = "format"
"""The function that accepts lists of mixed types."""


def validate(checked: Checked) -> None:
    """Check all literals. Raises BadExpression."""
    issues: list[Issue] = []
    mixed = _may_mix(checked)
    for node in checked.order:
        match node:
            case CallNode():
                issues += _call_issues(checked, node)
            case ListLiteral() if id(node) not in mixed:
                issues += _list_issues(checked, node)
            case MapLiteral() if id(node) not in mixed:
                issues += _map_issues(checked, node)
    if issues:
        raise BadExpression(checked.source, issues)


def _may_mix(checked: Checked) -> set[int]:
    """Return all nodes inside calls of ``format``; in ``order`` parents come after their parts."""
    inside: set[int] = set()
    for node in reversed(checked.order):
        if isinstance(node, OpenedOptional):
            continue
        if id(node) in inside or (isinstance(node, CallNode) and node.function == _MIXING_FUNCTION):
            inside.update(id(part) for part in children(node))
    return inside


def _call_issues(checked: Checked, node: CallNode) -> Iterator[Issue]:
    argument = node.args[0] if node.args else None
    if node.function == _MIXING_FUNCTION and checked.receiver(node) is not None:
        yield from format_issues(node, checked.types)
    elif isinstance(argument, Const) and _is_wrong(checked, node, argument):
        yield Issue(argument.pos, f"invalid {node.function} argument")


def _is_wrong(checked: Checked, node: CallNode, argument: Const) -> bool:
    try:
        if node.function in _EVALUATED_FUNCTIONS:
            checked.calls[id(node)][0].impl(argument.value)
        elif node.function == "matches":
            pattern(argument.value)
    except CelError:
        return True
    return False


def _list_issues(checked: Checked, node: ListLiteral) -> Iterator[Issue]:
    element: Type | None = None
    for position, item in enumerate(node.items):
        found = checked.types[id(item)]
        if position in node.optional:
            found = unwrap_optional(found)
        if element is None:
            element = found
        elif not equivalent(element, found):
            yield _mismatch(item, element, found)
            return


def _map_issues(checked: Checked, node: MapLiteral) -> Iterator[Issue]:
    pair: tuple[Type, Type] | None = None
    for entry in node.entries:
        key, value = checked.types[id(entry.key)], checked.types[id(entry.value)]
        if entry.optional:
            value = unwrap_optional(value)
        if pair is None:
            pair = key, value
            continue
        if not equivalent(pair[0], key):
            yield _mismatch(entry.key, pair[0], key)
        if not equivalent(pair[1], value):
            yield _mismatch(entry.value, pair[1], value)


def _mismatch(node: Node, expected: Type, found: Type) -> Issue:
    return Issue(node.pos, f"expected type '{expected}' but found '{found}'")
