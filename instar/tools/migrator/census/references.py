"""Finds references to a version: owner references in other objects, and managedFields of the CRD's
own objects.

Called by ``instar versions``, ``instar migrate`` and ``instar upgrade`` before a version is
removed. An owner reference contains an ``apiVersion``; if that version is removed, the garbage
collector cannot find the owner, and dependents are orphaned or never deleted. A migration does not
rewrite owner references, because objects of any kind may have them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from functools import partial

from instar.base.errors import ApiError, Conflict, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.migrator.live_crd import USER_AGENT, LiveCrd, key_of
from instar.tools.migrator.ownership import versions_named
from instar.tools.migrator.retries import RetryPolicy, call_with_retries
from instar.wire.client.client import Client
from instar.wire.client.discovery import ResourceType, listable_resources

_ATTEMPTS = 5
_MAX_NAMED_OBJECTS = 20
"""If more objects name a version, only this number of them is reported by name."""


@dataclass(frozen=True, slots=True)
class Dependent:
    """An object with an owner reference to be changed."""

    type: ResourceType
    key: str

    def __str__(self) -> str:
        return f"{self.type.name} {self.key}"

    @property
    def path(self) -> str:
        namespace, _, name = self.key.rpartition("/")
        return self.type.path(namespace, name)


@dataclass
class Dependents:
    """Objects with owner references to objects of a CRD."""

    found: list[Dependent] = field(default_factory=list)
    unseen: dict[str, str] = field(default_factory=dict)
    """Kinds that could not be looked at, and why."""


@dataclass
class Repointed:
    """Result of correcting owner references: the number changed, and failures by object."""

    changed: int = 0
    failed: dict[str, str] = field(default_factory=dict)


@dataclass
class VersionReference:
    """Objects of the CRD whose managedFields name a version."""

    count: int = 0
    keys: list[str] = field(default_factory=list)
    unseen: str = ""
    """Why they could not be looked at."""


async def dependents(client: Client, live: LiveCrd, versions: Collection[str]) -> Dependents:
    """Return the objects of all kinds whose owner references name one of ``versions``."""
    discovered = await listable_resources(client)
    result = Dependents(unseen=dict(discovered.unknown))
    for kind in discovered.types:
        try:
            async for page in client.metadata_pages(kind.path()):
                result.found += [
                    Dependent(kind, key_of(item))
                    for item in page.get("items") or ()
                    if any(_names(live, versions, ref) for ref in _references(item))
                ]
        except NotFound:
            continue
        except ApiError as error:
            result.unseen[kind.name] = error.message
    return result


async def repoint(
    client: Client,
    live: LiveCrd,
    versions: Collection[str],
    found: Collection[Dependent],
    patience: RetryPolicy,
) -> Repointed:
    """Change each reference to the remaining version, and nothing else of the object."""
    result = Repointed()
    for dependent in found:
        try:
            result.changed += await _repoint_one(client, live, versions, dependent, patience)
        except NotFound:
            continue
        except ApiError as error:
            result.failed[str(dependent)] = error.message
    return result


async def naming_entries(client: Client, live: LiveCrd, version: str) -> VersionReference:
    """Return the objects that lose field owners when ``version`` is removed, unless the entries are
    relabelled first.
    """
    named = VersionReference()
    path = live.path(live.write_version)
    try:
        async for page in client.metadata_pages(path):
            for item in page.get("items") or ():
                if version in versions_named(item, live.crd.group):
                    named.count += 1
                    named.keys = [*named.keys, key_of(item)][:_MAX_NAMED_OBJECTS]
    except ApiError as error:
        named.unseen = error.message
    return named


async def _repoint_one(
    client: Client,
    live: LiveCrd,
    versions: Collection[str],
    dependent: Dependent,
    patience: RetryPolicy,
) -> bool:
    for attempt in range(_ATTEMPTS):
        obj = await call_with_retries(partial(client.get, dependent.path), patience)
        changed = repointed(live, versions, _references(obj))
        if changed is None:
            return False
        revision = obj["metadata"]["resourceVersion"]
        body = {"metadata": {"resourceVersion": revision, "ownerReferences": changed}}
        write = partial(client.patch, dependent.path, body, fieldManager=USER_AGENT)
        try:
            await call_with_retries(write, patience)
            return True
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
    return False


def repointed(
    live: LiveCrd, versions: Collection[str], references: list[Object]
) -> list[Object] | None:
    """Return the corrected references; None if they are correct already."""
    api_version = f"{live.crd.group}/{live.write_version}"
    changed = [
        {**ref, "apiVersion": api_version} if _names(live, versions, ref) else ref
        for ref in references
    ]
    return None if changed == references else changed


def _references(obj: Object) -> list[Object]:
    found = obj["metadata"].get("ownerReferences") or []
    return [ref for ref in found if isinstance(ref, dict)]


def _names(live: LiveCrd, versions: Collection[str], reference: Object) -> bool:
    group, _, version = str(reference.get("apiVersion", "")).rpartition("/")
    crd = live.crd
    if group != crd.group or reference.get("kind") != crd.names.kind:
        return False
    return version in versions or crd.version(version) is None
