"""Removes the objects of an adopted group from the main cluster's etcd, which frees its space.

``cli/commands/adopt`` calls it for ``--free-etcd``. First each object in etcd is found in instar,
or found to have been deleted there since the adoption; one that is neither stops the removal, so
that nothing is deleted of which instar has no copy. Then instar notes that a return must write
every object; then they are deleted.
"""

from __future__ import annotations

from typing import NamedTuple

from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.tools.adopter.api_services import RoutedTo
from instar.tools.adopter.digests import digest_of
from instar.tools.adopter.errors import AdoptError
from instar.tools.adopter.etcd_objects import EtcdObject, EtcdObjects
from instar.tools.adopter.move import GroupMove
from instar.tools.adopter.moved_group import MovedCrd, key_of, revision_of

_SHOWN = 5


class HeldObject(NamedTuple):
    """What instar has of an object."""

    uid: str
    changed: bool
    """Whether a client wrote it in instar."""
    api_version: str
    digest: bytes


async def free_etcd(move: GroupMove, etcd: EtcdObjects, *, only_plan: bool) -> None:
    """Remove every object of the group from etcd; with ``only_plan`` look at them alone. Raises
    ``AdoptError`` if one could be lost."""
    document = await _must_be_adopted(move)
    removable = {crd: await _removable(move, etcd, crd, document) for crd in move.group.crds}
    total = sum(map(len, removable.values()))
    text = "of etcd: instar has each one, or clients deleted it there"
    move.tell(f"check: {counted(total, 'object')} {text}")
    if only_plan:
        move.tell("nothing was changed; without --plan they are removed, and a return needs --etcd")
        return
    await move.adoption.keep_alone()  # first: from here on a return without etcd would lose objects
    for crd, revisions in removable.items():
        await etcd.remove_unchanged(crd, revisions)
    done = "removed from etcd; the space is free after etcd's compaction and defragmentation"
    move.done("free", f"{counted(total, 'object')} {done}")


async def _must_be_adopted(move: GroupMove) -> Object:
    group = move.group.name
    routes = await move.cluster.routes(move.group, move.route)
    document = await move.adoption.document()
    if set(routes.values()) != {RoutedTo.INSTAR} or document["state"] != "adopted":
        raise AdoptError(f"--free-etcd: {group} is not adopted: the main cluster needs its objects")
    if await move.cluster.is_frozen(group):
        raise AdoptError(f"--free-etcd: a move of {group} was not finished: run it again first")
    if not document["durable"]:
        raise AdoptError(
            "--free-etcd: instar keeps its objects in memory alone (--storage memory:), and they "
            "would be lost when it stops"
        )
    await move.cluster.await_routes(move.group, instar=True)
    return document


async def _removable(
    move: GroupMove, etcd: EtcdObjects, crd: MovedCrd, document: Object
) -> dict[str, int]:
    """Return the revision in etcd of each object by key."""
    copied = await move.adoption.copied_uids(crd.plural)
    held: dict[str, HeldObject] = {}
    async for page in move.adoption.objects(crd.plural):
        for obj in page:
            held[key_of(obj)] = _held(obj, int(document["floor"]))
    found: dict[str, int] = {}
    unknown: list[str] = []
    async for stored in etcd.stored(crd):
        found[stored.key] = stored.revision
        if copied.get(stored.key) != stored.object["metadata"].get("uid") or _differs(
            stored, held.get(stored.key)
        ):
            unknown.append(stored.key)
    if unknown:
        listed = ", ".join(unknown[:_SHOWN]) + (", …" if len(unknown) > _SHOWN else "")
        raise AdoptError(
            f"{counted(len(unknown), 'object')} of {crd.name} in etcd did not come to instar as "
            f"they are: {listed}; nothing was removed"
        )
    return found


def _held(obj: Object, floor: int) -> HeldObject:
    uid = str(obj["metadata"].get("uid"))
    return HeldObject(uid, revision_of(obj) > floor, obj["apiVersion"], digest_of(obj).digest)


def _differs(stored: EtcdObject, held: HeldObject | None) -> bool:
    """Return whether an object that no client wrote since is another one in instar. One that is
    stored at different versions was compared when it was copied."""
    if held is None or held.changed or held.uid != stored.object["metadata"].get("uid"):
        return False  # deleted, changed, or created anew in instar
    if held.api_version != stored.object.get("apiVersion"):
        return False
    return held.digest != digest_of(stored.object).digest
