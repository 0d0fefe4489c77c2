"""Kubernetes' ``find`` and ``findAll``."""

from __future__ import annotations

from instar.cel.functions import (
    Overload,
    method,
    pieces_shape,
    regex_work,
    same_shape,
)
from instar.cel.library.standard import pattern
from instar.cel.types import INT, STRING, list_of


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


def overloads() -> list[Overload]:
    found = list_of(STRING)
    return [
        method("find", (STRING, STRING), STRING, _find, work=regex_work, shape=same_shape),
        method("findAll", (STRING, STRING), found, _find_all, work=regex_work, shape=pieces_shape),
        method(
            "findAll",
            (STRING, STRING, INT),
            found,
            _find_all,
            work=lambda text, expression, _limit: regex_work(text, expression),
            shape=pieces_shape,
        ),
    ]
