"""Kubernetes' CEL functions ``find`` and ``findAll``.

Collected by ``library/__init__.py``; called by the checker (types), the cost estimate and the
interpreter.
"""

from __future__ import annotations

from typing import Any

from instar.kube.cel.checking.cost_ranges import Range
from instar.kube.cel.functions import (
    CallSite,
    CostEstimate,
    Overload,
    estimated_regex,
    method,
    regex_cost,
)
from instar.kube.cel.library.standard import pattern
from instar.kube.cel.types import INT, STRING, Type, list_of


def _find(text: str, expression: str) -> str:
    match = pattern(expression).search(text)
    return "" if match is None else match.group()


def _find_all(text: str, expression: str, limit: int = -1) -> list[str]:
    out: list[str] = []
    if limit == 0:
        return out
    for match in pattern(expression).finditer(text):
        out.append(match.group())
        if len(out) == limit:
            break
    return out


def _estimated_find(site: CallSite) -> CostEstimate:
    """Estimate; at worst every character is a result."""
    return CostEstimate(estimated_regex(site).cost, Range(0, site.receiver().high))


def _find_method(name: str, result: Type, impl: Any, *more: Type) -> Overload:
    return method(
        name,
        (STRING, STRING, *more),
        result,
        impl,
        work=regex_cost,
        estimate=_estimated_find,
        by_name=True,
    )


def overloads() -> list[Overload]:
    found = list_of(STRING)
    return [
        _find_method("find", STRING, _find),
        _find_method("findAll", found, _find_all),
        _find_method("findAll", found, _find_all, INT),
    ]
