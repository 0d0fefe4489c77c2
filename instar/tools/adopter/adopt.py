"""Moves a group to instar: copy, freeze, reconcile, flip, end watches, unfreeze, verify.

``cli/commands/adopt`` calls it after ``preflight.py``. Writes are refused from the freeze to its
end. A killed run is run again: before the flip it begins anew, from the flip on it goes on, because
then instar has everything and no client could write meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack

from instar.base.plurals import counted
from instar.tools.adopter.api_services import RoutedTo
from instar.tools.adopter.comparison import SideComparison
from instar.tools.adopter.errors import AdoptError
from instar.tools.adopter.move import GroupMove
from instar.tools.adopter.shadow_copy import ShadowCopy

_LATE_SECONDS = 0.1


async def adopt(move: GroupMove) -> list[str]:
    """Move the group; return what differs afterwards, which is nothing unless something is wrong.
    Raises ``AdoptError``, ``ApiError``."""
    group = move.group.name
    routes = await move.cluster.routes(move.group, move.route)
    routed = set(routes.values())
    frozen = await move.cluster.is_frozen(group)
    if RoutedTo.INSTAR in routed:
        if not frozen and RoutedTo.MAIN not in routed:
            move.tell(f"{group} is served by instar already")
            await _add_versions(move, routes)
            await _end_watches(move)  # in case an earlier run was killed before
            return []
        move.tell("going on after the freeze of an earlier run")
        await move.cluster.protect(group, routes)
        await _flip(move)
        await _open(move)
        return []
    if move.options.add_versions:
        raise AdoptError(f"--add-version: {group} is served by the main cluster; adopt it first")
    if frozen:
        move.tell("ending the freeze of an earlier run")
        await move.cluster.unfreeze(group)
    move.journal.begin_anew()
    async with AsyncExitStack() as stack:
        pairs = await _copy(move, stack)
        await _freeze(move)
        floor = await _reconcile(move, pairs)
        await _flip(move)
        floor = await _take_late(move, pairs, floor)
        await _open(move)
        return await _verify(move, pairs, floor)


async def _add_versions(move: GroupMove, routed: Iterable[str]) -> None:
    """Route versions to instar before a CRD serves them, so that none is served from etcd."""
    new = sorted(set(move.options.add_versions) - set(routed))
    for version in new:
        await move.cluster.route_to_instar(move.group, version, move.route)
        await move.cluster.await_proxied(move.group, version)
        move.done("route", f"version {version}: the CRDs may serve it")
    await move.cluster.protect(move.group.name, {*routed, *new})


async def undo(move: GroupMove) -> None:
    """Go back from an adoption that was not finished: the main cluster has everything."""
    group = move.group.name
    routes = await move.cluster.routes(move.group, move.route)
    routed = set(routes.values())
    frozen = await move.cluster.is_frozen(group)
    if RoutedTo.INSTAR in routed and not frozen:
        raise AdoptError(
            f"clients write to {group} in instar already: --return brings back what they wrote"
        )
    await move.cluster.unprotect(group)
    for version in routes:
        await move.cluster.route_to_main(move.group, version)
    await move.cluster.await_routes(move.group, instar=False)
    for crd in move.group.crds:
        await move.cluster.end_watches(crd)
    await move.adoption.give_back()
    await move.cluster.unfreeze(group)
    move.done("undone", "the group is served by the main cluster, as before")


Pair = tuple[ShadowCopy, SideComparison]


async def _copy(move: GroupMove, stack: AsyncExitStack) -> list[Pair]:
    client, adoption = move.cluster.client, move.adoption
    above = max([await move.cluster.revision(crd) for crd in move.group.crds])
    await adoption.begin(above, discard=move.options.discard)
    pairs: list[Pair] = []
    for crd in move.group.crds:
        shadow = ShadowCopy(client, adoption, crd)
        pairs.append((shadow, SideComparison(client, adoption, shadow)))
        await shadow.copy()
        shadow.follow()
        stack.push_async_callback(shadow.stop)
        move.done("copy", f"{counted(len(shadow.index), 'object')} of {crd.name}")
    for shadow, comparison in pairs:
        await shadow.reconcile()
        await comparison.compare()
        move.done("compare", f"{shadow.crd.name} at {', '.join(shadow.crd.served)}")
    return pairs


async def _freeze(move: GroupMove) -> None:
    move.frozen()
    await move.cluster.freeze(move.group.name)
    await move.cluster.protect(move.group.name, move.group.versions)
    await move.cluster.await_frozen(move.group.name)
    servers = counted(len(move.cluster.replicas), "API server")
    move.done("freeze", f"writes are refused by {servers}")
    await asyncio.sleep(move.in_flight)


async def _reconcile(move: GroupMove, pairs: list[Pair]) -> int:
    """Copy and compare what the last writers wrote, and begin history for the clients to come."""
    revision = anew = 0
    for shadow, comparison in pairs:
        revision = max(revision, await shadow.reconcile())
        anew += await comparison.settle()
    floor = await move.adoption.set_floor(revision + move.options.margin)
    total = sum(len(shadow.index) for shadow, _ in pairs)
    text = f"{counted(total, 'object')}, {anew} compared in the freeze; history begins at {floor}"
    move.done("reconcile", text, floor=floor)
    return floor


async def _flip(move: GroupMove) -> None:
    for version in move.group.versions:
        await move.cluster.route_to_instar(move.group, version, move.route)
    move.done("route", "all versions")
    await move.cluster.await_routes(move.group, instar=True)
    move.done("flip", "every API server asks instar")


async def _take_late(move: GroupMove, pairs: list[Pair], floor: int) -> int:
    """Copy what a write in flight stored after the freeze: the watches of the copy see it until
    the CRDs change."""
    await asyncio.sleep(_LATE_SECONDS)
    for shadow, _ in pairs:
        await shadow.stop()
    move.done("late writes", "none are in flight any more")
    revision = await move.cluster.main_revision()
    if revision >= floor:  # other writes of the cluster were faster than the flip
        floor = await move.adoption.set_floor(revision + move.options.margin)
        move.done("history", f"begins at {floor}")
    return floor


async def _open(move: GroupMove) -> None:
    await move.adoption.finish()
    await move.cluster.unfreeze(move.group.name)
    move.unfrozen()
    move.done("unfreeze", "writes go to instar")
    await _end_watches(move)


async def _end_watches(move: GroupMove) -> None:
    for crd in move.group.crds:
        await move.cluster.end_watches(crd)
    move.done("end watches", "clients list again")


async def _verify(move: GroupMove, pairs: list[Pair], floor: int) -> list[str]:
    wrong: list[str] = []
    for _, comparison in pairs:
        wrong += await comparison.changed_by_move(floor)
    text = "every object is as it was, at every version" if not wrong else ", ".join(wrong)
    move.done("verify", text)
    return wrong
