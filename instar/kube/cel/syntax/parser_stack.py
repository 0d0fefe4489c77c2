"""Stack entries of the parser: operators that wait for their right side, open brackets.

Used by ``parser.py`` instead of recursion.
"""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple, TypeAlias

from instar.base.fast_dataclass import dataclass
from instar.kube.cel.syntax.ast import (
    CallNode,
    FieldValue,
    ListLiteral,
    MapEntry,
    MapLiteral,
    Node,
    StructLiteral,
)


class Operand(NamedTuple):
    """A finished value and its depth in upstream's visitor."""

    node: Node
    depth: int


@dataclass(slots=True)
class Binary:
    pos: int
    function: str
    precedence: int
    left: Operand


@dataclass(slots=True)
class Logic:
    """``a && b && c`` so far; becomes a balanced tree at the end to keep it shallow."""

    function: str
    precedence: int
    terms: list[Operand]
    positions: list[int]


@dataclass(slots=True)
class Prefix:
    pos: int
    function: str
    odd: bool


@dataclass(slots=True)
class Choice:
    """``c ? a : b``; ``then`` is set once the colon was read."""

    pos: int
    condition: Operand
    then: Operand | None = None


@dataclass(slots=True)
class Construct:
    """An open bracket. ``marked``: the next element has a question mark before it."""

    pos: int
    closing: str
    items: list[Operand] = field(default_factory=list)
    marked: bool = False

    def collect(self, operand: Operand) -> None:
        self.items.append(operand)

    def nodes(self) -> list[Node]:
        return [item.node for item in self.items]

    def depth(self) -> int:
        return max((item.depth for item in self.items), default=0)


@dataclass(slots=True)
class PendingGroup(Construct):
    closing: str = ")"


@dataclass(slots=True)
class Arguments(Construct):
    closing: str = ")"
    function: str = ""
    target: Operand | None = None

    def depth(self) -> int:
        inside = Construct.depth(self)
        return inside if self.target is None else 1 + max(inside, self.target.depth)


@dataclass(slots=True)
class Subscript(Construct):
    closing: str = "]"
    target: Operand | None = None

    def depth(self) -> int:
        assert self.target is not None
        return 1 + max(Construct.depth(self), self.target.depth)


@dataclass(slots=True)
class Items(Construct):
    closing: str = "]"
    optional: set[int] = field(default_factory=set)

    def collect(self, operand: Operand) -> None:
        if self.marked:
            self.optional.add(len(self.items))
        self.items.append(operand)


@dataclass(slots=True)
class Pairs(Construct):
    """A map; ``key`` is set once its colon was read."""

    closing: str = "}"
    key: Operand | None = None
    entries: list[MapEntry] = field(default_factory=list)

    def collect(self, operand: Operand) -> None:
        assert self.key is not None
        self.entries.append(MapEntry(self.key.node, operand.node, self.marked))
        self.items += (self.key, operand)
        self.key = None


@dataclass(slots=True)
class PendingFields(Construct):
    closing: str = "}"
    type_name: str = ""
    name: str = ""
    colon: int = 0
    fields: list[FieldValue] = field(default_factory=list)

    def collect(self, operand: Operand) -> None:
        self.fields.append(FieldValue(self.colon, self.name, operand.node, self.marked))
        self.items.append(operand)


Pending: TypeAlias = Binary | Logic | Prefix | Choice | Construct


class TooNested(Exception):
    """More open constructs than upstream's parser allows."""


class Nesting:
    """Counts open grammar rules. A bracket opens all of them; an operator that waits for its
    right side opens its own rule once more."""

    __slots__ = ("_calculations", "_expressions", "_most", "_relations")

    def __init__(self, most: int) -> None:
        self._most = most
        self._expressions = self._relations = self._calculations = 1

    def bracket(self, by: int) -> None:
        self._relations += by
        self._calculations += by
        self.expression(by)

    def expression(self, by: int) -> None:
        self._expressions += by
        self._check(self._expressions)

    def operator(self, precedence: int, by: int) -> None:
        if precedence == RELATION:
            self._relations += by
            self._check(self._relations)
        else:
            self._calculations += by
            self._check(self._calculations)

    def _check(self, count: int) -> None:
        if count > self._most:
            raise TooNested(f"expression recursion limit exceeded: {self._most}")


OR, AND, RELATION, SUM, PRODUCT = 1, 2, 3, 4, 5
PRECEDENCE = {
    "||": OR, "&&": AND,
    "==": RELATION, "!=": RELATION, "<": RELATION, "<=": RELATION, ">": RELATION, ">=": RELATION,
    "in": RELATION,
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT,
}  # fmt: skip


def finish_bracket(construct: Construct) -> Node:
    """Return the finished construct as a node."""
    match construct:
        case Subscript(target=Operand(node=target)):
            function = "_[?_]" if construct.marked else "_[_]"
            return CallNode(construct.pos, function, None, [target, *construct.nodes()])
        case Items():
            return ListLiteral(construct.pos, construct.nodes(), frozenset(construct.optional))
        case Pairs():
            return MapLiteral(construct.pos, construct.entries)
        case PendingFields():
            return StructLiteral(construct.pos, construct.type_name, construct.fields)
    return construct.items[0].node


def balance_operators(function: str, terms: list[Node], positions: list[int]) -> Node:
    """Return ``a && b && c`` as upstream builds it, with logarithmic depth."""
    if len(terms) == 1:
        return terms[0]
    middle = (len(terms) + 1) // 2
    left = balance_operators(function, terms[:middle], positions[: middle - 1])
    right = balance_operators(function, terms[middle:], positions[middle:])
    return CallNode(positions[middle - 1], function, None, [left, right])
