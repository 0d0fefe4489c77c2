"""Compares two schemas of one version node by node and lists the differences.

``engine.py`` runs the rules over these changes. A node that was removed or added is listed once,
without the nodes inside it; a node whose type changed is not descended into. anyOf, oneOf, allOf
and not are compared as keywords of the node that has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import child
from instar.tools.reviewer.types import compatible_types

Json = Mapping[str, Any]
Steps = tuple[str, ...]
"""Path to a node inside a schema: ``("properties", "spec", "items")``."""

CHILD_KEYWORDS = frozenset({"properties", "items", "additionalProperties"})


@dataclass(frozen=True, slots=True)
class NodeChange:
    """One node that differs. ``old`` or ``new`` is None where the node is absent."""

    steps: Steps
    old: Json | None
    new: Json | None
    keywords: frozenset[str] = frozenset()
    """Keywords that differ, of a node that both sides have."""
    old_parent: Json = field(default_factory=dict)
    new_parent: Json = field(default_factory=dict)

    @property
    def path(self) -> str:
        return value_path(self.steps)

    @property
    def name(self) -> str:
        return self.steps[-1] if self.steps else ""

    @property
    def is_property(self) -> bool:
        return len(self.steps) > 1 and self.steps[-2] == "properties"


def changes(old: Json, new: Json) -> list[NodeChange]:
    """Return every difference, parents first, siblings by name."""
    return list(_node((), old, new, {}, {}))


def value_path(steps: Steps) -> str:
    """Return the path as users write it: ``spec.ports[*].name``, ``spec.labels.*``."""
    path, position = "", 0
    while position < len(steps):
        word = steps[position]
        if word == "properties":
            position += 1
            path = child(path, steps[position])
        elif word == "items":
            path += "[*]"
        else:
            path = child(path, "*")
        position += 1
    return path


def children(node: Json) -> dict[Steps, Json]:
    """Return the direct child nodes by their relative steps."""
    found: dict[Steps, Json] = {
        ("properties", name): item for name, item in (node.get("properties") or {}).items()
    }
    for word in ("items", "additionalProperties"):
        if isinstance(node.get(word), Mapping):
            found[(word,)] = node[word]
    return found


def _node(
    steps: Steps, old: Json, new: Json, old_parent: Json, new_parent: Json
) -> Iterator[NodeChange]:
    keywords = _differing(old, new)
    if keywords:
        yield NodeChange(steps, old, new, keywords, old_parent, new_parent)
    if not compatible_types(old, new):
        return
    before, after = children(old), children(new)
    for step in sorted({*before, *after}):
        below = (*steps, *step)
        if step not in after:
            yield NodeChange(below, before[step], None, old_parent=old, new_parent=new)
        elif step not in before:
            yield NodeChange(below, None, after[step], old_parent=old, new_parent=new)
        else:
            yield from _node(below, before[step], after[step], old, new)


def _differing(old: Json, new: Json) -> frozenset[str]:
    return frozenset(
        name
        for name in {*old, *new}
        if _own(name, old.get(name)) != _own(name, new.get(name))
        or (type(old.get(name)) is not type(new.get(name)) and name not in CHILD_KEYWORDS)
    )


def _own(name: str, value: Any) -> Any:
    """Return the part of a keyword that belongs to the node itself, without its children."""
    return None if name in CHILD_KEYWORDS and isinstance(value, Mapping) else value
