"""Keeps field ownership (``managedFields``) through a rewrite. Pure.

Called by ``object_pages.py`` before a write, and by ``object_writer.py`` and ``undo/put_back.py``
after it. kube-apiserver drops every entry of ``managedFields`` when one of them names a version
that is not in the CRD any more, and when a conversion webhook fails for one of them; the write
still succeeds. So before the write, entries of such versions get the version that the migrator
writes at; after it, the owners are compared with those from before.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.apply.field_set import (
    SELF,
    BadFieldSet,
    FieldSet,
    members,
    parse,
    path_text,
    union,
)
from instar.tools.migrator.content_diff import is_covered
from instar.tools.migrator.field_mapping import carried

_SHOWN = 3
_ITEM = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True, slots=True)
class OwnershipRelabelling:
    """The new ``managedFields`` of an object."""

    entries: list[Object]
    labelled: int
    """Entries that were carried over."""
    dropped: int
    """Fields of theirs with no place in the object as it is read now."""


def entries_of(obj: Object) -> list[Object]:
    """Return the managedFields of an object."""
    found = obj["metadata"].get("managedFields") or []
    return [entry for entry in found if isinstance(entry, dict)]


def versions_named(obj: Object, group: str) -> set[str]:
    """Return the versions of the object's own group that its entries name."""
    named = (str(entry.get("apiVersion", "")).rpartition("/") for entry in entries_of(obj))
    return {version for entry_group, _, version in named if entry_group == group}


def relabelled(
    obj: Object, group: str, leaving: Collection[str], readings: Mapping[str, Object]
) -> OwnershipRelabelling | None:
    """Return the entries of ``leaving`` versions relabelled to the object's version; None if there
    are none.

    ``readings`` are the same object at other versions: where one is at hand, fields that the
    conversion renames are followed; otherwise a field is where it was, or it is nowhere.
    """
    entries = entries_of(obj)
    old = {f"{group}/{version}" for version in leaving}
    if not any(entry.get("apiVersion") in old for entry in entries):
        return None
    table: dict[tuple[str, ...], Object] = {}
    labelled = dropped = 0
    for entry in entries:
        if entry.get("apiVersion") in old:
            version = entry["apiVersion"].rpartition("/")[2]
            entry, lost = _carried_entry(entry, readings.get(version), obj)
            labelled, dropped = labelled + 1, dropped + lost
            if not entry["fieldsV1"]:
                continue
        _add(table, entry)
    kept = list(table.values()) or [_seed(entries[-1], obj["apiVersion"])]
    return OwnershipRelabelling(kept, labelled, dropped)


def lost(
    before: Iterable[Object], after: Iterable[Object], given_up: Collection[str] = ()
) -> list[str]:
    """Return the managers that own less than before, each as ``argocd (Apply): .spec.size``.

    A field that became part of an atomic one is still owned, with its parent. ``given_up``: paths
    whose fields the object may lose, so that they need no owner.
    """
    now = _by_owner(after)
    found = []
    for owner, fields in _by_owner(before).items():
        kept = now.get(owner, {})
        missing = [
            path
            for path in members(fields)
            if not _covered(kept, path) and not _is_given_up(path, given_up)
        ]
        if missing:
            paths = ", ".join(path_text(path) for path in missing[:_SHOWN])
            more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
            found.append(f"{_named(owner)}: {paths}{more}")
    return found


def is_same_ownership(before: Iterable[Object], after: Iterable[Object]) -> bool:
    """Return whether every manager owns the same fields; times and versions are ignored."""
    return _by_owner(before) == _by_owner(after)


def united(one: Iterable[Object], other: Iterable[Object]) -> list[Object]:
    """Return the entries of both; what a manager has in either, it has in the result."""
    table: dict[tuple[str, ...], Object] = {}
    for entry in (*one, *other):
        _add(table, entry)
    return list(table.values())


_Owner = tuple[str, str, str]


def _owner(entry: Object) -> _Owner:
    """Return the identity of a manager without the version, which may change from write to
    write.
    """
    return (
        str(entry.get("manager") or ""),
        str(entry.get("operation") or ""),
        str(entry.get("subresource") or ""),
    )


def _named(owner: _Owner) -> str:
    manager, operation, subresource = owner
    return f"{manager or 'unknown'} ({operation}{f', {subresource}' if subresource else ''})"


def _fields(entry: Object) -> FieldSet:
    try:
        return parse(entry.get("fieldsV1"))
    except BadFieldSet:
        return {}


def _by_owner(entries: Iterable[Object]) -> dict[_Owner, FieldSet]:
    table: dict[_Owner, FieldSet] = {}
    for entry in entries:
        owner = _owner(entry)
        table[owner] = union(table.get(owner, {}), _fields(entry))
    return table


def _covered(fields: FieldSet, path: tuple[str, ...]) -> bool:
    """Return whether the path is a member of the set, or is below a member without children."""
    node: Any = fields
    for position, element in enumerate(path):
        child = node.get(element)
        if child is None:
            return position > 0 and not node
        node = child
    return not node or SELF in node


def _is_given_up(path: tuple[str, ...], given_up: Collection[str]) -> bool:
    if not given_up:
        return False
    name = _ITEM.sub("[]", path_text(path)).lstrip(".")
    return any(is_covered(name, accepted) for accepted in given_up)


def _carried_entry(entry: Object, reading: Object | None, obj: Object) -> tuple[Object, int]:
    fields = _fields(entry)
    if str(entry.get("subresource") or "") == "scale":
        # The path is that of the Scale (spec.replicas); the object may name the field otherwise.
        reading = None
    kept, missing = carried(fields, reading, obj)
    return {**entry, "apiVersion": obj["apiVersion"], "fieldsV1": kept}, missing


def _add(table: dict[tuple[str, ...], Object], entry: Object) -> None:
    """Add an entry; merge entries that have the same identity now, because a server stores one
    each.
    """
    operation = str(entry.get("operation") or "")
    version = "" if operation == "Apply" else str(entry.get("apiVersion") or "")
    identity = (*_owner(entry), version)
    known = table.get(identity)
    if known is None:
        table[identity] = entry
        return
    times = [time for time in (known.get("time"), entry.get("time")) if time]
    merged = {**known, **entry, "fieldsV1": union(_fields(known), _fields(entry))}
    table[identity] = {**merged, "time": max(times)} if times else merged


def _seed(last: Object, api_version: str) -> Object:
    """Return a minimal entry in place of the last one: with an empty list the next apply would
    assign all fields to one artificial manager.
    """
    return {
        **last,
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:name": {}}},
    }
