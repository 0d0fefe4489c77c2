"""The read pipeline written down a second time, slowly and from scratch, for comparison.

Knows plain JSON and the raw schemas of a CRD; shares no code with the server.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from instar.base.json_values import Object

Schema = Mapping[str, Any]
Convert = Callable[[Object, str], Object]
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_ROOT = ("apiVersion", "kind", "metadata")


def read(
    stored: Object, api_version: str, schemas: Mapping[str, Schema], convert: Convert
) -> Object:
    """What a reader of ``api_version`` must see of stored bytes (without a resourceVersion)."""
    obj = copy.deepcopy(stored)
    _clean(obj, schemas[obj["apiVersion"]])
    _default(obj, schemas[obj["apiVersion"]])
    if obj["apiVersion"] != api_version:
        obj = _kept(obj, convert(copy.deepcopy(obj), api_version))
        _clean(obj, schemas[api_version])
    return obj


def _kept(original: Object, converted: Object) -> Object:
    """Of metadata only labels and annotations are a converter's to change."""
    metadata = copy.deepcopy(original["metadata"])
    for name in ("labels", "annotations"):
        metadata.pop(name, None)
        if converted["metadata"].get(name) is not None:
            metadata[name] = converted["metadata"][name]
    return {**converted, "metadata": metadata}


def _clean(obj: Object, schema: Schema) -> None:
    for name in list(obj):
        if name in _ROOT:
            continue
        if name not in schema["properties"]:
            del obj[name]
        else:
            _prune(obj[name], schema["properties"][name])
            _drop_nulls(obj[name], schema["properties"][name])


def _prune(value: Any, schema: Schema) -> None:
    if isinstance(value, list):
        for item in value:
            _prune(item, schema.get("items", {}))
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    for name in list(value):
        if name in known:
            _prune(value[name], known[name])
        elif "additionalProperties" in schema:
            _prune(value[name], schema["additionalProperties"])
        elif not schema.get(_PRESERVE):
            del value[name]


def _drop_nulls(value: Any, schema: Schema) -> None:
    if isinstance(value, list):
        for item in value:
            _drop_nulls(item, schema.get("items", {}))
    if not isinstance(value, dict):
        return
    for name, below in schema.get("properties", {}).items():
        if name not in value:
            continue
        if value[name] is None:
            if not below.get("nullable") and "default" not in below:
                del value[name]
        else:
            _drop_nulls(value[name], below)


def _default(value: Any, schema: Schema) -> None:
    if isinstance(value, list):
        for item in value:
            _default(item, schema.get("items", {}))
    if not isinstance(value, dict):
        return
    for name, below in schema.get("properties", {}).items():
        absent = name not in value or (value[name] is None and not below.get("nullable"))
        if absent and "default" in below:
            value[name] = copy.deepcopy(below["default"])
        if name in value:
            _default(value[name], below)
