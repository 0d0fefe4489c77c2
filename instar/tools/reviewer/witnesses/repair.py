"""Repairs an example object that is almost valid, by small changes away from the tested value.

``search.py`` calls it, because an example object must be accepted by one of the two CRDs. The
values that a rule requires of other fields are found by trial: for the path of each validation
error a few changes are tried, and a change is kept if it leaves fewer errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from instar.base.json_values import same_json
from instar.kube.schema.json_types import ABSENT
from instar.tools.reviewer.witnesses.placing import look_up, with_value
from instar.tools.reviewer.witnesses.samples import Samples, branches

Node = Mapping[str, Any]
Wrong = Callable[[Any], list[str]]
"""Where an object is wrong: one path per error, empty for the root."""

_ROUNDS = 6
"""After this number of changes that stayed, the repair is given up."""
_TRIES = 60
"""After this number of failed changes in one round, the repair is given up."""


def repair(
    samples: Samples, obj: Any, schema: Node, point: list[str | int], wrong: Wrong
) -> Any | None:
    """Return an object without errors and with the same value at ``point``, or None."""
    left = wrong(obj)
    for _ in range(_ROUNDS):
        if not left:
            return obj
        found = _improved(samples, obj, schema, point, wrong, left)
        if found is None:
            return None
        obj, left = found
    return None if left else obj


def _improved(
    samples: Samples,
    obj: Any,
    schema: Node,
    point: list[str | int],
    wrong: Wrong,
    left: list[str],
) -> tuple[Any, list[str]] | None:
    tried = 0
    for field in left[:4]:
        for candidate in _changes(samples, obj, schema, field, point):
            tried += 1
            if tried > _TRIES:
                return None
            now = wrong(candidate)
            if len(now) < len(left):
                return candidate, now
    return None


def _changes(
    samples: Samples, obj: Any, schema: Node, field: str, point: list[str | int]
) -> Iterator[Any]:
    where, node, value = look_up(schema, obj, field)
    missing = field.rpartition(".")[2]
    known = node.get("properties") or {}
    if isinstance(value, dict) and missing in known and missing not in value:
        yield with_value(obj, [*where, missing], samples.minimal(known[missing]))
    if isinstance(value, dict):
        yield from _members(samples, obj, node, where, value, point)
    elif where != point[: len(where)]:
        for other in islice(_others(samples, node), 6):
            yield with_value(obj, where, other)
    for merged in islice(branches(node), 6):
        if isinstance(value, dict):
            yield with_value(obj, where, {**samples.small_object(merged), **value})


def _members(
    samples: Samples,
    obj: Any,
    node: Node,
    where: list[str | int],
    value: dict[str, Any],
    point: list[str | int],
) -> Iterator[Any]:
    properties: Mapping[str, Node] = node.get("properties") or {}
    for name, child in properties.items():
        place = [*where, name]
        if place == point[: len(place)] or (not where and name in ("kind", "apiVersion")):
            continue
        if name in value and name not in (node.get("required") or ()):
            yield with_value(obj, place, ABSENT)
        for other in islice(_others(samples, child), 4):
            if not same_json(value.get(name, ABSENT), other):
                yield with_value(obj, place, other)


def _others(samples: Samples, node: Node) -> Iterator[Any]:
    if node.get("enum"):
        yield from node["enum"]
    elif node.get("type") == "boolean":
        yield from (True, False)
    else:
        yield samples.minimal(node)
        items = node.get("items")
        if node.get("type") == "array" and isinstance(items, Mapping):
            yield [samples.minimal(items)]
