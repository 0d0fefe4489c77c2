"""Who owns which field after a create, an update or a patch.

Two steps, because converting is the registry's business: ``ownership_before`` says which
managers there are (``foreign_versions`` which versions they speak), then ``track_update`` is
handed the object in each of those versions. A version that is not handed over (gone from the
CRD, or its converter failed) costs its own entries and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from instar.base.json_values import Object
from instar.kube.apply.compare import Comparison, compare
from instar.kube.apply.field_set import FieldSet, difference, has_at_most, includes, meets, union
from instar.kube.apply.managed_fields import (
    UPDATE,
    BadManagedFields,
    ManagedFieldsEntry,
    ManagerKey,
    Managers,
    capped,
    decode,
    encode,
    identify,
    is_reset,
)
from instar.kube.apply.owned_paths import NEVER_OWNED, present_in_object
from instar.kube.apply.ownership_schema import TypedSchema
from instar.kube.apply.remove import reconciled

_REMEMBERED = 256
_LARGEST_KEPT = 1_000
ByVersion = Mapping[str, Object]
"""apiVersion to the object in it; a version that could not be had is missing."""
Schemas = Mapping[str, TypedSchema]
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Writer(NamedTuple):
    """Who writes, through which endpoint and when (RFC 3339, UTC, whole seconds)."""

    manager: str
    api_version: str
    now: str
    subresource: str = ""
    ignored: Mapping[str, frozenset[str]] = _NOTHING
    """Per version the top-level fields this endpoint does not write; see ``ignored_fields``."""

    unset: Mapping[str, Any] = _NOTHING
    """What an object of this kind shows before anything is set; see ``Strategy.unset``."""

    def skipped(self, version: str) -> frozenset[str]:
        return self.ignored.get(version, frozenset())


_STATUS_IGNORES = frozenset(("metadata", "spec"))
_MAIN_IGNORES = frozenset(("status",))


def ignored_fields(
    subresource: str, request_version: str, versions: Mapping[str, bool]
) -> dict[str, frozenset[str]]:
    """What an endpoint leaves alone; ``versions`` maps apiVersion to "has a status subresource".

    The status endpoint ignores metadata and spec in every version, the main one ``status`` in
    the request's version only, as upstream.
    """
    if subresource == "status":
        return dict.fromkeys(versions, _STATUS_IGNORES)
    if subresource or not versions.get(request_version):
        return {}
    return {request_version: _MAIN_IGNORES}


def ownership_before(live: Object | None, new: Object, subresource: str = "") -> Managers:
    """The managers a write starts from: the request's own list if it may and can be used.

    Never fails: unreadable entries count as none, as upstream has it for everything but apply.
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
    """The versions, besides the request's, in which live and new object are needed."""
    return {entry.api_version for entry in managers.values() if entry.api_version != api_version}


def versions_needed(managed_fields: Iterable[Mapping[str, Any]] | None, version: str) -> set[str]:
    """``foreign_versions`` for a list that is still on the wire."""
    return {raw.get("apiVersion") or version for raw in managed_fields or ()} - {version}


def track_update(
    before: Managers,
    writer: Writer,
    live: ByVersion | None,
    new: ByVersion,
    schemas: Schemas,
) -> list[dict[str, Any]] | None:
    """``managedFields`` after a write that is not an apply; None when there are none.

    ``live`` is None on create. Both mappings hold the request's version; of the others only
    what ``foreign_versions`` named, and nothing at all is needed when the object is unchanged.
    """
    managers = updated(before, writer, live, new, schemas)
    return encode(managers) if managers else None


def track_create(
    before: Managers, writer: Writer, blank: Object | None, obj: Object, schema: TypedSchema
) -> list[dict[str, Any]] | None:
    """``managedFields`` of a new object; ``blank`` is what its kind shows before anybody set
    anything, ``before`` what the request itself says about owners."""
    if blank is None and not before:
        managers = _created(writer, schema, obj)
        return encode(managers) if managers else None
    version = writer.api_version
    schemas = {version: schema}
    if blank is None or before:
        live = None if blank is None else {version: blank}
        return track_update(before, writer, live, {version: obj}, schemas)
    managers = {}
    _take(managers, writer, compare(schema, blank, obj, writer.skipped(version)).touched())
    return encode(managers) if managers else None


def updated(
    before: Managers,
    writer: Writer,
    live: ByVersion | None,
    new: ByVersion,
    schemas: Schemas,
) -> Managers:
    version = writer.api_version
    schema = schemas[version]
    if live is None and not before:
        return _created(writer, schema, new[version])
    if not before:
        return {}
    current = compare(schema, live[version] if live else {}, new[version], writer.skipped(version))
    if current.empty():
        return {who: reconcile(entry, schemas) for who, entry in before.items()}
    alone = _among_own(before, writer, current, schemas)
    if alone is not None:
        return alone
    changes = _changes(before, writer, current, live or {}, new, schemas)
    managers = _bereaved(before, changes, schemas)
    _take(managers, writer, current.touched())
    return capped(managers)


def _among_own(
    before: Managers, writer: Writer, current: Comparison, schemas: Schemas
) -> Managers | None:
    """Most writes set again what their writer set before, and nobody else: then all that can
    change is its time. None where it is not so."""
    identity = _identity(writer)
    own = before.get(identity)
    if own is None or current.removed:
        return None
    touched = current.touched()
    for entry in before.values():
        if entry.api_version != writer.api_version or reconcile(entry, schemas) is not entry:
            return None
        if not includes(entry.fields, touched) if entry is own else meets(entry.fields, touched):
            return None
    return {**before, identity: ManagedFieldsEntry(own.fields, own.api_version, writer.now)}


def _created(writer: Writer, schema: TypedSchema, obj: Object) -> Managers:
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
    """Per version at hand, the paths other managers lose."""
    found = {writer.api_version: union(current.touched(), current.removed)}
    for version in foreign_versions(before, writer.api_version):
        if version in schemas and version in new and (version in live or not live):
            change = compare(
                schemas[version], live.get(version, {}), new[version], writer.skipped(version)
            )
            found[version] = union(change.touched(), change.removed)
    return found


def _bereaved(before: Managers, lost: Mapping[str, FieldSet], schemas: Schemas) -> Managers:
    """All managers without the paths that changed; whoever has nothing left is gone."""
    out: Managers = {}
    for who, entry in before.items():
        paths = lost.get(entry.api_version)
        if paths is None:
            continue
        fields = difference(reconcile(entry, schemas).fields, paths)
        if fields:
            out[who] = ManagedFieldsEntry(fields, entry.api_version, entry.time)
    return out


def reconcile(entry: ManagedFieldsEntry, schemas: Schemas) -> ManagedFieldsEntry:
    """The entry as today's schema would have recorded it."""
    schema = schemas.get(entry.api_version)
    if schema is None:
        return entry
    known = schema.reconciled.get(id(entry.fields))
    if known is None or known[0] is not entry.fields:
        known = entry.fields, reconciled(schema.root, entry.fields)
        if has_at_most(_LARGEST_KEPT, entry.fields):
            if len(schema.reconciled) >= _REMEMBERED:
                schema.reconciled.clear()
            # Holding the set keeps its id its own.
            schema.reconciled[id(entry.fields)] = known
    fields = known[1]
    return (
        entry
        if fields is entry.fields
        else ManagedFieldsEntry(fields, entry.api_version, entry.time)
    )


def _take(managers: Managers, writer: Writer, touched: FieldSet) -> None:
    """Give the writer what it touched; the time moves only if there is something."""
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
