"""Makes partial objects, as server-side apply sends them: some fields are omitted, the rest is
unchanged.

``search.py`` and ``live.py`` use them to check that a converter accepts a partial object and adds
nothing that the whole object does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from instar.base.json_values import Object, copy_json
from instar.kube.schema.structure.structural import Structural
from instar.tools.sdk.checking.differences import PathSteps

_COMMON_FIELDS = ("apiVersion", "kind", "metadata")


def removable(obj: Object, schema: Structural) -> list[PathSteps]:
    """Yield every field that another manager may own: properties, map entries and items of map
    lists.
    """
    found: list[PathSteps] = []
    for name, value in obj.items():
        if name not in _COMMON_FIELDS:
            found.append((name,))
            found += _below(value, schema.properties.get(name), (name,))
    return found


def _below(value: Any, schema: Structural | None, path: PathSteps) -> Iterator[PathSteps]:
    if schema is None or schema.map_type == "atomic":
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            node = schema.properties.get(name)
            if node is None and isinstance(schema.additional, Structural):
                node = schema.additional
            yield (*path, name)
            yield from _below(inner, node, (*path, name))
    elif isinstance(value, list) and schema.list_type == "map" and schema.items is not None:
        for index, item in enumerate(value):
            for inside in _below(item, schema.items, (*path, index)):
                last = inside[-1]
                if len(inside) != len(path) + 2 or last not in schema.list_map_keys:
                    yield inside


def without_paths(obj: Object, paths: Iterable[PathSteps]) -> Object:
    """Return a copy without the fields at ``paths``."""
    part: Object = copy_json(obj)
    for path in paths:
        holder: Any = part
        for step in path[:-1]:
            holder = _child(holder, step)
        if isinstance(holder, dict):
            holder.pop(path[-1], None)
    return part


def _child(holder: Any, step: str | int) -> Any:
    if isinstance(holder, dict):
        return holder.get(step)
    if isinstance(holder, list) and isinstance(step, int):
        return holder[step]
    return None
