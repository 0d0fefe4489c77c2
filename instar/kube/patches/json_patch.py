"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386) on JSON values, with upstream's behaviour.

Called by ``documents.py`` for PATCH requests, and for mutating admission by
``kube/admission/policies/mutating.py`` and ``server/registry/admission/webhooks/mutating.py``. A
failing patch raises ``PatchFailed`` with upstream's reason, which only admission shows to the
client.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from instar.base.field_errors import go_quote
from instar.base.json_values import copy_json, same_json

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3_145_728

_MISSING = object()
_MISSING_VALUE = "missing value"
_INDEX = re.compile(r"[+-]?[0-9]+")
"""What Go's ``strconv.Atoi`` reads; ``int`` also takes spaces, underscores and other digits."""


class PatchFailed(Exception):
    """The patch does not fit the document."""


class TestFailed(PatchFailed):
    """A ``test`` found another value."""

    __test__ = False  # not a pytest class


class _NoIndex(PatchFailed):
    """The path element is not a list index."""


def merge_patch(target: Any, patch: Any) -> Any:
    """Return a new value, which shares unchanged parts with ``target`` and nothing with
    ``patch``."""
    if not isinstance(target, dict):
        return _without_nulls(patch)
    if not isinstance(patch, dict):
        return copy_json(patch)
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def _without_nulls(value: Any) -> Any:
    """Return a copy without the members that are null, also inside of lists; null elements of
    lists stay."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def json_patch(document: Any, operations: list[dict[str, Any]]) -> Any:
    """Return the patched document; the argument is changed in place where possible."""
    copied = 0
    for operation in operations:
        kind = operation.get("op")
        apply = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if apply is None:
            raise PatchFailed(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        if kind in ("copy", "move"):
            _text(operation, "from")
        path = _text(operation, "path")
        if kind == "copy":
            copied += len(orjson.dumps(_source(document, operation)))
            if copied > MAX_COPIED_BYTES:
                raise PatchFailed(
                    "Unable to complete the copy, the accumulated size increase of copy is "
                    f"{copied}, exceeding the limit {MAX_COPIED_BYTES}"
                )
        document = apply(document, path, operation)
    return document


def _text(operation: dict[str, Any], name: str) -> str:
    """Return the operation's ``path`` or ``from``."""
    kind, text = operation["op"], operation.get(name)
    if isinstance(text, str):
        return text
    lacking = "operation, missing from field: " if name == "from" else ""
    if name == "path" and kind in ("replace", "move", "test"):
        lacking = "operation missing path field: "
    raise PatchFailed(f"{kind} operation failed to decode {name}: {lacking}{_MISSING_VALUE}")


def _pointer(path: str) -> list[str]:
    """Return the elements of a path. Whatever comes before the first slash is not read."""
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _member(container: Any, part: str) -> Any:
    if isinstance(container, dict) and part in container:
        return container[part]
    if isinstance(container, list):
        return container[_position(container, part)]
    raise PatchFailed


def _position(container: list[Any], part: str, *, adding: bool = False) -> int:
    if adding and part == "-":
        return len(container)
    if not _INDEX.fullmatch(part):
        raise _NoIndex(f"strconv.Atoi: parsing {go_quote(part)}: invalid syntax")
    shown = index = int(part)
    limit = len(container) + adding
    if index < 0:
        index += limit
    if not 0 <= index < limit:
        raise PatchFailed(f"Unable to access invalid index: {shown}: invalid index referenced")
    return index


def _parent(document: Any, path: str, missing: str) -> tuple[Any, str]:
    """Return the container of a path's last element, and that element; ``missing`` is the error
    if there is none."""
    try:
        steps = _pointer(path)
        if not steps:
            raise PatchFailed
        value = document
        for part in steps[:-1]:
            value = _member(value, part)
    except PatchFailed as error:
        raise PatchFailed(f"{missing}: {_MISSING_VALUE}") from error
    if not isinstance(value, dict | list):
        raise PatchFailed(f"{missing}: {_MISSING_VALUE}")
    return value, steps[-1]


def _add(document: Any, path: str, operation: dict[str, Any]) -> Any:
    missing = f'add operation does not apply: doc is missing path: "{path}"'
    return _put(document, path, _value(operation), missing, f"error in add for path: '{path}'")


def _value(operation: dict[str, Any]) -> Any:
    """Return a copy, because later operations may change it and a patch may be applied again."""
    return copy_json(operation.get("value"))


def _put(document: Any, path: str, value: Any, missing: str, failing: str) -> Any:
    parent, step = _parent(document, path, missing)
    if isinstance(parent, dict):
        parent[step] = value
        return document
    try:
        position = _position(parent, step, adding=True)
    except _NoIndex as error:
        text = f"{failing}: value was not a proper array index: '{step}': {error}"
        raise PatchFailed(text) from error
    except PatchFailed as error:
        raise PatchFailed(f"{failing}: {error}") from error
    parent.insert(position, value)
    return document


def _remove(document: Any, path: str, operation: dict[str, Any]) -> Any:
    missing = f'remove operation does not apply: doc is missing path: "{path}"'
    return _delete(document, path, missing, f"error in remove for path: '{path}'")


def _delete(document: Any, path: str, missing: str, failing: str) -> Any:
    parent, step = _parent(document, path, missing)
    if isinstance(parent, dict):
        if step not in parent:
            text = f"Unable to remove nonexistent key: {step}: {_MISSING_VALUE}"
            raise PatchFailed(f"{failing}: {text}")
        del parent[step]
        return document
    try:
        del parent[_position(parent, step)]
    except PatchFailed as error:
        raise PatchFailed(f"{failing}: {error}") from error
    return document


def _replace(document: Any, path: str, operation: dict[str, Any]) -> Any:
    """Replace a value; an absent map key is added, as upstream does."""
    if not path:
        if not isinstance(operation.get("value"), dict | list):
            text = "replace operation value must be object or array"
            raise PatchFailed(f"{text}: %!w(<nil>)")
        return _value(operation)
    missing = "replace operation does not apply: doc is missing"
    parent, step = _parent(document, path, f"{missing} path: {path}")
    if isinstance(parent, dict):
        parent[step] = _value(operation)
        return document
    try:
        parent[_position(parent, step)] = _value(operation)
    except PatchFailed as error:
        raise PatchFailed(f"{missing} key: {path}: {_MISSING_VALUE}") from error
    return document


def _source(document: Any, operation: dict[str, Any]) -> Any:
    """Return the value at ``from``. A key that the map lacks is copied as null."""
    kind, source = operation["op"], operation["from"]
    missing = f"{kind} operation does not apply: doc is missing from path: {source}"
    parent, step = _parent(document, source, missing)
    if kind == "copy" and isinstance(parent, dict):
        return parent.get(step)
    try:
        return _member(parent, step)
    except PatchFailed as error:
        text = f"from: '{source}'" if kind == "copy" else f"path: '{step}'"
        why = str(error) or f"Unable to remove nonexistent key: {step}: {_MISSING_VALUE}"
        raise PatchFailed(f"error in {kind} for {text}: {why}") from error


def _move(document: Any, path: str, operation: dict[str, Any]) -> Any:
    value, source = _source(document, operation), operation["from"]
    failing = "error in move for path: "
    missing = "move operation does not apply: doc is missing"
    document = _delete(document, source, f"{missing} from path: {source}", f"{failing}'{source}'")
    return _put(document, path, value, f"{missing} destination path: {path}", f"{failing}'{path}'")


def _copy(document: Any, path: str, operation: dict[str, Any]) -> Any:
    missing = f"copy operation does not apply: doc is missing destination path: {path}"
    value = copy_json(_source(document, operation))
    return _put(document, path, value, missing, "error while adding value during copy")


def _test(document: Any, path: str, operation: dict[str, Any]) -> Any:
    value, wanted = document, operation.get("value")
    if path:
        missing = f"test operation does not apply: is missing path: {path}"
        parent, step = _parent(document, path, missing)
        if isinstance(parent, dict):
            value = parent.get(step, _MISSING)
        else:
            try:
                value = _member(parent, step)
            except PatchFailed as error:
                raise PatchFailed(f"error in test for path: '{path}': {error}") from error
    if value is _MISSING and wanted is None:
        return document
    if value is _MISSING or not same_json(value, wanted):
        raise TestFailed(f"testing value {path} failed: test failed")
    return document


_OPERATIONS = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
