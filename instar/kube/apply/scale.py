"""Ownership of ``spec.replicas`` seen through the scale subresource.

A Scale is ``autoscaling/v1`` whatever the object's version, so entries are translated before
a scale write and back after it. ``paths`` maps each version that has a scale subresource to the
path of its replicas field in wire elements. Entries of versions not in it keep what they own
(upstream drops them).
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
    """``.spec.replicas`` as wire elements."""
    return tuple(f"f:{name}" for name in json_path.strip(".").split("."))


def to_scale(managed_fields: Entries | None, paths: ReplicasPaths) -> Entries:
    """The entries that own the replicas field, as owners of a Scale's."""
    return encode(
        {
            _in_scale(who): ManagedFieldsEntry(single(REPLICAS_IN_SCALE), SCALE_VERSION, entry.time)
            for who, entry in decode(managed_fields).items()
            if _owns(entry, paths)
        }
    )


def to_parent(
    managed_fields: Entries | None, scale: Entries | None, paths: ReplicasPaths, version: str
) -> Entries:
    """The object's entries after a scale write through ``version`` left ``scale``."""
    owners, before = decode(scale), decode(managed_fields)
    known: set[ManagerKey] = set()
    out: Managers = {}
    for who, entry in before.items():
        if not _owns(entry, paths):
            out[who] = entry
            continue
        still = owners.get(_in_scale(who))
        known.add(_in_scale(who))
        if still is not None:
            # Upstream does not recognise who updated, rather than applied, and loses the time.
            known_then = who.operation == APPLY or entry.fields != single(paths[entry.api_version])
            out[who] = entry._replace(time=still.time if known_then else None)
        elif fields := difference(entry.fields, single(paths[entry.api_version])):
            out[who] = entry._replace(fields=fields)
    for who, entry in owners.items():
        if who not in known and contains(entry.fields, REPLICAS_IN_SCALE):
            own = identify(who.manager, who.operation, version, who.subresource)
            # The time is what the object's own entry had, so that of a new owner is not told.
            told = before[own].time if who.operation == APPLY and own in before else None
            out[own] = ManagedFieldsEntry(single(paths[version]), version, told)
    return encode(out)


def _in_scale(who: ManagerKey) -> ManagerKey:
    return identify(who.manager, who.operation, SCALE_VERSION, who.subresource)


def _owns(entry: ManagedFieldsEntry, paths: ReplicasPaths) -> bool:
    path = paths.get(entry.api_version)
    return path is not None and contains(entry.fields, path)
