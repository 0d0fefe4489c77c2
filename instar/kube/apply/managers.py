"""Field ownership after a create, update or patch: computes the new managedFields.

Called by ``server/registry/verbs/ownership.py``, which converts objects. ``ownership_before``
returns the managers (``foreign_versions`` their versions); then ``track_update`` gets the object in
each of those versions. If a version is missing (removed from the CRD, or its conversion failed),
only its entries are lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from instar.base.json_values import Object
from instar.kube.apply.compare import Comparison, compare
from instar.kube.apply.field_set import (
    FieldSet,
    difference,
    has_at_most,
    includes,
    intersects,
    union,
)
from instar.kube.apply.managed_fields import (
    UPDATE,
    BadManagedFields,
    ManagedFieldsEntry,
    ManagerKey,
    Managers,
    cap_update_entries,
    decode,
    encode,
    identify,
    is_reset,
)
from instar.kube.apply.owned_paths import NEVER_OWNED, present_in_object
from instar.kube.apply.ownership_schema import TypedSchema
from instar.kube.apply.remove import collapse_atomic_fields

_REMEMBERED = 256
_LARGEST_KEPT = 1_000
ByVersion = Mapping[str, Object]
"""apiVersion to the object in it; a version that could not be converted is missing."""
Schemas = Mapping[str, TypedSchema]
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Writer(NamedTuple):
    """Manager name, endpoint and time (RFC 3339, UTC, whole seconds) of a write."""

    manager: str
    api_version: str
    now: str
    subresource: str = ""
    ignored: Mapping[str, frozenset[str]] = _NOTHING
    """Per version the top-level fields that this endpoint does not write; see
    ``ignored_fields``."""

    unset: Mapping[str, Any] = _NOTHING
    """Fields that objects of this kind have before anything is set; see ``Strategy.unset``."""

    def skipped(self, version: str) -> frozenset[str]:
        return self.ignored.get(version, frozenset())


_STATUS_IGNORES = frozenset(("metadata", "spec"))
_MAIN_IGNORES = frozenset(("status",))


def ignored_fields(
    subresource: str, request_version: str, versions: Mapping[str, bool]
) -> dict[str, frozenset[str]]:
    """Return the fields that an endpoint ignores; ``versions`` maps apiVersion to "has a status
    subresource".

    The status endpoint ignores metadata and spec in every version, the main one ``status`` in the
    request's version only, as upstream.
    """
    if subresource == "status":
        return dict.fromkeys(versions, _STATUS_IGNORES)
    if subresource or not versions.get(request_version):
        return {}
    return {request_version: _MAIN_IGNORES}


def ownership_before(live: Object | None, new: Object, subresource: str = "") -> Managers:
    """Return the managers before a write: those of the request's own list if it is present and
    valid.

    Never fails: invalid entries count as none, as upstream does for everything but apply.
    """
    if not subresource:
        sent = _managed_fields(new)
        if is_reset(sent):
            return {}
        managers = _decoded(sent)
        if managers:
            return managers
    return _decoded(_managed_fields(live)) if live is not None else {}


def foreign_versions(managers: Managers, api_version: str) -> set[str]:
    """Return the versions, besides the request's, in which live and new object are needed."""
    return {entry.api_version for entry in managers.values() if entry.api_version != api_version}


def versions_needed(managed_fields: Iterable[Mapping[str, Any]] | None, version: str) -> set[str]:
    """Like ``foreign_versions`` for an undecoded list."""
    return {raw.get("apiVersion") or version for raw in managed_fields or ()} - {version}


def track_update(
    before: Managers,
    writer: Writer,
    live: ByVersion | None,
    new: ByVersion,
    schemas: Schemas,
) -> list[dict[str, Any]] | None:
    """Return ``managedFields`` after a write that is not an apply; None when there are none.

    ``live`` is None on create. Both mappings have the request's version; of the others only those
    that ``foreign_versions`` returned, and none if the object is unchanged.
    """
    managers = update_managers(before, writer, live, new, schemas)
    return encode(managers) if managers else None


def track_create(
    before: Managers, writer: Writer, blank: Object | None, obj: Object, schema: TypedSchema
) -> list[dict[str, Any]] | None:
    """Return ``managedFields`` of a new object. ``blank`` is an empty object of its kind,
    ``before`` the managers that the request itself names."""
    if blank is None and not before:
        managers = _created_fields(writer, schema, obj)
        return encode(managers) if managers else None
    version = writer.api_version
    schemas = {version: schema}
    if blank is None or before:
        live = None if blank is None else {version: blank}
        return track_update(before, writer, live, {version: obj}, schemas)
    managers = {}
    _add_fields(managers, writer, compare(schema, blank, obj, writer.skipped(version)).touched())
    return encode(managers) if managers else None


def update_managers(
    before: Managers,
    writer: Writer,
    live: ByVersion | None,
    new: ByVersion,
    schemas: Schemas,
) -> Managers:
    version = writer.api_version
    schema = schemas[version]
    if live is None and not before:
        return _created_fields(writer, schema, new[version])
    if not before:
        return {}
    current = compare(schema, live[version] if live else {}, new[version], writer.skipped(version))
    if current.empty():
        return {owner: reconcile(entry, schemas) for owner, entry in before.items()}
    alone = _after_own_changes(before, writer, current, schemas)
    if alone is not None:
        return alone
    changes = _changes(before, writer, current, live or {}, new, schemas)
    managers = _without_lost_fields(before, changes, schemas)
    _add_fields(managers, writer, current.touched())
    return cap_update_entries(managers)


def _after_own_changes(
    before: Managers, writer: Writer, current: Comparison, schemas: Schemas
) -> Managers | None:
    """Return the managers with the writer's new time if it changed only fields that it alone owns,
    as most writes do; None otherwise."""
    identity = _identity(writer)
    own = before.get(identity)
    if own is None or current.removed:
        return None
    touched = current.touched()
    for entry in before.values():
        if entry.api_version != writer.api_version or reconcile(entry, schemas) is not entry:
            return None
        if (
            not includes(entry.fields, touched)
            if entry is own
            else intersects(entry.fields, touched)
        ):
            return None
    return {**before, identity: ManagedFieldsEntry(own.fields, own.api_version, writer.now)}


def _created_fields(writer: Writer, schema: TypedSchema, obj: Object) -> Managers:
    skipped = writer.skipped(writer.api_version)
    if writer.unset:
        touched = compare(schema, dict(writer.unset), obj, skipped).touched()
        fields = difference(touched, NEVER_OWNED)
    else:
        fields = present_in_object(schema, obj, skipped)
    return (
        {_identity(writer): ManagedFieldsEntry(fields, writer.api_version, writer.now)}
        if fields
        else {}
    )


def _identity(writer: Writer) -> ManagerKey:
    return identify(writer.manager, UPDATE, writer.api_version, writer.subresource)


def _changes(
    before: Managers,
    writer: Writer,
    current: Comparison,
    live: ByVersion,
    new: ByVersion,
    schemas: Schemas,
) -> dict[str, FieldSet]:
    """Return per available version the paths that other managers lose."""
    found = {writer.api_version: union(current.touched(), current.removed)}
    for version in foreign_versions(before, writer.api_version):
        if version in schemas and version in new and (version in live or not live):
            change = compare(
                schemas[version], live.get(version, {}), new[version], writer.skipped(version)
            )
            found[version] = union(change.touched(), change.removed)
    return found


def _without_lost_fields(
    before: Managers, lost: Mapping[str, FieldSet], schemas: Schemas
) -> Managers:
    """Remove changed paths from all managers; drop managers without fields."""
    out: Managers = {}
    for owner, entry in before.items():
        paths = lost.get(entry.api_version)
        if paths is None:
            continue
        fields = difference(reconcile(entry, schemas).fields, paths)
        if fields:
            out[owner] = ManagedFieldsEntry(fields, entry.api_version, entry.time)
    return out


def reconcile(entry: ManagedFieldsEntry, schemas: Schemas) -> ManagedFieldsEntry:
    """Return the entry as the current schema would have recorded it."""
    schema = schemas.get(entry.api_version)
    if schema is None:
        return entry
    known = schema.reconciled.get(id(entry.fields))
    if known is None or known[0] is not entry.fields:
        known = entry.fields, collapse_atomic_fields(schema.root, entry.fields)
        if has_at_most(_LARGEST_KEPT, entry.fields):
            if len(schema.reconciled) >= _REMEMBERED:
                schema.reconciled.clear()
            # Keeping the set alive prevents reuse of its id.
            schema.reconciled[id(entry.fields)] = known
    fields = known[1]
    return (
        entry
        if fields is entry.fields
        else ManagedFieldsEntry(fields, entry.api_version, entry.time)
    )


def _add_fields(managers: Managers, writer: Writer, touched: FieldSet) -> None:
    """Add the touched fields to the writer; its time changes only if there are any."""
    gained = difference(touched, NEVER_OWNED)
    if not gained:
        return
    identity = _identity(writer)
    previous = managers.get(identity)
    fields = gained if previous is None else union(gained, previous.fields)
    managers[identity] = ManagedFieldsEntry(fields, writer.api_version, writer.now)


def _managed_fields(obj: Object) -> Any:
    return (obj.get("metadata") or {}).get("managedFields")


def _decoded(managed_fields: Any) -> Managers:
    try:
        return decode(managed_fields)
    except BadManagedFields:
        return {}
