"""Owner graph: indexes owner references, and decides whether a dependent is deleted or kept.

Used by ``collector.py`` and ``graph.py``, which keeps it current by the cache's changes, so that a
deletion finds its dependents without a search. This module does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

from instar.base.json_values import Object

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


class OwnerGraphNode(NamedTuple):
    """One stored object: the prefix of its collection and its key suffix."""

    prefix: str
    suffix: str

    def __str__(self) -> str:
        return self.prefix + self.suffix


class OwnerReference(NamedTuple):
    uid: str
    api_version: str
    kind: str
    name: str
    blocks: bool = False
    """Whether the owner's foreground deletion waits for this dependent."""


class OwnerStanding(Enum):
    """State of an owner as seen from a dependent."""

    SOLID = auto()
    WAITING = auto()
    """In foreground deletion, waiting for its dependents to be deleted."""
    DANGLING = auto()
    """Absent, or another object has its name."""
    STRAY = auto()
    """A namespaced owner of a cluster-scoped dependent, which upstream ignores."""
    UNKNOWN = auto()
    """The kind is not served (yet), so no decision is possible."""


class OwnerVerdict(Enum):
    """Decision about a dependent."""

    KEEP = auto()
    RELEASE = auto()
    """Keep it, but remove the references to owners that are deleted or terminating."""
    DELETE = auto()
    DELETE_IN_FOREGROUND = auto()
    UNDECIDED = auto()


def references(metadata: Object) -> tuple[OwnerReference, ...]:
    """Return the owner references of stored metadata; malformed ones are skipped."""
    found = metadata.get("ownerReferences")
    if not isinstance(found, list):
        return ()
    return tuple(
        OwnerReference(
            str(item.get("uid", "")),
            str(item.get("apiVersion", "")),
            str(item.get("kind", "")),
            str(item.get("name", "")),
            item.get("blockOwnerDeletion") is True,
        )
        for item in found
        if isinstance(item, dict)
    )


def judge(standings: Iterable[OwnerStanding], *, has_dependents: bool) -> OwnerVerdict:
    """Decide about a dependent from the standings of its owners."""
    found = set(standings)
    if OwnerStanding.UNKNOWN in found:
        return OwnerVerdict.UNDECIDED
    if OwnerStanding.STRAY in found:
        return OwnerVerdict.KEEP
    if OwnerStanding.SOLID in found:
        return OwnerVerdict.KEEP if len(found) == 1 else OwnerVerdict.RELEASE
    if OwnerStanding.WAITING in found and has_dependents:
        return OwnerVerdict.DELETE_IN_FOREGROUND
    return OwnerVerdict.DELETE


class OwnerIndex:
    """References in both directions, for every object that has any."""

    def __init__(self) -> None:
        self._references: dict[OwnerGraphNode, tuple[OwnerReference, ...]] = {}
        self._dependents: dict[str, dict[OwnerGraphNode, None]] = {}
        self._blocking: dict[str, int] = {}
        """Number of dependents that the foreground deletion of each uid waits for."""

    def __bool__(self) -> bool:
        return bool(self._references)

    def put(self, node: OwnerGraphNode, references: tuple[OwnerReference, ...]) -> None:
        self.remove(node)
        if not references:
            return
        self._references[node] = references
        for uid in {reference.uid for reference in references}:
            self._dependents.setdefault(uid, {})[node] = None
        for uid in _blocked_by(references):
            self._blocking[uid] = self._blocking.get(uid, 0) + 1

    def remove(self, node: OwnerGraphNode) -> tuple[OwnerReference, ...]:
        """Remove the node and return its references."""
        gone = self._references.pop(node, ())
        for uid in {reference.uid for reference in gone}:
            dependents = self._dependents[uid]
            del dependents[node]
            if not dependents:
                del self._dependents[uid]
        for uid in _blocked_by(gone):
            self._blocking[uid] -= 1
            if not self._blocking[uid]:
                del self._blocking[uid]
        return gone

    def references(self, node: OwnerGraphNode) -> tuple[OwnerReference, ...]:
        return self._references.get(node, ())

    def dependents(self, uid: str) -> tuple[OwnerGraphNode, ...]:
        return tuple(self._dependents.get(uid, ()))

    def has_dependents(self, uid: str) -> bool:
        return uid in self._dependents

    def is_blocked(self, uid: str) -> bool:
        """Return whether the foreground deletion of ``uid`` waits for any dependent."""
        return uid in self._blocking

    def blocks(self, node: OwnerGraphNode, uid: str) -> bool:
        """Return whether the foreground deletion of ``uid`` waits for this dependent."""
        return any(one.uid == uid and one.blocks for one in self.references(node))

    def nodes(self) -> list[OwnerGraphNode]:
        return list(self._references)

    def clear(self) -> None:
        self._references.clear()
        self._dependents.clear()
        self._blocking.clear()


def _blocked_by(references: tuple[OwnerReference, ...]) -> set[str]:
    return {reference.uid for reference in references if reference.blocks}
