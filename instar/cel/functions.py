"""How a function is declared: its types for the checker, its code, and what a call costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

from instar.cel.types import Type

UNBOUNDED = 1 << 62
"""A size nobody limits; large enough that every budget refuses it, small enough to multiply."""


class Shape(NamedTuple):
    """How large a value can get: its own length and that of its elements."""

    size: int
    element: Shape | None = None
    fields: Callable[[str], Shape] | None = None
    key: Shape | None = None


Work = Callable[..., float]
"""Cost units of one call from the sizes of its arguments, beyond evaluating them."""
ResultShape = Callable[..., Shape]


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    function: str
    params: tuple[Type, ...]
    result: Type
    impl: Callable[..., Any]
    member: bool = False
    work: Work | None = None
    """None: one unit, whatever the arguments."""
    traverses: bool = False
    """The sizes given to ``work`` count every element and string of a list, not just its length."""
    shape: ResultShape | None = None
    estimate: Work | None = None
    """What estimates use instead of ``work``, where upstream prices a call differently."""


def function(
    name: str,
    params: Sequence[Type],
    result: Type,
    impl: Callable[..., Any],
    *,
    work: Work | None = None,
    traverses: bool = False,
    shape: ResultShape | None = None,
    estimate: Work | None = None,
) -> Overload:
    return Overload(name, tuple(params), result, impl, False, work, traverses, shape, estimate)


def method(
    name: str,
    params: Sequence[Type],
    result: Type,
    impl: Callable[..., Any],
    *,
    work: Work | None = None,
    traverses: bool = False,
    shape: ResultShape | None = None,
) -> Overload:
    """``params[0]`` is the receiver."""
    return Overload(name, tuple(params), result, impl, True, work, traverses, shape)


class Library:
    """All functions an expression may call, by name, and the types it may name."""

    def __init__(self, overloads: Iterable[Overload], type_names: Iterable[tuple[str, Type]]):
        self._overloads: dict[str, list[Overload]] = {}
        for overload in overloads:
            self._overloads.setdefault(overload.function, []).append(overload)
        self.types = dict(type_names)

    def overloads(self, name: str) -> list[Overload]:
        return self._overloads.get(name, [])

    def names(self) -> list[str]:
        return sorted(self._overloads)


# Cost formulas several families share; the factors are upstream's.

TRAVERSAL = 0.1


def nominal(*_sizes: float) -> float:
    """Upstream's estimate of the global parsing functions: one unit, whatever the text."""
    return 1


def tenth(size: float) -> int:
    """Reading a text once."""
    return ceil(size * TRAVERSAL)


def per_byte(*sizes: float) -> float:
    """The first argument is read once."""
    return tenth(sizes[0])


def per_element(*sizes: float) -> float:
    return max(1, ceil(sizes[0]))


def smaller_of(left: float, right: float) -> float:
    return tenth(left if left < right else right) or 1


def both_read(left: float, right: float) -> float:
    return tenth(left + right)


def product(left: float, right: float) -> float:
    return tenth(left) * tenth(right)


def rewritten(*sizes: float) -> float:
    """Read and written: replace, split, join."""
    return tenth(2 * sizes[0])


def regex_work(text: float, pattern: float) -> float:
    return tenth(text + 1) * ceil(pattern * 0.25)


def same_shape(first: Shape, *_rest: Shape) -> Shape:
    return first


def summed_shape(left: Shape, right: Shape) -> Shape:
    return Shape(left.size + right.size, left.element, left.fields, left.key)


def element_shape(first: Shape, *_rest: Shape) -> Shape:
    return first.element or Shape(first.size)


def pieces_shape(first: Shape, *_rest: Shape) -> Shape:
    """A string cut up: no more pieces than characters, none longer than the whole."""
    return Shape(first.size, Shape(first.size))
