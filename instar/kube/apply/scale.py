"""Translates ownership of the replicas field between an object and its Scale.

Called by ``server/registry/verbs/subresources/scaling.py``, before and after a write through the
scale subresource, because a Scale is ``autoscaling/v1`` whatever the object's version. ``paths``
maps each version with a scale subresource to the path of its replicas field, as FieldsV1 path
elements (``f:spec``, ``f:replicas``). Entries of other versions keep their fields (upstream drops
them).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.kube.apply.field_set import contains, difference, single
from instar.kube.apply.managed_fields import (
    APPLY,
    ManagedFieldsEntry,
    ManagerKey,
    Managers,
    decode,
    encode,
    identify,
)

SCALE_VERSION = "autoscaling/v1"
REPLICAS_IN_SCALE = ("f:spec", "f:replicas")

ReplicasPaths = Mapping[str, tuple[str, ...]]
Entries = list[dict[str, Any]]


def replicas_path(json_path: str) -> tuple[str, ...]:
    """Return ``.spec.replicas`` as FieldsV1 path elements."""
    return tuple(f"f:{name}" for name in json_path.strip(".").split("."))


def to_scale(managed_fields: Entries | None, paths: ReplicasPaths) -> Entries:
    """Return the entries that own the replicas field, as entries of a Scale."""
    return encode(
        {
            _in_scale(owner): ManagedFieldsEntry(
                single(REPLICAS_IN_SCALE), SCALE_VERSION, entry.time
            )
            for owner, entry in decode(managed_fields).items()
            if _owns(entry, paths)
        }
    )


def entries_after_scale(
    managed_fields: Entries | None, scale: Entries | None, paths: ReplicasPaths, version: str
) -> Entries:
    """Return the object's entries after a scale write at ``version``; ``scale`` has the Scale's new
    entries."""
    owners, before = decode(scale), decode(managed_fields)
    known: set[ManagerKey] = set()
    out: Managers = {}
    for owner, entry in before.items():
        if not _owns(entry, paths):
            out[owner] = entry
            continue
        still = owners.get(_in_scale(owner))
        known.add(_in_scale(owner))
        if still is not None:
            # Upstream does not recognise a manager that updated rather than applied, and loses the
            # time.
            known_then = owner.operation == APPLY or entry.fields != single(
                paths[entry.api_version]
            )
            out[owner] = entry._replace(time=still.time if known_then else None)
        elif fields := difference(entry.fields, single(paths[entry.api_version])):
            out[owner] = entry._replace(fields=fields)
    for owner, entry in owners.items():
        if owner not in known and contains(entry.fields, REPLICAS_IN_SCALE):
            own = identify(owner.manager, owner.operation, version, owner.subresource)
            # Upstream uses the time of the object's own entry, so a new manager has none.
            time = before[own].time if owner.operation == APPLY and own in before else None
            out[own] = ManagedFieldsEntry(single(paths[version]), version, time)
    return encode(out)


def _in_scale(owner: ManagerKey) -> ManagerKey:
    return identify(owner.manager, owner.operation, SCALE_VERSION, owner.subresource)


def _owns(entry: ManagedFieldsEntry, paths: ReplicasPaths) -> bool:
    path = paths.get(entry.api_version)
    return path is not None and contains(entry.fields, path)
