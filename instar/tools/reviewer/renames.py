"""Recognises renamed and moved fields: pairs a removed field with an added one.

``engine.py`` calls it with the changes of one version. A pair is a guess, which needs evidence: an
equal shape and a similar name, or a shape that occurs nowhere else.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from instar.tools.reviewer.changes import NodeChange, Steps, children, value_path

_NAME_ALIKE = 0.55
"""Similarity (0 to 1) from which two names are similar."""
_NAME_VERY_ALIKE = 0.8
"""Similarity from which two names are very similar."""
_MEMBERS_ALIKE = 0.7
"""Similarity from which the members of two objects are similar."""
_TEXTS = ("description", "title", "example")


class Rename(NamedTuple):
    """A removed field and the added field that replaces it."""

    gone: NodeChange
    came: Steps
    """The new place: a sibling of the old one for a rename, elsewhere for a move."""
    moved: bool


def renames(found: list[NodeChange]) -> list[Rename]:
    """Return pairs of a removed and an added field that look like one field with a new name."""
    gone = [
        item for item in found if item.old is not None and item.new is None and item.is_property
    ]
    came = [
        item for item in found if item.new is not None and item.old is None and item.is_property
    ]
    pairs = list(_siblings(gone, came))
    paired = {pair.gone.steps for pair in pairs}
    used = {pair.came for pair in pairs}
    left = [item for item in gone if item.steps not in paired]
    return pairs + list(_elsewhere(left, [item for item in came if item.steps not in used]))


def _siblings(gone: list[NodeChange], came: list[NodeChange]) -> Iterator[Rename]:
    scored = [
        (score, old.steps, new.steps)
        for old in gone
        for new in came
        if old.steps[:-1] == new.steps[:-1] and (score := _likeness(old, new, gone, came))
    ]
    by_steps = {item.steps: item for item in gone}
    taken: set[Steps] = set()
    for _, old_steps, new_steps in sorted(scored, key=lambda item: (-item[0], item[1:])):
        if old_steps in taken or new_steps in taken:
            continue
        taken |= {old_steps, new_steps}
        yield Rename(by_steps[old_steps], new_steps, moved=False)


def _likeness(
    old: NodeChange, new: NodeChange, gone: list[NodeChange], came: list[NodeChange]
) -> float:
    assert old.old is not None
    assert new.new is not None
    names = difflib.SequenceMatcher(None, old.name.lower(), new.name.lower()).ratio()
    same_shape = _shape(old.old) == _shape(new.new)
    if same_shape and (names >= _NAME_ALIKE or _only_pair(old, gone, came)):
        return 1 + names
    if old.old.get("type") != new.new.get("type"):
        return 0
    members = _common_members(old.old, new.new)
    if members >= _MEMBERS_ALIKE or names >= _NAME_VERY_ALIKE:
        return max(members, names)
    return 0


def _only_pair(old: NodeChange, gone: list[NodeChange], came: list[NodeChange]) -> bool:
    """Return whether this is the only pair of siblings that changed, so that it is unambiguous."""
    parent = old.steps[:-1]
    return all(sum(item.steps[:-1] == parent for item in group) == 1 for group in (gone, came))


def _common_members(old: Mapping[str, Any], new: Mapping[str, Any]) -> float:
    before, after = set(old.get("properties") or ()), set(new.get("properties") or ())
    if len(before) < 3:
        return 0
    return len(before & after) / len(before | after)


def _elsewhere(gone: list[NodeChange], came: list[NodeChange]) -> Iterator[Rename]:
    places: dict[tuple[str, str], list[Steps]] = {}
    for item in came:
        assert item.new is not None
        for steps, node in _inside(item.steps, item.new):
            places.setdefault((steps[-1], _shape(node)), []).append(steps)
    for old in gone:
        assert old.old is not None
        found = places.get((old.name, _shape(old.old)), [])
        if len(found) == 1:
            yield Rename(old, found[0], moved=True)


def _inside(steps: Steps, node: Mapping[str, Any]) -> Iterator[tuple[Steps, Mapping[str, Any]]]:
    yield steps, node
    for step, below in children(node).items():
        yield from _inside((*steps, *step), below)


def _shape(node: Mapping[str, Any]) -> str:
    return json.dumps(_bare(node), sort_keys=True, default=str)


def _bare(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {
            name: _bare(item)
            for name, item in node.items()
            if not (name in _TEXTS and isinstance(item, str))
        }
    return [_bare(item) for item in node] if isinstance(node, list) else node


def new_place(pair: Rename) -> str:
    """Return the path to which a field was renamed or moved."""
    return value_path(pair.came)
