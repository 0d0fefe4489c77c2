"""Visit every node of a structural schema with the path that leads to it.

Paths are the schema's own (``properties[spec].items``), so that they can be appended to the
place of the schema in a CRD. No node is interpreted here.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.field_errors import child, key
from instar.kube.schema.structure.structural import Structural


def walk(root: Structural, path: str = "") -> Iterator[tuple[str, Structural]]:
    """Every node of the skeleton, parents before children."""
    yield path, root
    for name, node in root.properties.items():
        yield from walk(node, key(child(path, "properties"), name))
    if isinstance(root.additional, Structural):
        yield from walk(root.additional, child(path, "additionalProperties"))
    if root.items is not None:
        yield from walk(root.items, child(path, "items"))


def walk_fields(root: Structural, path: str = "") -> Iterator[tuple[str, Structural]]:
    """The same nodes under the paths of values: ``spec.ports[*].name``, ``spec.labels.*``."""
    yield path, root
    for name, node in root.properties.items():
        yield from walk_fields(node, child(path, name))
    if isinstance(root.additional, Structural):
        yield from walk_fields(root.additional, child(path, "*"))
    if root.items is not None:
        yield from walk_fields(root.items, f"{path}[*]")
