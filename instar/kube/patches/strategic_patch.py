"""Strategic merge patch: merges maps, and lists by their merge key; replaces other values.

Called by ``documents.py``, for built-in kinds only: custom resources have no patch strategies, so
upstream rejects this patch for them. The merge is driven by ``x-kubernetes-patch-strategy`` and
``-patch-merge-key`` of the schema; lists are merged in ``strategic_lists.py``. The merge runs in
linear time; errors have upstream's messages, most of them without a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from instar.base.errors import BadRequest, Unclassified
from instar.base.field_errors import go_quote
from instar.base.json_values import Object
from instar.kube.patches.strategic_lists import (
    bad_type,
    check_order,
    element_kind,
    identity,
    merge_scalars,
    sort_by_patch_order,
    split_directed,
    unknown_directive,
    without_key,
)

Schema = Mapping[str, Any]

_PATCH, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder", "$deleteFromPrimitiveList"
_STRATEGY, _MERGE_KEY = "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key"
_ABSENT = object()
OPEN: Schema = {}
"""The schema of an untyped value."""


class PatchMeta(NamedTuple):
    """Patch strategy, merge key and type of one field."""

    schema: Schema
    strategy: str
    key: str
    """The merge key of list items."""


def strategic_merge(target: Object, patch: Object, schema: Schema) -> Object:
    """Return a new object, which shares parts with both arguments; neither is changed.

    Raises ``BadRequest`` for a malformed directive, ``Invalid`` for lists within lists and
    ``Unclassified`` for the rest.
    """
    return _merge_map(target, patch, schema)


def _merge_map(target: Object, patch: Object, schema: Schema) -> Object:
    if _PATCH in patch:
        return _apply_directive(patch)
    merged = _retain_keys(target, patch)
    done = _reorder(merged, patch, schema)
    for written, value in patch.items():
        if written in done or written == _RETAIN:
            continue
        deleting = written.startswith(_DELETE)
        name = _list_name(written, _DELETE) if deleting else written
        if value is None:
            merged.pop(name, None)
            continue
        old = merged.get(name, _ABSENT)
        if isinstance(value, dict) and isinstance(old, dict):
            place = _field(schema, name)
            replaced = place.strategy == "replace"
            merged[name] = value if replaced else _merge_map(old, value, place.schema)
        elif isinstance(value, list) and isinstance(old, list):
            merged[name] = _merge_list(old, value, _list_field(schema, name), deleting=deleting)
        elif not deleting:
            _set_new_value(merged, name, value)
    return merged


def _apply_directive(patch: Object) -> Object:
    """Apply a map with a ``$patch`` directive."""
    if patch[_PATCH] == "replace":
        return {name: value for name, value in patch.items() if name != _PATCH}
    if patch[_PATCH] == "delete":
        return {}
    raise unknown_directive(patch)


def _retain_keys(target: Object, patch: Object) -> Object:
    """Return a copy of the old map, reduced to the keys of ``$retainKeys`` if given."""
    if _RETAIN not in patch:
        return dict(target)
    named = patch[_RETAIN]
    if not isinstance(named, list):
        raise BadRequest("invalid patch format of retainKeys")
    kept = {name for name in named if isinstance(name, str)}
    for name, value in patch.items():
        directive = name.startswith((_DELETE, _ORDER)) or name == _RETAIN
        if value is not None and not directive and name not in kept:
            raise BadRequest("invalid patch format of retainKeys")
    return {name: value for name, value in target.items() if name in kept}


def _reorder(merged: Object, patch: Object, schema: Schema) -> set[str]:
    """Merge and order the lists with ``$setElementOrder``; return the keys that are done."""
    done: set[str] = set()
    for written, order in patch.items():
        if not written.startswith(_ORDER):
            continue
        if not isinstance(order, list):
            raise bad_type([], order)
        name = _list_name(written, _ORDER)
        done.add(written)
        old, new = _list(merged, name), _list(patch, name)
        place = _list_field(schema, name)
        check_order(new or [], order, place.key)
        if old is None and new is None:
            continue
        if old is None:
            result = _without_nulls(new)
        else:
            result = old if new is None else _merge_list(old, new, place)
        kind = element_kind(old or [], new or [])
        merged[name] = sort_by_patch_order(
            result, order, old or [], place.key if kind is dict else None
        )
        done.add(name)
    return done


def _merge_list(
    old: list[Any], new: list[Any], place: PatchMeta, *, deleting: bool = False
) -> list[Any]:
    if place.strategy != "merge" and not deleting:
        return new
    if not old and not new:
        return old
    if element_kind(old, new) is not dict:
        return merge_scalars(old, new, deleting=deleting)
    if not place.key:
        raise Unclassified("cannot merge lists without merge key for struct")
    kept, additions = split_directed(old, new, place.key)
    return sort_by_patch_order(_merge_items(kept, additions, place), additions, kept, place.key)


def _merge_items(kept: list[Any], additions: list[Any], place: PatchMeta) -> list[Any]:
    """Merge each item into the first old one with the same key, or append it."""
    merged = list(kept)
    positions: dict[Any, int] = {}
    for position, item in enumerate(merged):
        if place.key in item:
            positions.setdefault(identity(item[place.key]), position)
    for item in additions:
        if place.key not in item:
            raise without_key(item, place.key)
        found = positions.setdefault(identity(item[place.key]), len(merged))
        if found == len(merged):
            merged.append(item)
        else:
            merged[found] = _merge_map(merged[found], item, place.schema)
    return merged


def _set_new_value(merged: Object, name: str, value: Any) -> None:
    """Set a value that is new or has another type. A map that is a directive is dropped."""
    if isinstance(value, dict) and _PATCH in value:
        merged.pop(name, None)
    else:
        merged[name] = _without_nulls(value)


def _without_nulls(value: Any) -> Any:
    """Return the patch's value without nulls and without items that are directives."""
    if isinstance(value, dict):
        return {
            name: _without_nulls(item)
            for name, item in value.items()
            if item is not None and not _is_directive(item)
        }
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if not _is_directive(item)]
    return value


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and _PATCH in value


def _list_name(written: str, directive: str) -> str:
    """Return the list that a directive such as ``$setElementOrder/ports`` names."""
    before, slash, name = written.partition("/")
    if before != directive or not slash:
        subject = "setElementOrder list" if directive == _ORDER else "primitive list"
        raise BadRequest(f"invalid patch format of {subject}")
    return name


def _list(values: Object, name: str) -> list[Any] | None:
    if name not in values:
        return None
    found = values[name]
    if not isinstance(found, list):
        raise bad_type([], found)
    return found


def _field(schema: Schema, name: str) -> PatchMeta:
    found = schema.get("properties", OPEN).get(name)
    if found is not None:
        words = found.get(_STRATEGY, "").split(",")
        strategy = next((word for word in words if word != "retainKeys"), "")
        return PatchMeta(found, strategy, found.get(_MERGE_KEY, ""))
    if "additionalProperties" in schema:
        raise Unclassified("merging an object in json but data type is not struct, instead is: map")
    if "title" in schema:
        raise Unclassified(
            f"unable to find api field in struct {schema['title']} "
            f"for the json field {go_quote(name)}"
        )
    return PatchMeta(OPEN, "", "")


def _list_field(schema: Schema, name: str) -> PatchMeta:
    """Return the patch metadata of a list, with the type of its items."""
    place = _field(schema, name)
    if place.schema.get("type", "array") != "array":
        raise Unclassified("expected slice or array type, but got: struct")
    return place._replace(schema=place.schema.get("items", OPEN))
