"""Moves a group back to the main cluster, whose etcd has the objects as they were at the adoption.

``cli/commands/adopt`` calls it for ``--return``. With ``--etcd`` the objects are written
into etcd before the flip, as they are. Without it the flip comes first, and changed objects are
then written through the API while all other writes are refused: until that is done, readers see
the objects as they were when the group was adopted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from secrets import token_hex

from instar.base.errors import ApiError, Conflict, NotFound
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.tools.adopter import owner_references
from instar.tools.adopter.api_services import RoutedTo
from instar.tools.adopter.digests import digest_of
from instar.tools.adopter.errors import AdoptError
from instar.tools.adopter.etcd_objects import EtcdObjects
from instar.tools.adopter.move import GroupMove
from instar.tools.adopter.moved_group import MovedCrd, key_of
from instar.tools.adopter.write_back import WriteBack
from instar.wire.client.paths import resource_path

_COUNTER = "instar-adopt-revision"
_AT_ONCE = 32
_MOST_BY_API = 200_000
AtRevision = dict[str, str | int | bool | None]
_WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def give_back(move: GroupMove, etcd: EtcdObjects | None) -> list[str]:
    """Return the group; return what differs afterwards. Raises ``AdoptError``, ``ApiError``."""
    group = move.group.name
    routes = await move.cluster.routes(move.group, move.route)
    routed = set(routes.values())
    frozen = await move.cluster.is_frozen(group)
    document = await move.adoption.document()
    if routed == {RoutedTo.MAIN} and not (frozen and document["state"] == "adopted"):
        await move.cluster.unprotect(group)
        await move.cluster.unfreeze(group)
        await _end_watches(move)  # in case an earlier run was killed before
        move.tell(f"{group} is served by the main cluster already")
        return []
    if move.journal.facts.get("direction") != "return":
        move.journal.begin_anew()
        move.journal.note("begin", direction="return")
    await _raise_main(move, etcd, int(document["revision"]))
    below = None if etcd is None else BelowCopy(move, etcd)
    if below is not None:
        await below.copy_all()
    else:
        await _detach_dependents(move)
    await move.cluster.unprotect(group)  # before the freeze: API servers enforce it a second more
    if not frozen:
        await _freeze(move)
    if below is not None:
        await below.copy_changes()
    for version in routes:
        await move.cluster.route_to_main(move.group, version)
    await move.cluster.await_routes(move.group, instar=False)
    move.done("flip", "every API server answers by itself")
    if below is not None:
        await below.copy_changes()  # what a replica of instar accepted last
    else:
        await _write_back(move, int(document["floor"]))
    # Not of a list of the group: an API server first reads all its objects into its watch cache.
    still = await move.cluster.main_revision()
    await move.adoption.give_back()
    await move.cluster.unfreeze(group)
    move.unfrozen()
    text = "writes go to the main cluster; the objects in instar stay as they are"
    move.done("unfreeze", text, direction="done")
    await _end_watches(move)
    wrong = await _differences(move, still, exact=etcd is not None)
    move.done("verify", "every object is as it was in instar" if not wrong else ", ".join(wrong))
    return wrong


async def _end_watches(move: GroupMove) -> None:
    for crd in move.group.crds:
        await move.cluster.end_watches(crd)
    move.done("end watches", "clients list again")


async def _freeze(move: GroupMove) -> None:
    move.frozen()
    await move.cluster.freeze(move.group.name)
    await move.cluster.await_frozen(move.group.name)
    # instar follows the policies of the main cluster, within the time of writes in flight
    await asyncio.sleep(move.in_flight)
    move.done("freeze", "writes are refused")


# -- revisions


async def _raise_main(move: GroupMove, etcd: EtcdObjects | None, least: int) -> None:
    """Raise the main cluster's revision above instar's, so that no client sees it go down."""
    if etcd is not None:
        await etcd.raise_above(least)
        move.done("revision", f"of etcd is above {least}")
        return
    missing = least - await move.cluster.main_revision()
    if missing > _MOST_BY_API:
        raise AdoptError(
            f"the main cluster's revision is {missing:,} below instar's: --etcd raises it below "
            "the API"
        )
    path = resource_path("", "v1", "configmaps", namespace="default", name=_COUNTER)
    while (missing := least + 1 - await move.cluster.main_revision()) > 0:
        await _count_up(move, path, missing)
    with suppress(NotFound):
        await move.cluster.client.delete(path)
    move.done("revision", f"of the main cluster is above {least}")


async def _count_up(move: GroupMove, path: str, number: int) -> None:
    client = move.cluster.client
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _COUNTER}}
    try:
        await client.get(path)
    except NotFound:
        await client.post(path.rpartition("/")[0], body)
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(each: int) -> None:
        async with turns:
            try:
                await client.patch(path, {"data": {f"n{each % _AT_ONCE}": str(each)}})
            except (Conflict, NotFound):
                return

    await asyncio.gather(*(one(each) for each in range(number)))


# -- below the API


class BelowCopy:
    """The objects of instar in the main cluster's etcd."""

    def __init__(self, move: GroupMove, etcd: EtcdObjects) -> None:
        self._move, self._etcd = move, etcd
        self._reached: dict[str, int] = {}
        """By CRD: the revision of instar up to which everything is copied."""
        self._keys: dict[str, set[str]] = {}

    async def copy_all(self) -> None:
        """Write what differs, and remove what is there besides."""
        for crd in self._move.group.crds:
            self._keys[crd.name] = {key async for key in self._etcd.keys(crd)}
        await self.copy_changes()

    async def copy_changes(self) -> None:
        """Write and remove what changed since the last call."""
        adoption, written, removed = self._move.adoption, 0, 0
        now = await adoption.revision()
        for crd in self._move.group.crds:
            if self._reached.get(crd.name) == now:
                continue  # instar wrote nothing since, of any group
            in_etcd = self._keys[crd.name]
            async for page in adoption.objects(crd.plural, "", self._reached.get(crd.name, 0)):
                written += await self._etcd.put(crd, [(key_of(obj), obj) for obj in page])
                in_etcd.update(map(key_of, page))  # deleted in instar meanwhile: removed below
            there = set(await adoption.keys(crd.plural))
            gone = in_etcd - there
            await self._etcd.remove(crd, gone)
            removed += len(gone)
            self._keys[crd.name], self._reached[crd.name] = there, now
        text = f"{counted(written, 'object')} written as they are, {removed} removed"
        self._move.done("etcd", text)


# -- through the API


async def _detach_dependents(move: GroupMove) -> None:
    uids = await move.adoption.created_uids()
    if not uids or "dependents" in move.journal.facts:
        found = move.journal.facts.get("dependents", [])
    else:
        found = await owner_references.find(move.cluster.client, uids, move.group.name)
        move.done("dependents", counted(len(found), "object"), dependents=found)
    await owner_references.detach(move.cluster.client, found, uids)


async def _write_back(move: GroupMove, floor: int) -> None:
    """Write what changed, as the only writer that the policy lets through."""
    client = move.cluster.client
    manager = str(move.journal.facts.get("manager") or f"instar-adopt-{token_hex(8)}")
    move.journal.note("manager", manager=manager)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    me = (await client.post(_WHOAMI, review))["status"]["userInfo"]["username"]
    await move.cluster.freeze(move.group.name, me, manager)
    writing = WriteBack(client, move.adoption, manager, floor)
    writing.renamed.update(move.journal.facts.get("uids", {}))
    try:
        await writing.run(move.group)
    finally:
        move.journal.note("uids", uids=writing.renamed)
    dependents = move.journal.facts.get("dependents", [])
    await owner_references.restore(client, dependents, writing.renamed)
    text = f"{writing.updated} updated, {writing.created} created, {writing.removed} removed"
    move.done("write back", text)


# -- afterwards


async def _differences(move: GroupMove, still: int, *, exact: bool) -> list[str]:
    """Return what the main cluster showed otherwise than instar, at the revision ``still`` of the
    freeze, so that later writes do not count."""
    wrong: list[str] = []
    renamed = move.journal.facts.get("uids", {})
    for crd in move.group.crds:
        for version in crd.served:
            at: AtRevision = {
                "resourceVersion": still,
                "resourceVersionMatch": "Exact",
            }
            wrong += await _differ(move, crd, version, renamed, at, exact=exact)
    return wrong


async def _pages_at(move: GroupMove, path: str, at: AtRevision) -> AsyncIterator[Object]:
    """Yield every page of one revision; a continue token names it by itself."""
    token = ""
    while True:
        query = {} if token else at
        page = await move.cluster.client.list(path, limit=500, continue_=token, **query)
        yield page
        token = page["metadata"].get("continue") or ""
        if not token:
            return


async def _differ(
    move: GroupMove,
    crd: MovedCrd,
    version: str,
    renamed: dict[str, str],
    at: AtRevision,
    *,
    exact: bool,
) -> list[str]:
    there: dict[str, bytes] = {}
    async for page in move.adoption.objects(crd.plural, version):
        there.update((key_of(obj), _shown(obj, renamed, exact)) for obj in page)
    wrong: list[str] = []
    try:
        async for listed in _pages_at(move, crd.path(version), at):
            for obj in listed.get("items") or ():
                obj.setdefault("apiVersion", f"{crd.group}/{version}")
                obj.setdefault("kind", crd.kind)
                if there.pop(key_of(obj), None) != _shown(obj, renamed, exact):
                    wrong.append(f"{crd.name} {key_of(obj)} at {version}")
    except ApiError as error:
        raise AdoptError(f"{crd.name} cannot be read at {version}: {error.message}") from error
    return wrong + [f"{crd.name} {key} at {version}" for key in there]


def _shown(obj: Object, renamed: dict[str, str], exact: bool) -> bytes:
    """Digest of an object; unless ``exact``, of what can be written through the API."""
    if exact:
        return digest_of(obj).digest
    metadata = dict(obj["metadata"])
    old = metadata.get("uid")
    for name in ("generation", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"):
        metadata.pop(name, None)
    if old in renamed or old in renamed.values():
        metadata["uid"] = renamed.get(str(old), old)
        metadata.pop("creationTimestamp", None)
    if renamed and "ownerReferences" in metadata:
        references = metadata["ownerReferences"]
        metadata["ownerReferences"] = owner_references.rewritten(references, renamed)
    return digest_of({**obj, "metadata": metadata}).digest
