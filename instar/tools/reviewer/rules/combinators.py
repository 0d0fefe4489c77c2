"""Review rules about anyOf, oneOf, allOf and not: does a changed branch accept less than before.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
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
)


class Combinator(NamedTuple):
    keyword: str
    rule: str
    more_is_looser: bool
    """Whether a further branch can only let more values through."""
    fewer_is_looser: bool


COMBINATORS = (
    Combinator("anyOf", "any-of", True, False),
    Combinator("oneOf", "one-of", False, False),
    Combinator("allOf", "all-of", False, True),
    Combinator("not", "not", False, False),
)

RULES = tuple(
    rule
    for item in COMBINATORS
    for rule in (
        ReviewRule(
            f"{item.rule}-tightened",
            ERROR,
            f"{item.keyword} came or changed: values may be refused that were taken",
            (WRITERS, STORED),
        ),
        ReviewRule(
            f"{item.rule}-loosened", INFO, f"{item.keyword} lets more values through", (READERS,)
        ),
    )
)


def _compare(item: Combinator, change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    old, new = (_branches(node.get(item.keyword)) for node in pair)
    gone, came = sorted(set(old) - set(new)), sorted(set(new) - set(old))
    if not gone and not came:
        return
    looser = (
        not new
        or (bool(old) and not gone and item.more_is_looser)
        or (bool(new) and not came and item.fewer_is_looser)
    )
    effect = Effect.ACCEPTED if looser else Effect.REFUSED
    yield FindingDraft(
        rule=f"{item.rule}-{'loosened' if looser else 'tightened'}",
        effect=effect,
        unsure=True,
        message=_says(item.keyword, old, len(gone), len(came), bool(new)),
        details="\n".join([*(f"- {text}" for text in gone), *(f"+ {text}" for text in came)]),
    )


def _says(keyword: str, old: list[str], gone: int, came: int, any_left: bool) -> str:
    if not old:
        return f"{keyword} is new"
    if not any_left:
        return f"{keyword} is gone"
    if keyword == "not":
        return "not changed"
    parts = [f"{gone} branch{'es' * (gone > 1)} gone"] * bool(gone)
    parts += [f"{came} branch{'es' * (came > 1)} new"] * bool(came)
    return f"{keyword}: {', '.join(parts)}"


def _branches(value: Any) -> list[str]:
    items = value if isinstance(value, list) else [] if value is None else [value]
    return [json.dumps(_undescribed(item), sort_keys=True, default=str) for item in items]


def _undescribed(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _undescribed(item)
            for name, item in value.items()
            if not (name == "description" and isinstance(item, str))
        }
    return [_undescribed(item) for item in value] if isinstance(value, list) else value


CHECKS = tuple(NodeCheck(keywords(item.keyword), partial(_compare, item)) for item in COMBINATORS)
