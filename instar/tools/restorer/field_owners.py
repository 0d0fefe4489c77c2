"""Computes the managedFields of a restored object from its past state.

``restore_object.py`` calls this after it wrote the content. kube-apiserver takes managedFields from
the body of a request, but then gives every field that the same request adds or changes to the
writer. So a create cannot restore owners, but an update that changes only managedFields can
(observed on 1.36.4).

Pure functions on plain values; ``restore_object.py`` sends the requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from instar.base.json_values import Object, same_json
from instar.kube.apply.field_set import key_element, single, union, without_subtrees
from instar.kube.apply.managed_fields import (
    BadManagedFields,
    ManagedFieldsEntry,
    ManagerKey,
    Managers,
    decode,
    encode,
)

MANAGER = "instar-restore"
_STATUS = "status"


def past_owners(past: Object, restored: Object, written: Object) -> Managers:
    """Return the owners to write: those of ``past``, reduced to the fields that were restored.

    ``restored`` is the content that was sent, ``written`` the server's answer to it. The status
    keeps its present owners where it was not restored, and owner references that were left out have
    no owner. Raises ``BadManagedFields`` when the past entries cannot be read.
    """
    owners = decode(_entries(past))
    if not owners:
        return {}
    if not same_json(restored.get(_STATUS), written.get(_STATUS)) or _STATUS not in restored:
        owners = {who: entry for who, entry in owners.items() if who.subresource != _STATUS}
        present = read_owners(written)
        owners |= {who: entry for who, entry in present.items() if who.subresource == _STATUS}
    dropped = _references(past) - _references(restored)
    fitted = {who: _without_references(entry, dropped, restored) for who, entry in owners.items()}
    return {who: entry for who, entry in fitted.items() if entry.fields}


def read_owners(obj: Object) -> Managers:
    """Return the owners of an object; empty if its entries cannot be decoded."""
    try:
        return decode(_entries(obj))
    except BadManagedFields:
        return {}


def with_later_writers(owners: Managers, written: Managers, live: Managers) -> Managers:
    """Add the entries of managers that wrote after the restore.

    ``written`` are the entries right after the restore, ``live`` those of now. A later writer keeps
    what it owns; it may share fields with a past owner.
    """
    merged = dict(owners)
    for who, entry in live.items():
        if who.manager == MANAGER or written.get(who) == entry:
            continue
        known = merged.get(who)
        fields = entry.fields if known is None else union(known.fields, entry.fields)
        merged[who] = ManagedFieldsEntry(fields, entry.api_version, entry.time)
    return merged


def of_version(owners: Managers, api_version: str) -> Managers:
    """Return the entries recorded at one version.

    A server drops all entries of an object when one of them names a version that the CRD no longer
    has.
    """
    return {who: entry for who, entry in owners.items() if entry.api_version == api_version}


def missing_owners(wanted: Managers, found: Managers) -> list[str]:
    """Return the managers of ``wanted`` that are not in ``found``, each as ``helm (Apply)``."""
    return [_named(who) for who in wanted if who not in found]


def with_owners(obj: Object, owners: Managers) -> Object:
    """Return a copy of the object with these owners."""
    return {**obj, "metadata": {**obj["metadata"], "managedFields": encode(owners)}}


def _entries(obj: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list((obj.get("metadata") or {}).get("managedFields") or ())


def _references(obj: Mapping[str, Any]) -> set[str]:
    listed: Iterable[Mapping[str, Any]] = (obj.get("metadata") or {}).get("ownerReferences") or ()
    return {str(each.get("uid")) for each in listed}


def _without_references(
    entry: ManagedFieldsEntry, uids: set[str], restored: Object
) -> ManagedFieldsEntry:
    """Return the entry without the owner references that were left out, and without an
    absent list.
    """
    listed = ("f:metadata", "f:ownerReferences")
    paths: list[tuple[str, ...]] = [(*listed, key_element({"uid": uid})) for uid in sorted(uids)]
    if uids and not _references(restored):
        paths = [listed]
    fields = entry.fields
    for path in paths:
        fields = without_subtrees(fields, single(path))
    return ManagedFieldsEntry(fields, entry.api_version, entry.time)


def _named(who: ManagerKey) -> str:
    part = f", {who.subresource}" if who.subresource else ""
    return f"{who.manager or 'unknown'} ({who.operation}{part})"
