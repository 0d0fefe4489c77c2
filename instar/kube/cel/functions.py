"""Declaration of CEL functions (``Overload``, ``Library``): types, implementation and cost of a
call.

The modules of ``library/`` declare functions with it; the checker, the cost estimate and the
interpreter use them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from itertools import chain
from math import ceil
from typing import Any, NamedTuple

from instar.base.fast_dataclass import dataclass
from instar.kube.cel.checking.cost_ranges import ONE, UNKNOWN, Range
from instar.kube.cel.syntax.ast import Node
from instar.kube.cel.types import CelKind, Type, parameter_names

TRAVERSAL = 0.1
"""Cost of reading one character."""
REGEX = 0.25
"""Cost of one character of a pattern, per character of the text."""
LIST_COST, MAP_COST, STRUCT_COST = 10, 30, 40

Path = tuple[str, ...]
SizeAt = Callable[[Path], Range | None]
"""Returns the declared size of the value at a path from a variable: ``("self", "items",
"@items")``."""


class Argument(NamedTuple):
    """An argument as the cost estimate sees it."""

    node: Node
    type: Type
    path: Path | None
    size: Range | None

    def known(self) -> Range:
        return UNKNOWN if self.size is None else self.size


class CallSite(NamedTuple):
    """One call in an expression; ``target`` is the receiver of a method."""

    target: Argument | None
    args: Sequence[Argument]
    size_at: SizeAt

    def receiver(self) -> Range:
        return UNKNOWN if self.target is None else self.target.known()

    def element(self) -> tuple[Type | None, Range]:
        """Type and size of the receiver's elements; no type if it is not a list."""
        if self.target is None or not self.target.type.params:
            return None, UNKNOWN
        path = self.target.path
        size = None if path is None else self.size_at((*path, "@items"))
        return self.target.type.params[0], UNKNOWN if size is None else size


class CostEstimate(NamedTuple):
    """The estimated cost of a call, and the size of its result if it is known."""

    cost: Range
    size: Range | None = None
    """Size of the result, if it has one."""


Work = Callable[..., int]
"""Cost units of one call from the sizes of its arguments, without evaluating them."""
Weigh = Callable[[Sequence[Any], Any], int]
"""Cost units of one call from the arguments themselves and the result."""
Estimator = Callable[[CallSite], CostEstimate]


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    """One signature of a function: types, implementation and cost."""

    function: str
    params: tuple[Type, ...]
    result: Type
    impl: Callable[..., Any]
    member: bool = False
    work: Work | None = None
    weigh: Weigh | None = None
    """Without ``work`` and ``weigh`` a call costs one unit."""
    estimate: Estimator | None = None
    """None: one unit, a result of unknown size."""
    by_name: bool = False
    """Whether the cost applies by function name; otherwise a call without a known overload costs
    one unit."""
    parameters: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", parameter_names((*self.params, self.result)))


def function(
    name: str,
    params: Sequence[Type],
    result: Type,
    impl: Callable[..., Any],
    *,
    work: Work | None = None,
    weigh: Weigh | None = None,
    estimate: Estimator | None = None,
    by_name: bool = False,
) -> Overload:
    return Overload(name, tuple(params), result, impl, False, work, weigh, estimate, by_name)


def method(
    name: str,
    params: Sequence[Type],
    result: Type,
    impl: Callable[..., Any],
    *,
    work: Work | None = None,
    weigh: Weigh | None = None,
    estimate: Estimator | None = None,
    by_name: bool = False,
) -> Overload:
    """Declare a method; ``params[0]`` is the receiver."""
    return Overload(name, tuple(params), result, impl, True, work, weigh, estimate, by_name)


Resolved = tuple[Type, tuple[Overload, ...]]
"""The type of a call's result and the overloads that can give it."""


class Library:
    """All functions that an expression may call, by name, and the types that it may name."""

    def __init__(self, overloads: Iterable[Overload], type_names: Iterable[tuple[str, Type]]):
        self._overloads: dict[str, list[Overload]] = {}
        for overload in overloads:
            self._overloads.setdefault(overload.function, []).append(overload)
        self.types = dict(type_names)
        self.resolved: dict[tuple[str, bool, tuple[str, ...]], Resolved] = {}
        """Cache of resolved calls by function, style and the names of plain argument types."""

    def overloads(self, name: str) -> Sequence[Overload]:
        return self._overloads.get(name, ())

    def with_functions(self, overloads: Iterable[Overload]) -> Library:
        """Return a library with additional functions."""
        held = chain.from_iterable(self._overloads.values())
        return Library([*held, *overloads], self.types.items())

    def names(self) -> list[str]:
        return sorted(self._overloads)


# Cost formulas shared by several libraries.


def traversal_cost(size: float) -> int:
    """Return the cost of reading a text once."""
    return ceil(size * TRAVERSAL)


def first_argument_cost(*sizes: int) -> int:
    """Return the cost of reading the first argument once."""
    return traversal_cost(sizes[0])


def read_write_cost(*sizes: int) -> int:
    """Return the cost of reading and writing a text (replace, split)."""
    return ceil(sizes[0] * 2 * TRAVERSAL)


def regex_cost(text: int, pattern: int, *_more: int) -> int:
    """Return the cost of matching a text against a pattern, by upstream's formula."""
    return ceil((1.0 + text) * TRAVERSAL) * ceil(pattern * REGEX)


def estimated_once(site: CallSite) -> CostEstimate:
    """Estimate a function that reads its first argument once."""
    return CostEstimate(site.args[0].known().scaled(TRAVERSAL))


def estimated_copy(site: CallSite) -> CostEstimate:
    """Estimate a function that reads its first argument once and returns a text of the same
    length."""
    size = site.args[0].known()
    return CostEstimate(size.scaled(TRAVERSAL), size)


def estimated_same_size(site: CallSite) -> CostEstimate:
    """Estimate a method that reads its receiver once and returns a text no longer than it."""
    size = site.receiver()
    return CostEstimate(size.scaled(TRAVERSAL), size)


def estimated_regex(site: CallSite) -> CostEstimate:
    """Estimate ``regex_cost`` from the largest sizes of text and pattern."""
    text = site.receiver().plus(ONE).scaled(TRAVERSAL)
    return CostEstimate(text.times(site.args[0].known().scaled(REGEX)))


def is_text(candidate: Type) -> bool:
    return candidate.kind is CelKind.PRIMITIVE and candidate.name in ("string", "bytes")
