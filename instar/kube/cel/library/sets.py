"""CEL sets extension: contains, equivalent, intersects on lists, ignoring order and repeats.

Collected by ``library/__init__.py``; called by the checker (types), the cost estimate and the
interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from instar.kube.cel.checking.cost_ranges import ONE
from instar.kube.cel.equality import freeze
from instar.kube.cel.functions import CallSite, CostEstimate, Estimator, Overload, Work, function
from instar.kube.cel.types import BOOL, list_of, param


def _frozen(values: Any) -> set[Any]:
    return {freeze(item) for item in values}


def _comparison_costs(factor: int) -> tuple[Work, Estimator]:
    """Return cost functions for comparing each element with each of the other list, ``factor``
    times."""

    def work(left: int, right: int) -> int:
        return 1 + left * right * factor

    def estimate(site: CallSite) -> CostEstimate:
        left, right = site.args[0].known(), site.args[1].known()
        return CostEstimate(left.times(right).scaled(factor).plus(ONE))

    return work, estimate


def _over_sets(name: str, factor: int, impl: Callable[[Any, Any], bool]) -> Overload:
    pair = (list_of(param("A")), list_of(param("A")))
    work, estimate = _comparison_costs(factor)
    return function(f"sets.{name}", pair, BOOL, impl, work=work, estimate=estimate)


def overloads() -> list[Overload]:
    return [
        _over_sets("contains", 1, lambda a, b: _frozen(b) <= _frozen(a)),
        _over_sets("equivalent", 2, lambda a, b: _frozen(a) == _frozen(b)),
        _over_sets("intersects", 1, lambda a, b: bool(_frozen(a) & _frozen(b))),
    ]
