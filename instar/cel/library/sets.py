"""The sets extension: lists compared without order and repetition."""

from __future__ import annotations

from typing import Any

from instar.cel.equality import freeze
from instar.cel.functions import Overload, function
from instar.cel.types import BOOL, list_of, param


def _frozen(values: Any) -> set[Any]:
    return {freeze(item) for item in values}


def _product(left: float, right: float) -> float:
    return max(1, left * right)


def _twice(left: float, right: float) -> float:
    return max(1, 2 * left * right)


def overloads() -> list[Overload]:
    pair = (list_of(param("A")), list_of(param("A")))
    return [
        function("sets.contains", pair, BOOL, lambda a, b: _frozen(b) <= _frozen(a), work=_product),
        function("sets.equivalent", pair, BOOL, lambda a, b: _frozen(a) == _frozen(b), work=_twice),
        function(
            "sets.intersects", pair, BOOL, lambda a, b: bool(_frozen(a) & _frozen(b)), work=_product
        ),
    ]
