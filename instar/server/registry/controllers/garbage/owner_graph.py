"""Who owns whom, and what follows for a dependent. Pure: an index and a judgement, no store.

The index is kept from the cache's changes, so nothing is searched while nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from instar.base.json_values import Object

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


class OwnerGraphNode(NamedTuple):
    """One stored object: the prefix of its collection, and its place in that."""

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
    """Whether the owner waits for this dependent when it is deleted in the foreground."""


class OwnerStanding(Enum):
    """What an owner is to a dependent."""

    SOLID = auto()
    WAITING = auto()
    """It is deleted in the foreground and waits for its dependents to go."""
    DANGLING = auto()
    """It is not there, or somebody else has its name."""
    STRAY = auto()
    """A namespaced owner of a cluster-scoped dependent: upstream leaves that alone."""
    UNKNOWN = auto()
    """Nobody serves such a kind (yet): no verdict."""


class OwnerVerdict(Enum):
    KEEP = auto()
    RELEASE = auto()
    """Keep it, without the references to owners that go or are gone."""
    DELETE = auto()
    DELETE_IN_FOREGROUND = auto()
    UNDECIDED = auto()


def references(metadata: Object) -> tuple[OwnerReference, ...]:
    """Of stored metadata; what is no reference (by another's hand) is passed over."""
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
    """What becomes of a dependent, given what its owners are to it."""
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
        self._dependents: dict[str, set[OwnerGraphNode]] = {}

    def __bool__(self) -> bool:
        return bool(self._references)

    def put(self, node: OwnerGraphNode, references: tuple[OwnerReference, ...]) -> None:
        self.remove(node)
        if not references:
            return
        self._references[node] = references
        for reference in references:
            self._dependents.setdefault(reference.uid, set()).add(node)

    def remove(self, node: OwnerGraphNode) -> tuple[OwnerReference, ...]:
        """Answers what the node referred to."""
        gone = self._references.pop(node, ())
        for reference in gone:
            dependents = self._dependents.get(reference.uid)
            if dependents is not None:
                dependents.discard(node)
                if not dependents:
                    del self._dependents[reference.uid]
        return gone

    def references(self, node: OwnerGraphNode) -> tuple[OwnerReference, ...]:
        return self._references.get(node, ())

    def dependents(self, uid: str) -> tuple[OwnerGraphNode, ...]:
        return tuple(self._dependents.get(uid, ()))

    def blocking(self, uid: str) -> Iterator[OwnerGraphNode]:
        """Dependents that the owner of ``uid`` waits for."""
        for node in self.dependents(uid):
            if any(one.uid == uid and one.blocks for one in self._references[node]):
                yield node

    def nodes(self) -> list[OwnerGraphNode]:
        return list(self._references)

    def clear(self) -> None:
        self._references.clear()
        self._dependents.clear()
