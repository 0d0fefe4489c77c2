"""Maps a set of fields (``fieldsV1``) of one version to the fields of another version. Pure.

Called by ``ownership.py``, which moves ``managedFields`` entries to another version. Two readings
of one object, one per version, show what a conversion does. A path that both readings have is the
same field. A path that only the old reading has is mapped to the path with the same value that only
the new reading has, if there is exactly one. The paths left over on both sides (a field split in
two, a unit changed) are mapped to each other as a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from instar.base.json_values import Object, same_json_numbers
from instar.kube.apply.field_set import FieldSet, members, single, union

_MISSING = object()
Path = tuple[str, ...]


def carried(fields: FieldSet, old: Object | None, new: Object) -> tuple[FieldSet, int]:
    """Return the field set at the new version, and how many fields have no counterpart there."""
    kept: FieldSet = {}
    homeless: list[Path] = []
    for path in members(fields):
        if _value(new, path) is _MISSING:
            homeless.append(path)
        else:
            kept = union(kept, single(path))
    if not homeless or old is None:
        return kept, len(homeless)
    moves = _moves(old, new)
    unmatched = 0
    for path in homeless:
        moved = _moved(path, moves, old, new)
        if moved is not None:
            kept = union(kept, single(moved))
        elif _value(old, path) is not _MISSING:
            unmatched += 1
    if not unmatched:
        return kept, 0
    arrived = set(moves.values())
    fresh = [path for path in _leaves(new) if _value(old, path) is _MISSING]
    rest = [path for path in fresh if not any(path[: len(to)] == to for to in arrived)]
    for path in rest:
        kept = union(kept, single(path))
    return kept, 0 if rest else unmatched


def _moves(old: Object, new: Object) -> dict[Path, Path]:
    """Return old path to new path of values that occur once on each side, at different paths."""
    left = _by_value((path, value) for path, value in _nodes(old) if _value(new, path) is _MISSING)
    right = _by_value((path, value) for path, value in _nodes(new) if _value(old, path) is _MISSING)
    return {
        paths[0]: right[text][0]
        for text, paths in left.items()
        if len(paths) == 1 and len(right.get(text, ())) == 1
    }


def _moved(path: Path, moves: dict[Path, Path], old: Object, new: Object) -> Path | None:
    """Return the new path if the path or one of its parents moved."""
    for length in range(len(path), 0, -1):
        target = moves.get(path[:length])
        if target is not None:
            whole = (*target, *path[length:])
            return whole if _value(new, whole) is not _MISSING else None
    return None


def _by_value(nodes: Iterator[tuple[Path, Any]]) -> dict[bytes, list[Path]]:
    found: dict[bytes, list[Path]] = {}
    for path, value in nodes:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        found.setdefault(text, []).append(path)
    return found


def _nodes(obj: Object) -> Iterator[tuple[Path, Any]]:
    """Yield every object member below the body with its value; a list is one value."""
    todo: list[tuple[Path, Any]] = [
        ((f"f:{name}",), value)
        for name, value in obj.items()
        if name not in ("apiVersion", "kind", "metadata")
    ]
    while todo:
        path, value = todo.pop()
        if isinstance(value, dict):
            todo += [((*path, f"f:{name}"), inner) for name, inner in value.items()]
        if len(path) > 1:
            yield path, value


def _leaves(obj: Object) -> Iterator[Path]:
    return (path for path, value in _nodes(obj) if not (isinstance(value, dict) and value))


def _value(obj: Any, path: Path) -> Any:
    """Return the value at a path of fieldsV1 elements (``f:spec``, ``k:{…}``, ``v:…``)."""
    node = obj
    for element in path:
        node = _step(node, element)
        if node is _MISSING:
            return _MISSING
    return node


def _step(node: Any, element: str) -> Any:
    kind, _, text = element.partition(":")
    if kind == "f":
        return node.get(text, _MISSING) if isinstance(node, dict) else _MISSING
    if not isinstance(node, list):
        return _MISSING
    wanted = orjson.loads(text)
    if kind == "k":
        return next((item for item in node if _has(item, wanted)), _MISSING)
    if kind == "v":
        return next((item for item in node if same_json_numbers(item, wanted)), _MISSING)
    return node[wanted] if 0 <= wanted < len(node) else _MISSING


def _has(item: Any, keys: Object) -> bool:
    """Return whether the item has the keys; a key with a default may be missing in the item."""
    return isinstance(item, dict) and all(
        same_json_numbers(item.get(name, value), value) for name, value in keys.items()
    )
