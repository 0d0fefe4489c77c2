"""Review rules about bounds: minimum and maximum of numbers, strings, lists and objects, in one
table.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from instar.tools.reviewer.changes import NodeChange
from instar.tools.reviewer.report import Effect
from instar.tools.reviewer.rule_kit import (
    ERROR,
    INFO,
    READERS,
    STORED,
    WRITERS,
    FindingDraft,
    NodeCheck,
    ReviewRule,
    both,
    keywords,
    show,
)


class NumericBound(NamedTuple):
    keyword: str
    rule: str
    upper: bool
    of: str
    exclusive: str = ""


BOUNDS = (
    NumericBound("minimum", "minimum", False, "the number", "exclusiveMinimum"),
    NumericBound("maximum", "maximum", True, "the number", "exclusiveMaximum"),
    NumericBound("minLength", "min-length", False, "the length"),
    NumericBound("maxLength", "max-length", True, "the length"),
    NumericBound("minItems", "min-items", False, "the number of items"),
    NumericBound("maxItems", "max-items", True, "the number of items"),
    NumericBound("minProperties", "min-properties", False, "the number of keys"),
    NumericBound("maxProperties", "max-properties", True, "the number of keys"),
)

RULES = tuple(
    rule
    for bound in BOUNDS
    for rule in (
        ReviewRule(
            f"{bound.rule}-tightened",
            ERROR,
            f"{bound.of} has a narrower {'upper' if bound.upper else 'lower'} bound",
            (WRITERS, STORED),
        ),
        ReviewRule(
            f"{bound.rule}-loosened",
            INFO,
            f"{bound.of} has a wider {'upper' if bound.upper else 'lower'} bound",
            (READERS,),
        ),
    )
)


def _limit(node: Mapping[str, Any], bound: NumericBound) -> tuple[float, bool] | None:
    value = node.get(bound.keyword)
    if value is None:
        return None
    return value, bool(bound.exclusive and node.get(bound.exclusive))


def _compare(bound: NumericBound, change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    old, new = (_limit(node, bound) for node in pair)
    if old == new:
        return
    tighter = new is not None and (old is None or _tighter(new, old, upper=bound.upper))
    effect = Effect.REFUSED if tighter else Effect.ACCEPTED
    yield FindingDraft(
        rule=f"{bound.rule}-{'tightened' if tighter else 'loosened'}",
        effect=effect,
        message=_says(bound, old, new),
    )


def _tighter(new: tuple[float, bool], old: tuple[float, bool], *, upper: bool) -> bool:
    if new[0] != old[0]:
        return new[0] < old[0] if upper else new[0] > old[0]
    return new[1] and not old[1]


def _says(
    bound: NumericBound, old: tuple[float, bool] | None, new: tuple[float, bool] | None
) -> str:
    word = "at most" if bound.upper else "at least"
    if new is None:
        assert old is not None
        return f"{bound.of} need not be {_limit_text(word, old)} any more"
    was = "unlimited" if old is None else show(old[0]) + (" exclusive" if old[1] else "")
    return f"{bound.of} must be {_limit_text(word, new)}, was {was}"


def _limit_text(word: str, limit: tuple[float, bool]) -> str:
    return f"{word} {show(limit[0])}{' exclusive' if limit[1] else ''}"


CHECKS = tuple(
    NodeCheck(keywords(*filter(None, (bound.keyword, bound.exclusive))), partial(_compare, bound))
    for bound in BOUNDS
)
