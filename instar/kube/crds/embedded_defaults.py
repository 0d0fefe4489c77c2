"""Cleans schema defaults that contain embedded resources: drops unknown metadata fields from them.

Called by ``strategy.py`` before a CRD is stored, because upstream's validation has this effect on
what a client reads back. A default that does not decode stays as written, so that validation
reports it. Defaults inside metadata stay too; they are pruned when applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.base.json_values import Object, copy_json, same_json
from instar.kube.crds.validation.schema_node import EMBEDDED
from instar.kube.crds.validation.unsupported_schema import conversion_problem
from instar.kube.schema.metadata.embedded_resources import compile_coercer
from instar.kube.schema.metadata.types import MetaError
from instar.kube.schema.structure.parse import structural

_META = frozenset({"apiVersion", "kind", "metadata"})


def with_clean_defaults(spec: Object) -> Object:
    """Return an internal spec with cleaned schema defaults; the same object if nothing changes."""
    changes: Object = {}
    validation = _with_clean_schema(spec.get("validation"))
    if validation is not spec.get("validation"):
        changes["validation"] = validation
    versions = spec.get("versions") or []
    schemas = [_with_clean_schema(version.get("schema")) for version in versions]
    if any(
        schema is not version.get("schema")
        for schema, version in zip(schemas, versions, strict=True)
    ):
        changes["versions"] = [
            version if schema is None else {**version, "schema": schema}
            for version, schema in zip(versions, schemas, strict=True)
        ]
    return {**spec, **changes} if changes else spec


def _with_clean_schema(holder: Object | None) -> Object | None:
    schema = (holder or {}).get("openAPIV3Schema")
    if holder is None or schema is None or conversion_problem(schema) is not None:
        return holder
    clean = _clean(schema, resource=True)
    return holder if clean is schema else {**holder, "openAPIV3Schema": clean}


def _clean(schema: Mapping[str, Any], *, resource: bool) -> Mapping[str, Any]:
    changes: Object = {}
    default = schema.get("default")
    if default and isinstance(default, dict | list):
        clean = _coerced(schema, default)
        if not same_json(clean, default):
            changes["default"] = clean
    items = schema.get("items")
    if isinstance(items, Mapping):
        below = _clean(items, resource=items.get(EMBEDDED) is True)
        if below is not items:
            changes["items"] = below
    properties = schema.get("properties") or {}
    cleaned = {
        name: item
        if resource and name in _META
        else _clean(item, resource=item.get(EMBEDDED) is True)
        for name, item in properties.items()
    }
    if any(cleaned[name] is not item for name, item in properties.items()):
        changes["properties"] = cleaned
    return {**schema, **changes} if changes else schema


def _coerced(schema: Mapping[str, Any], default: Any) -> Any:
    coerce = compile_coercer(structural(schema))
    if coerce is None:
        return default
    clean = copy_json(default)
    try:
        coerce(clean, "", False, [])
    except MetaError:
        return default
    return clean
