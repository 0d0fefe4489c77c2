"""Traversal of a structural schema: yields every node with its path.

Currently called only by tests. Paths are the schema's own (``properties[spec].items``), to be
appended to the schema's path in a CRD, or those of values (``walk_fields``).
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.field_errors import child, key
from instar.kube.schema.structure.structural import Structural


def walk(root: Structural, path: str = "") -> Iterator[tuple[str, Structural]]:
    """Yield every node with its schema path, parents before children."""
    yield path, root
    for name, node in root.properties.items():
        yield from walk(node, key(child(path, "properties"), name))
    if isinstance(root.additional, Structural):
        yield from walk(root.additional, child(path, "additionalProperties"))
    if root.items is not None:
        yield from walk(root.items, child(path, "items"))


def walk_fields(root: Structural, path: str = "") -> Iterator[tuple[str, Structural]]:
    """Yield every node with the path of its values: ``spec.ports[*].name``, ``spec.labels.*``."""
    yield path, root
    for name, node in root.properties.items():
        yield from walk_fields(node, child(path, name))
    if isinstance(root.additional, Structural):
        yield from walk_fields(root.additional, child(path, "*"))
    if root.items is not None:
        yield from walk_fields(root.items, f"{path}[*]")
