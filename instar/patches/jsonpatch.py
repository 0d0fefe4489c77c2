"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386) on plain values. Pure; upstream's quirks.

A failing patch raises ``PatchFailed`` without a reason: upstream tells the client none.
"""

from __future__ import annotations

from typing import Any

import orjson

from instar.plain import copy_json

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3_145_728

_MISSING = object()


class PatchFailed(Exception):
    """The patch does not fit the document."""


def merge_patch(target: Any, patch: Any) -> Any:
    """A new value; ``target`` is not changed, but shares unchanged parts."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(document: Any, operations: list[dict[str, Any]]) -> Any:
    """The patched document; the argument is changed in place where possible."""
    copied = 0
    for operation in operations:
        apply = _OPERATIONS.get(operation.get("op", ""))
        path = operation.get("path")
        if apply is None or not isinstance(path, str):
            raise PatchFailed
        if operation["op"] == "copy":
            source = operation.get("from")
            if not isinstance(source, str):
                raise PatchFailed
            copied += len(orjson.dumps(_find(document, source)))
            if copied > MAX_COPIED_BYTES:
                raise PatchFailed
        document = apply(document, _pointer(path), operation)
    return document


def _pointer(path: str) -> list[str]:
    if not path:
        return []
    if not path.startswith("/"):
        raise PatchFailed
    return [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]


def _find(document: Any, path: str) -> Any:
    value = document
    for part in _pointer(path):
        value = _member(value, part)
    return value


def _member(container: Any, part: str) -> Any:
    if isinstance(container, dict) and part in container:
        return container[part]
    if isinstance(container, list):
        return container[_position(container, part)]
    raise PatchFailed


def _position(container: list[Any], part: str, *, adding: bool = False) -> int:
    if adding and part == "-":
        return len(container)
    try:
        index = int(part)
    except ValueError as error:
        raise PatchFailed from error
    limit = len(container) + adding
    if index < 0:
        index += len(container)
    if not 0 <= index < limit:
        raise PatchFailed
    return index


def _parent(document: Any, path: list[str]) -> Any:
    value = document
    for part in path[:-1]:
        value = _member(value, part)
    return value


def _add(document: Any, path: list[str], operation: dict[str, Any]) -> Any:
    return _put(document, path, _value(operation))


def _value(operation: dict[str, Any]) -> Any:
    """A copy: later operations may change what was put in, and a patch may be applied again."""
    return copy_json(operation.get("value"))


def _put(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _parent(document, path)
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list):
        parent.insert(_position(parent, path[-1], adding=True), value)
    else:
        raise PatchFailed
    return document


def _remove(document: Any, path: list[str], operation: dict[str, Any]) -> Any:
    if not path:
        raise PatchFailed
    parent = _parent(document, path)
    if isinstance(parent, dict):
        if path[-1] not in parent:
            raise PatchFailed
        del parent[path[-1]]
    elif isinstance(parent, list):
        del parent[_position(parent, path[-1])]
    else:
        raise PatchFailed
    return document


def _replace(document: Any, path: list[str], operation: dict[str, Any]) -> Any:
    """An absent map key is added, as upstream does."""
    if not path:
        return _value(operation)
    parent = _parent(document, path)
    if isinstance(parent, list):
        parent[_position(parent, path[-1])] = _value(operation)
        return document
    return _put(document, path, _value(operation))


def _move(document: Any, path: list[str], operation: dict[str, Any]) -> Any:
    source = operation.get("from")
    if not isinstance(source, str):
        raise PatchFailed
    value = _find(document, source)
    document = _remove(document, _pointer(source), operation)
    return _put(document, path, value)


def _copy(document: Any, path: list[str], operation: dict[str, Any]) -> Any:
    value = _find(document, operation["from"])
    return _put(document, path, copy_json(value))


def _test(document: Any, path: list[str], operation: dict[str, Any]) -> Any:
    value = document
    wanted = operation.get("value")
    try:
        for part in path:
            value = _member(value, part)
    except PatchFailed:
        value = _MISSING
    if value is _MISSING and wanted is None and "value" in operation:
        return document
    if value is _MISSING or not _equal(value, wanted):
        raise PatchFailed
    return document


def _equal(left: Any, right: Any) -> bool:
    return left == right and isinstance(left, bool) == isinstance(right, bool)


_OPERATIONS = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
