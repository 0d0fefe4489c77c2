"""Validates ``x-kubernetes-list-type``, ``-list-map-keys`` and ``-map-type`` on one schema node.

Called by ``schema_node.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from instar.base.field_errors import (
    FieldError,
    child,
    forbidden,
    invalid,
    key,
    not_supported,
    required,
)
from instar.kube.crds.go_values import items_value

Schema = Mapping[str, Any]

LIST_TYPE = "x-kubernetes-list-type"
MAP_TYPE = "x-kubernetes-map-type"
MAP_KEYS = "x-kubernetes-list-map-keys"
_LIST_TYPES = ("atomic", "set", "map")
_MAP_TYPES = ("atomic", "granular")
_SET_ITEM = "must be atomic as item of a list with x-kubernetes-list-type=set"
_MAP_KEY = "this property is in x-kubernetes-list-map-keys, so it"


def list_errors(
    schema: Schema, path: str, *, atomic_sets: bool, sound_keys: bool
) -> Iterator[FieldError]:
    """Return the errors; ``atomic_sets`` and ``sound_keys`` are the two rules that may be relaxed
    because the old object violates them."""
    yield from _map_type(schema, path)
    yield from _list_type(schema, path, atomic_sets)
    yield from _keys_need_map(schema, path)
    if schema.get(LIST_TYPE) == "map":
        yield from _map_list(schema, path)
    if sound_keys:
        yield from key_errors(schema, path)


def _map_type(schema: Schema, path: str) -> Iterator[FieldError]:
    value = schema.get(MAP_TYPE)
    if value is None:
        return
    yield from _type_must_be("object", MAP_TYPE, schema, path)
    if value not in _MAP_TYPES:
        yield not_supported(child(path, MAP_TYPE), value, _MAP_TYPES)


def _type_must_be(type: str, because: str, schema: Schema, path: str) -> Iterator[FieldError]:
    text = f"must be {type} if {because} is specified"
    if not schema.get("type"):
        yield required(child(path, "type"), text)
    elif schema["type"] != type:
        yield invalid(child(path, "type"), schema["type"], text)


def _list_type(schema: Schema, path: str, atomic_sets: bool) -> Iterator[FieldError]:
    value = schema.get(LIST_TYPE)
    if value is None:
        return
    wrong_type = list(_type_must_be("array", LIST_TYPE, schema, path))
    yield from wrong_type
    if value not in _LIST_TYPES:
        yield not_supported(child(path, LIST_TYPE), value, _LIST_TYPES)
    elif atomic_sets and not wrong_type:
        yield from set_item_errors(schema, path)


def set_item_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    """Check that set items are atomic or scalar: they are compared as a whole and cannot be
    merged."""
    items = schema.get("items")
    if schema.get(LIST_TYPE) != "set" or not isinstance(items, Mapping):
        return
    item_list_type = items.get(LIST_TYPE)
    at = child(path, "items")
    if items.get("type") == "array" and item_list_type not in (None, "atomic"):
        yield invalid(child(at, LIST_TYPE), item_list_type, _SET_ITEM)
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        # Upstream shows the list type here, though the map type is wrong.
        yield invalid(child(at, MAP_TYPE), item_list_type, _SET_ITEM)


def _keys_need_map(schema: Schema, path: str) -> Iterator[FieldError]:
    if not schema.get(MAP_KEYS) or schema.get(LIST_TYPE) == "map":
        return
    text = f"must be map if {MAP_KEYS} is non-empty"
    value = schema.get(LIST_TYPE)
    at = child(path, LIST_TYPE)
    yield required(at, text) if value is None else invalid(at, value, text)


def _map_list(schema: Schema, path: str) -> Iterator[FieldError]:
    because = f"if {LIST_TYPE} is map"
    keys: list[str] = schema.get(MAP_KEYS) or []
    items = schema.get("items")
    if not keys:
        yield required(child(path, MAP_KEYS), f"must not be empty {because}")
    at = child(path, "items")
    if items is None:
        yield required(at, f"must have a schema {because}")
    elif not isinstance(items, Mapping):
        yield invalid(at, items_value(items), f"must only have a single schema {because}")
    elif items.get("type") != "object":
        text = f"must be object if parent array's {LIST_TYPE} is map"
        yield invalid(child(at, "type"), items.get("type", ""), text)
    else:
        yield from _item_keys(keys, items, path)


def _item_keys(keys: list[str], items: Schema, path: str) -> Iterator[FieldError]:
    properties = items.get("properties") or {}
    seen: set[str] = set()
    for name in keys:
        if name not in properties:
            text = "entries must all be names of item properties"
            yield invalid(child(path, MAP_KEYS), keys, text)
        elif properties[name].get("type") in ("array", "object"):
            text = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            at = child(key(f"{path}.items.properties", name), "type")
            yield invalid(at, items.get("type", ""), text)
        if name in seen:
            yield invalid(child(path, MAP_KEYS), keys, "must not contain duplicate entries")
        seen.add(name)


def key_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    """Check that map keys are required or defaulted and not nullable, and that items are not
    nullable."""
    items, list_type = schema.get("items"), schema.get(LIST_TYPE)
    if list_type not in ("set", "map") or not isinstance(items, Mapping):
        return
    if items.get("nullable"):
        text = f"cannot be nullable when {LIST_TYPE} is {list_type}"
        yield forbidden(f"{path}.items.nullable", text)
    if list_type != "map":
        return
    needed = items.get("required") or []
    properties = items.get("properties") or {}
    for name in schema.get(MAP_KEYS) or []:
        if name not in properties:
            continue
        at = key(f"{path}.items.properties", name)
        if name not in needed and properties[name].get("default") is None:
            text = f"{_MAP_KEY} must have a default or be a required property"
            yield required(child(at, "default"), text)
        if properties[name].get("nullable"):
            yield forbidden(child(at, "nullable"), f"{_MAP_KEY} cannot be nullable")
