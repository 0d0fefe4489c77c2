"""Removes fields that a manager applied last time and no longer applies, unless others own them.

Called by ``applying.py``. Fields are removed in the version of the manager's last entry; each other
manager's fields are compared in its own version. If a conversion fails, nothing is removed, because
a remaining field can be removed later and a lost one cannot be restored.
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
    """The object at the request's version, and at other versions that were computed for it."""

    obj: Object
    elsewhere: Mapping[str, Object]


def prune(
    merged: Mapping[str, Object],
    version: str,
    last: ManagedFieldsEntry,
    managers: Managers,
    schemas: Mapping[str, TypedSchema],
) -> Step[Pruned]:
    """Prune. ``merged`` has the merge result at every available version, ``version`` is the
    request's.

    ``managers`` are those after the apply: the applier's entry has what it applies now.
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
        current, at = _without_unowned(schemas[place], merged[place], moved, owned), place
    back = yield from convert(current, at, home)
    if back is None:
        return untouched
    lost = difference(
        _owned_with_parents(schemas[home], merged[home]), _owned_with_parents(schemas[home], back)
    )
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
    """Return whether anything that the manager applied last time might be missing from
    ``claimed``."""
    if last is None or not last.fields:
        return False
    if last.api_version != version:
        return True
    if includes(claimed, last.fields):
        return False  # the most common case: the same as last time
    root = schema.root
    return bool(
        difference(with_named_parents(root, last.fields), with_named_parents(root, claimed))
    )


def _owned_by_version(managers: Managers, first: str) -> dict[str, FieldSet]:
    """Return all managers' fields by version, ``first`` first: its fields may be needed by
    converters."""
    out: dict[str, FieldSet] = {}
    for entry in managers.values():
        out[entry.api_version] = union(out.get(entry.api_version, {}), entry.fields)
    return {version: out[version] for version in sorted(out, key=lambda v: (v != first, v))}


def _without_unowned(
    schema: TypedSchema, merged: Object, current: Object, owned: FieldSet
) -> Object:
    """Return ``merged`` without fields that ``current`` lacks and no manager owns."""
    keep = union(_owned_with_parents(schema, current), with_named_parents(schema.root, owned))
    return _without(schema, merged, difference(_owned_with_parents(schema, merged), keep))


def _owned_with_parents(schema: TypedSchema, obj: Object) -> FieldSet:
    return with_named_parents(schema.root, owned_in_object(schema, obj))


def _without(schema: TypedSchema, obj: Object, paths: FieldSet) -> Object:
    """Remove paths but keep the object's identity (name, namespace …)."""
    return remove_paths(schema, obj, difference(paths, NEVER_OWNED))
