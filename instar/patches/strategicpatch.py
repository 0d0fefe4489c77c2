"""Strategic merge patch for built-in kinds: maps merge, listed lists merge by key, others replace.

Custom resources have no Go types, so upstream refuses this patch for them; kubectl uses it for
the core kinds we serve. ``MERGE_KEYS`` names their lists that merge. Pure.
"""

from __future__ import annotations

from typing import Any

MERGE_KEYS = {
    "metadata.ownerReferences": "uid",
    "spec.ports": "port",
    "secrets": "name",
    "imagePullSecrets": "name",
    "status.conditions": "type",
}
"""List path → key of its items."""

MERGE_SETS = {"metadata.finalizers"}
"""Lists of scalars that merge as sets."""

_DIRECTIVES = ("$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys")


def strategic_merge(target: Any, patch: Any, path: str = "") -> Any:
    """A new value; the argument is not changed."""
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        where = f"{path}.{key}" if path else key
        if key.startswith("$deleteFromPrimitiveList/"):
            _remove_scalars(result, key.partition("/")[2], value)
        elif key.startswith(_DIRECTIVES) or key == "$patch":
            continue
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, list):
            result[key] = _merge_list(result.get(key), value, where)
        else:
            result[key] = strategic_merge(result.get(key), value, where)
    return result


def _remove_scalars(result: dict[str, Any], name: str, gone: Any) -> None:
    if isinstance(result.get(name), list) and isinstance(gone, list):
        result[name] = [item for item in result[name] if item not in gone]


def _merge_list(target: Any, patch: list[Any], path: str) -> list[Any]:
    present = list(target) if isinstance(target, list) else []
    if path in MERGE_SETS:
        return present + [item for item in patch if item not in present]
    key = MERGE_KEYS.get(path)
    if key is None or any(_is_replace(item) for item in patch):
        return [item for item in patch if not _is_replace(item)]
    for item in patch:
        _merge_item(present, item, key, path)
    return present


def _is_replace(item: Any) -> bool:
    return isinstance(item, dict) and item.get("$patch") == "replace"


def _merge_item(present: list[Any], item: Any, key: str, path: str) -> None:
    identity = item.get(key) if isinstance(item, dict) else None
    for position, old in enumerate(present):
        if isinstance(old, dict) and old.get(key) == identity:
            if item.get("$patch") == "delete":
                del present[position]
            else:
                present[position] = strategic_merge(old, item, path)
            return
    if not (isinstance(item, dict) and item.get("$patch") == "delete"):
        present.append(item)
