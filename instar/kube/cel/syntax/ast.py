"""Syntax tree of CEL expressions.

Built by ``parser.py``. A macro is expanded into a comprehension, as in cel-go, which determines its
types and estimated cost; the node also names the macro, so that the interpreter can run it
directly.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeAlias

from instar.base.fast_dataclass import dataclass


class Macro(Enum):
    ALL = "all"
    EXISTS = "exists"
    EXISTS_ONE = "exists_one"
    FILTER = "filter"
    MAP = "map"
    TRANSFORM_MAP = "transformMap"
    TRANSFORM_ENTRY = "transformMapEntry"
    BIND = "bind"
    """Not a loop: the accumulator is a name for a value that is computed on first read."""


@dataclass(slots=True, eq=False)
class Const:
    pos: int
    value: Any


@dataclass(slots=True, eq=False)
class Ident:
    pos: int
    name: str


@dataclass(slots=True, eq=False)
class Select:
    """``operand.field``, or ``has(operand.field)`` when ``test`` is set."""

    pos: int
    operand: Node
    field: str
    test: bool = False


@dataclass(slots=True, eq=False)
class CallNode:
    pos: int
    function: str
    target: Node | None
    args: list[Node]


@dataclass(slots=True, eq=False)
class ListLiteral:
    pos: int
    items: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapEntry:
    key: Node
    value: Node
    optional: bool


@dataclass(slots=True, eq=False)
class MapLiteral:
    pos: int
    entries: list[MapEntry]


@dataclass(slots=True, eq=False)
class FieldValue:
    """``name: value`` in a struct; ``pos`` is the position of the colon."""

    pos: int
    name: str
    value: Node
    optional: bool


@dataclass(slots=True, eq=False)
class StructLiteral:
    pos: int
    name: str
    fields: list[FieldValue]


@dataclass(slots=True, eq=False)
class Fold:
    """``filter`` and ``body`` are the macro's arguments; the rest is upstream's expansion."""

    pos: int
    macro: Macro
    variables: tuple[str, ...]
    range: Node
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node
    filter: Node | None = None
    body: Node | None = None


@dataclass(slots=True, eq=False)
class SharedTree:
    """Reference to a tree that a macro expansion uses twice (``optMap``). Copies would double the
    size with every nested call."""

    pos: int
    node: Node


Node: TypeAlias = (
    Const | Ident | Select | CallNode | ListLiteral | MapLiteral | StructLiteral | Fold | SharedTree
)

ACCUMULATOR = "@result"


def qualified_name(node: Node) -> str | None:
    """Return ``a.b.c`` as one name, or None if the node has other parts than idents and selects."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    parts.append(node.name)
    return ".".join(reversed(parts))


def children(node: Node) -> list[Node]:
    """Return the child nodes of a node."""
    match node:
        case Select(operand=operand):
            return [operand]
        case CallNode(target=None, args=args):
            return args
        case CallNode(target=target, args=args) if target is not None:
            return [target, *args]
        case ListLiteral(items=items):
            return items
        case MapLiteral(entries=entries):
            return [part for entry in entries for part in (entry.key, entry.value)]
        case StructLiteral(fields=fields):
            return [field.value for field in fields]
        case Fold():
            return [node.range, node.initial, node.condition, node.step, node.result]
    return []


def scaffold(fold: Fold) -> list[Node]:
    """Return the nodes that a loop's expansion adds around the given predicate and body."""
    found: list[Node] = []
    todo = [fold.condition, fold.step, fold.result]
    while todo:
        node = todo.pop()
        if node is not fold.filter and node is not fold.body:
            found.append(node)
            todo += children(node)
    return found
