"""The syntax tree. Macros stay macros (one ``Comprehension`` node), so that checker, cost and
interpreter each treat "all" as "all" instead of recognising a fold."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias


class Macro(Enum):
    ALL = "all"
    EXISTS = "exists"
    EXISTS_ONE = "exists_one"
    FILTER = "filter"
    MAP = "map"
    TRANSFORM_MAP = "transformMap"
    TRANSFORM_ENTRY = "transformMapEntry"


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
class Call:
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
class Entry:
    key: Node
    value: Node
    optional: bool


@dataclass(slots=True, eq=False)
class MapLiteral:
    pos: int
    entries: list[Entry]


@dataclass(slots=True, eq=False)
class StructLiteral:
    pos: int
    name: str


@dataclass(slots=True, eq=False)
class Comprehension:
    """``filter`` is the predicate of all, exists, exists_one and filter; ``body`` what is built."""

    pos: int
    macro: Macro
    variables: tuple[str, ...]
    range: Node
    filter: Node | None
    body: Node | None


@dataclass(slots=True, eq=False)
class Bind:
    """Evaluate ``value`` once, name it, evaluate ``body`` (what optMap needs)."""

    pos: int
    variable: str
    value: Node
    body: Node


Node: TypeAlias = (
    Const | Ident | Select | Call | ListLiteral | MapLiteral | StructLiteral | Comprehension | Bind
)


def qualified_name(node: Node) -> str | None:
    """``a.b.c`` as one name, or None when the node is anything but idents and selects."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    parts.append(node.name)
    return ".".join(reversed(parts))
