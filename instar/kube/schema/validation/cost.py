"""Cost of validation by a schema: the number of schemas that check one value.

With ``anyOf``, ``oneOf``, ``allOf`` and ``not`` many schemas check one value, and the member
schemas of all of them check its members. ``compiled.py`` calls it once per schema; the work on an
object is its size multiplied by this cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural import Structural

MOST = 1_000_000
"""Upper limit: larger costs count as this one."""
_ENUM_SHARE = 16
"""Number of enum values that are compared in the time of one schema's check."""


def validation_cost(root: Structural) -> int:
    """Return the largest number of schemas that check one value; at least 1."""
    greatest = 1
    places: list[Sequence[Structural]] = [[root]]
    while places:
        facing = _schemas_of_value(places.pop())
        cost = sum(1 + _enumerated(node) for node in facing)
        greatest = max(greatest, cost)
        if greatest >= MOST:
            return MOST
        places += _member_schemas(facing)
    return greatest


def _schemas_of_value(nodes: Iterable[Structural]) -> list[Structural]:
    """Return all schemas that check the same value: the nodes, and the branches in them."""
    found: list[Structural] = []
    waiting = list(nodes)
    while waiting and len(found) < MOST:
        node = waiting.pop()
        found.append(node)
        waiting += _branches(node.raw)
    return found


def _branches(raw: Mapping[str, Any]) -> Iterator[Structural]:
    for word in ("anyOf", "oneOf", "allOf"):
        listed = raw.get(word)
        if isinstance(listed, list):
            for branch in listed:
                yield structural(branch if isinstance(branch, Mapping) else {})
    negated = raw.get("not")
    if isinstance(negated, Mapping):
        yield structural(negated)


def _enumerated(node: Structural) -> int:
    listed = node.raw.get("enum")
    return len(listed) // _ENUM_SHARE if isinstance(listed, list) else 0


def _member_schemas(facing: Sequence[Structural]) -> list[list[Structural]]:
    """Return the schemas that check the items and members of a value, per place."""
    items = [node.items for node in facing if node.items is not None]
    others = [node.additional for node in facing if isinstance(node.additional, Structural)]
    named: dict[str, list[Structural]] = {}
    for node in facing:
        for name, member in node.properties.items():
            named.setdefault(name, []).append(member)
    places = [found + others if len(facing) > 1 else found for found in named.values()]
    return [place for place in (items, others, *places) if place]
