"""What a manager applied last time and does not apply now goes away, unless others own it.

The judgement is made in the version of the manager's last entry, and every other owner is
heard in its own version. Where a version cannot be had half-way, nothing is removed: a field
too many can be removed later, a field too few is somebody's loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from instar.base import errors
from instar.base.json_values import Object
from instar.kube.apply.conversion_requests import Step, convert
from instar.kube.apply.field_set import FieldSet, difference, includes, intersection, union
from instar.kube.apply.managed_fields import ManagedFieldsEntry, Managers
from instar.kube.apply.owned_paths import NEVER_OWNED, owned_in_object
from instar.kube.apply.ownership_schema import TypedSchema
from instar.kube.apply.remove import remove_paths, with_named_parents


class Pruned(NamedTuple):
    """The object at the request's version, and at others where it came by on the way."""

    obj: Object
    elsewhere: Mapping[str, Object]


def prune(
    merged: Mapping[str, Object],
    version: str,
    last: ManagedFieldsEntry,
    managers: Managers,
    schemas: Mapping[str, TypedSchema],
) -> Step[Pruned]:
    """``merged`` holds the merge result at every version at hand, ``version`` the request's.

    ``managers`` are those after the apply: the applier's entry already says what it applies now.
    """
    untouched = Pruned(merged[version], merged)
    home = last.api_version
    if home not in merged:
        return untouched
    named_last = with_named_parents(schemas[home].root, last.fields)
    current, at = _without(schemas[home], merged[home], named_last), home
    for place, owned in _owned_by_version(managers, home).items():
        moved = yield from convert(current, at, place)
        if moved is None or place not in merged:
            return untouched
        current, at = _give_back(schemas[place], merged[place], moved, owned), place
    back = yield from convert(current, at, home)
    if back is None:
        return untouched
    lost = difference(_named(schemas[home], merged[home]), _named(schemas[home], back))
    gone = difference(intersection(lost, named_last), NEVER_OWNED)
    if not gone:
        return untouched
    result = remove_paths(schemas[home], merged[home], gone)
    final = yield from convert(result, home, version)
    if final is None:
        raise errors.Unclassified(
            f"failed to prune fields: failed to convert pruned object to {version}"
        )
    return Pruned(final, {home: result})


def must_prune(
    schema: TypedSchema, version: str, last: ManagedFieldsEntry | None, claimed: FieldSet
) -> bool:
    """Whether anything the manager applied last time might be missing from ``claimed``."""
    if last is None or not last.fields:
        return False
    if last.api_version != version:
        return True
    if includes(claimed, last.fields):
        return False  # most: the same as last time
    root = schema.root
    return bool(
        difference(with_named_parents(root, last.fields), with_named_parents(root, claimed))
    )


def _owned_by_version(managers: Managers, first: str) -> dict[str, FieldSet]:
    """What all managers own together, ``first`` first: its owners may hold what converters need."""
    out: dict[str, FieldSet] = {}
    for entry in managers.values():
        out[entry.api_version] = union(out.get(entry.api_version, {}), entry.fields)
    return {version: out[version] for version in sorted(out, key=lambda v: (v != first, v))}


def _give_back(schema: TypedSchema, merged: Object, current: Object, owned: FieldSet) -> Object:
    """``merged`` without what ``current`` lacks and nobody owns."""
    keep = union(_named(schema, current), with_named_parents(schema.root, owned))
    return _without(schema, merged, difference(_named(schema, merged), keep))


def _named(schema: TypedSchema, obj: Object) -> FieldSet:
    return with_named_parents(schema.root, owned_in_object(schema, obj))


def _without(schema: TypedSchema, obj: Object, paths: FieldSet) -> Object:
    """An object keeps its identity on every way through a converter."""
    return remove_paths(schema, obj, difference(paths, NEVER_OWNED))
