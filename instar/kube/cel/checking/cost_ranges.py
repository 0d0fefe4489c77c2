"""``Range`` of a size or cost (minimum, maximum) with saturating arithmetic at 2^64-1.

Used by the cost estimate and the library's estimators. Factors are applied as upstream does, in
floating point and rounded up.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

MOST = (1 << 64) - 1
"""Larger sizes and costs count as this number."""
_TWO_TO_64 = float(1 << 64)


class Range(NamedTuple):
    """Minimum and maximum of a size (of a text, list or map) or a cost."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        return Range(_capped(self.low + other.low), _capped(self.high + other.high))

    def times(self, other: Range) -> Range:
        return Range(_capped(self.low * other.low), _capped(self.high * other.high))

    def scaled(self, factor: float) -> Range:
        return Range(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))


def exactly(number: int) -> Range:
    """Return a range with this number as minimum and maximum."""
    return Range(number, number)


def _capped(number: int) -> int:
    return number if number < MOST else MOST


def _scaled(number: int, factor: float) -> int:
    exact = float(number)
    if exact > 0 and factor > 0 and exact > _TWO_TO_64 / factor:
        return MOST
    product = exact * factor
    return MOST if product >= _TWO_TO_64 else ceil(product)


UNKNOWN = Range(0, MOST)
NOTHING = Range(0, 0)
ONE = Range(1, 1)
