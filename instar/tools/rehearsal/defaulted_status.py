"""Removes a status that exists only as a default from an object of a snapshot. Pure.

A snapshot that was taken through the API shows the status that the schema's default adds to every
read, although nothing is stored. ``batch.py`` removes that status before it loads the object into
the copy; otherwise a release that changes the default would seem to change nothing.

If the CRD has the status subresource, a create drops the status, and only writes to the subresource
store one; such a write adds an entry to managedFields. So an object without such an entry has no
stored status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from instar.base.json_values import Object, copy_json, same_json
from instar.kube.api.crd import Crd
from instar.kube.schema.compiled import CompiledSchema, compile_schema

_STATUS = "status"


def without_defaulted_status(objects: Sequence[Object], crd: Crd) -> list[Object]:
    """Return the objects as a store holds them."""
    compiled: dict[str, CompiledSchema] = {}
    for version in crd.versions:
        node = ((version.schema or {}).get("properties") or {}).get(_STATUS) or {}
        if version.has_status and isinstance(node, Mapping) and "default" in node:
            compiled[f"{crd.group}/{version.name}"] = compile_schema(
                version.schema, preserve_unknown=crd.preserve_unknown
            )
    if not compiled:
        return list(objects)
    return [_stored(obj, compiled.get(str(obj.get("apiVersion")))) for obj in objects]


def _stored(obj: Object, compiled: CompiledSchema | None) -> Object:
    if compiled is None or _STATUS not in obj or not _has_unowned_status(obj):
        return obj
    bare = {name: value for name, value in obj.items() if name != _STATUS}
    shown: Object = copy_json(bare)
    compiled.default(shown)
    return bare if same_json(shown.get(_STATUS), obj[_STATUS]) else obj


def _has_unowned_status(obj: Object) -> bool:
    """Return whether a status exists without an owner; False if managedFields are missing."""
    entries: Any = (obj.get("metadata") or {}).get("managedFields")
    if not isinstance(entries, list) or not entries:
        return False
    return not any(
        isinstance(entry, dict) and "f:status" in (entry.get("fieldsV1") or {}) for entry in entries
    )
