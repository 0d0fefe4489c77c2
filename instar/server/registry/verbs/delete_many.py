"""Deletion of many objects: deletecollection, and the clean-up after a CRD or a namespace.

The REST handlers call ``delete_collection``; the CRD and namespace controllers call ``purge``.
Each object goes through ``delete.py``.
"""

from __future__ import annotations

import asyncio
import contextlib

import orjson

from instar.base import errors
from instar.base.supervision import note_progress
from instar.kube.access.attributes import OURSELVES, Attributes
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.verbs.delete import delete
from instar.server.registry.verbs.delete_options import DeleteOptions, check_delete_options
from instar.server.registry.verbs.read import Listing, ListOptions, list_objects
from instar.wire.storage.store import Stale

_AT_ONCE = 50
"""Objects deleted together, so that they share a transaction and other requests run in between.
Where admission may refuse one they are deleted one by one: those after it must stay."""


async def delete_collection(
    context: Context, target: Target, select: ListOptions, options: DeleteOptions
) -> Listing:
    """Delete the objects that a list with the same options shows, and return that list."""
    check_delete_options(options)
    listing = await list_objects(context.backend, target, select)
    at_once = 1 if context.admission.is_configured else _AT_ONCE
    for start in range(0, len(listing.views), at_once):
        chunk = listing.views[start : start + at_once]
        await asyncio.gather(*(_delete_listed(context, target, view, options) for view in chunk))
    return listing


async def _delete_listed(
    context: Context, target: Target, view: bytes, options: DeleteOptions
) -> None:
    metadata = orjson.loads(view)["metadata"]
    one = Target(
        target.resource,
        target.serving,
        target.codec,
        target.version,
        metadata.get("namespace", ""),
        metadata["name"],
    )
    try:
        await delete(context, one, options, listed=True)
    except errors.NotFound:
        return


async def purge(
    backend: Backend, context: Context, target: Target, asked: Attributes = OURSELVES
) -> None:
    """Delete all objects of a resource in the target's namespace, or everywhere if it has none.

    For the clean-up after a CRD or a namespace. Works by keys, so that unreadable objects go too;
    finalizers are respected. With a user in ``asked`` admission runs, and its first refusal ends
    the purge. Another replica may purge at the same time: an object created since then under the
    same name has another uid and stays.
    """
    objects, below = target.resource.objects, f"{target.namespace}/" if target.namespace else ""
    doomed = [objects.entries[suffix] for suffix in objects.suffixes(below)]
    at_once = _AT_ONCE if asked is OURSELVES else 1
    for start in range(0, len(doomed), at_once):
        chunk = doomed[start : start + at_once]
        await asyncio.gather(
            *(_purge_one(backend, context, target, entry, asked) for entry in chunk)
        )
        note_progress()


async def _purge_one(
    backend: Backend, context: Context, target: Target, entry: CacheEntry, asked: Attributes
) -> None:
    namespace, _, name = entry.suffix.rpartition("/")
    one = Target(target.resource, target.serving, target.codec, target.version, namespace, name)
    try:
        uid = entry.decode()["metadata"].get("uid", "")
        policy = None if asked is OURSELVES else "Background"
        how = DeleteOptions(uid=uid, answered=False, grace=0, asked=asked, policy=policy)
        await delete(context, one, how, listed=True)
    except UnreadableEntry:
        with contextlib.suppress(Stale):
            await backend.remove(target.resource.objects, entry.suffix, entry.revision)
    except (errors.NotFound, errors.Conflict):
        return
