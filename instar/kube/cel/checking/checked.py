"""``Checked``: result of the type checker, with the type and meaning of each syntax node.

Read by the cost estimate, the literal validators and the interpreter. The tables are keyed by
``id(node)``; the tree keeps the nodes alive. ``order`` lists every node after its parts, so that
later passes need no recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import NamedTuple, TypeAlias

from instar.base.fast_dataclass import dataclass
from instar.kube.cel.functions import Overload
from instar.kube.cel.syntax.ast import CallNode, Fold, Node
from instar.kube.cel.types import BOOL, BYTES, DOUBLE, DYN, INT, NULL, STRING, UINT, Type
from instar.kube.cel.values import Uint

CONSTANT_TYPES: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}


TypeNamed = Callable[[str], Type | None]
"""Returns the type that a name denotes, if any."""


class Variable:
    """A declared variable or a loop variable. Compared by identity: each loop has its own."""

    __slots__ = ("fold", "name", "type")

    def __init__(self, name: str, type: Type, fold: Fold | None = None) -> None:
        self.name = name
        self.type = type
        self.fold = fold
        """The loop that declares it; None for variables declared by the caller."""


class ResolvedNames:
    """Scopes: resolves a name in the innermost loop first, then in the declarations."""

    __slots__ = ("_declared", "_scopes", "_types")

    def __init__(self, variables: Mapping[str, Type], types: TypeNamed) -> None:
        self._declared = {name: Variable(name, type) for name, type in variables.items()}
        self._scopes: list[dict[str, Variable]] = []
        self._types = types

    def open(self, *variables: Variable) -> None:
        self._scopes.append({each.name: each for each in variables})

    def close(self) -> None:
        self._scopes.pop()

    def variable(self, name: str) -> Variable | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return self._declared.get(name)

    def type(self, name: str) -> Type | None:
        return self._types(name)


class OpenedOptional(NamedTuple):
    """Marker in ``order``: range and initial value of a fold are done, its body begins."""

    fold: Fold
    variables: tuple[Variable, ...]
    accumulator: Variable


Step: TypeAlias = Node | OpenedOptional


@dataclass(slots=True, eq=False)
class Checked:
    """A type-checked expression: the type, overload and variable of each node, by node number."""

    source: str
    tree: Node
    type: Type = DYN
    types: dict[int, Type] = field(default_factory=dict)
    calls: dict[int, tuple[Overload, ...]] = field(default_factory=dict)
    names: dict[int, Variable] = field(default_factory=dict)
    type_names: dict[int, str] = field(default_factory=dict)
    """Nodes that name a type, such as ``int`` or ``net.IP``."""
    namespaced: set[int] = field(default_factory=set)
    """Calls with a target that is part of the function's name: ``sets.contains(…)``."""
    variables: set[str] = field(default_factory=set)
    """Declared variables that the expression reads."""
    order: list[Step] = field(default_factory=list)

    def operands(self, node: CallNode) -> list[Node]:
        """Return the receiver, if any, and the arguments of a call."""
        if node.target is None or id(node) in self.namespaced:
            return node.args
        return [node.target, *node.args]

    def receiver(self, node: CallNode) -> Node | None:
        return None if id(node) in self.namespaced else node.target
