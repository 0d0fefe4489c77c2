"""Delete and deletecollection: preconditions, finalizers, propagation, and what is answered.

As upstream, an object is converted to the request's version before it goes, and stays when that
fails; deleting needs only metadata, so ``--rescue-deletes`` and clean-up do without.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import NamedTuple

import orjson

from instar.base import errors
from instar.base.field_errors import invalid
from instar.base.json_values import Object
from instar.kube.access.attributes import OURSELVES, Attributes
from instar.kube.access.authorizers import authorize
from instar.kube.api.encoding.json_text import encode
from instar.server.registry.resources.admission import Operation, Verb
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.stored.make_entry import new_entry
from instar.server.registry.stored.prepared_object import revised
from instar.server.registry.verbs.delete_options import (
    UNREADABLE,
    DeleteOptions,
    check_delete_options,
)
from instar.server.registry.verbs.graceful_delete import Grace, begin
from instar.server.registry.verbs.read import Listing, ListOptions, list_objects
from instar.wire.storage.store import Stale

_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_ATTEMPTS = 100
_AT_ONCE = 50
"""Objects of many deleted together: the disk is waited for once, others get their turn. One after
the other where somebody may refuse one: what comes after it stays."""
UNSAFE_DELETE = "unsafe-delete-ignore-read-errors"
"""Upstream's verb for it, asked for besides ``delete``."""


class Deleted(NamedTuple):
    """The answer's body: a Status when the object is gone, else the object that lingers; some
    kinds show what is gone, too."""

    body: bytes
    lingers: bool
    is_object: bool = False
    accepted: bool = False
    """202: the legacy ``orphanDependents: false`` on an object that could not go at once."""


async def delete(
    context: Context, target: Target, options: DeleteOptions, *, listed: bool = False
) -> Deleted:
    """``listed``: as one of many, so that the request does not name it."""
    check_delete_options(options)
    if options.unreadable:
        await authorize(context.authorizer, options.asked._replace(verb=UNSAFE_DELETE))
    for _ in range(_ATTEMPTS):
        entry = target.entry()
        if entry is None:
            await context.backend.consistent()
            entry = target.entry()
        if entry is None:
            raise errors.not_found(target.serving.group, target.serving.plural, target.name)
        try:
            return await _delete_once(context, target, entry, options, listed=listed)
        except Stale:
            await context.backend.consistent()
        except errors.ServiceUnavailable:
            raise  # perhaps it is gone, and what is there next is another
        except errors.ApiError:
            if await context.backend.is_current(target.resource.objects, entry):
                raise
    raise errors.conflict(
        target.serving.group, target.serving.plural, target.name, "the object keeps changing"
    )


async def _delete_once(
    context: Context, target: Target, entry: CacheEntry, options: DeleteOptions, *, listed: bool
) -> Deleted:
    if options.unreadable:
        await _check_unreadable(target, entry)
        await context.backend.remove(target.resource.objects, target.suffix, entry.revision)
        return Deleted(_success(target, _metadata_of(entry)), lingers=False)
    stored = entry.decode()
    metadata = stored["metadata"]
    _check_preconditions(target, metadata, entry, options)
    if options.answered and not context.rescue_deletes:
        # As upstream, which decodes what it deletes: a webhook that is down keeps its objects.
        await target.codec.views([entry], target.version)
    if options.asked is not OURSELVES and not options.admitted:
        await _admit(context, target, entry, options, listed=listed)
    strategy = target.serving.strategy
    period = strategy.grace_period(stored, options.grace)
    grace = None
    if period is not None:
        grace = begin(metadata, options.grace, period, context.now())
    if grace is Grace.PENDING:
        view, _ = await _linger(context, target, entry, entry.decode(), options)
        return Deleted(view, lingers=True, is_object=True)
    finalizers = _finalizers(metadata.get("finalizers") or [], options, target)
    marked = strategy.mark_deleting(stored, context.timestamp())
    if not finalizers and not marked and grace is not Grace.RUNNING:
        return await _remove(context, target, entry, stored, options)
    if finalizers != (metadata.get("finalizers") or []) and not marked:
        metadata["finalizers"] = finalizers
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = context.timestamp()
        metadata["deletionGracePeriodSeconds"] = 0
        if "generation" in metadata:
            metadata["generation"] += 1
    view, _ = await _linger(context, target, entry, stored, options)
    accepted = options.orphan_dependents is False
    return Deleted(view, lingers=True, is_object=True, accepted=accepted)


async def _admit(
    context: Context, target: Target, entry: CacheEntry, options: DeleteOptions, *, listed: bool
) -> None:
    try:
        old = (await target.codec.objects([entry], target.version))[0]
    except errors.ApiError:
        if not context.rescue_deletes:
            raise
        old = _metadata_alone(target, entry)
    operation = Operation(
        Verb.DELETE,
        options.asked,
        target,
        None,
        old,
        dry_run=options.dry_run,
        warn=options.warn,
        name="" if listed else target.name,
        options=options,
        annotate=options.annotate,
        seconds_left=options.seconds_left,
        size=entry.size,
    )
    await context.admission.admit(operation)
    await context.admission.validate(operation)


def _metadata_alone(target: Target, entry: CacheEntry) -> Object:
    """What is certain of an object that cannot be converted."""
    version = target.version
    return {
        "apiVersion": version.api_version,
        "kind": version.kind,
        "metadata": _metadata_of(entry),
    }


async def _remove(
    context: Context, target: Target, entry: CacheEntry, stored: Object, options: DeleteOptions
) -> Deleted:
    """Nothing holds the object. One that knows of grace is first seen with its deletion's time, as
    watchers of its kind expect it."""
    revision, view = entry.revision, b""
    shown = target.serving.strategy.answers_deleted and options.answered
    if shown or stored != entry.decode():
        view, revision = await _linger(context, target, entry, stored, options)
    if not options.dry_run:
        await context.backend.remove(target.resource.objects, target.suffix, revision)
    body = view if shown else _success(target, stored["metadata"])
    return Deleted(body, lingers=False, is_object=shown)


async def _linger(
    context: Context, target: Target, entry: CacheEntry, marked: Object, options: DeleteOptions
) -> tuple[bytes, int]:
    """Store the object as terminating; the answer is made before, for it may fail."""
    codec, serving = target.codec, target.serving
    if marked == entry.decode():
        views = await codec.views([entry], target.version) if options.answered else [b""]
        return views[0], entry.revision
    prepared = await codec.prepare_marked(marked, target.version if options.answered else None)
    back = prepared.back
    if options.dry_run:
        return b"" if back is None else revised(back, entry.revision), entry.revision
    draft = new_entry(prepared, target.suffix)
    learnt = None if back is None else codec.learnt(back, target.version)
    written = await context.backend.put(target.resource.objects, draft, entry.revision, learnt)
    if serving.strategy.after_write is not None:
        await serving.strategy.after_write(target.name)
    return b"" if learnt is None else learnt.view(written), written.revision


def _finalizers(present: list[str], options: DeleteOptions, target: Target) -> list[str]:
    """What must be released first, with the propagation policy's own finalizer."""
    policy = options.policy
    if policy is None and options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    strategy = target.serving.strategy
    if policy is None and strategy.orphans_by_default and options.asked is not OURSELVES:
        if strategy.orphan_advice:
            options.warn(strategy.orphan_advice)
        policy = None if _FOREGROUND in present else "Orphan"
    if policy is None:
        return present
    kept = [name for name in present if name not in (_ORPHAN, _FOREGROUND)]
    wanted = {"Orphan": [_ORPHAN], "Foreground": [_FOREGROUND], "Background": []}[policy]
    return kept + wanted if sorted(kept + wanted) != sorted(present) else present


async def _check_unreadable(target: Target, entry: CacheEntry) -> None:
    """Raises unless the object cannot be shown at the version it is asked for."""
    try:
        await target.codec.views([entry], target.version)
    except errors.TooManyRequests:
        raise
    except errors.ApiError:
        return
    text = "is exclusively used to delete corrupt object(s), try again by removing this option"
    found = [invalid(UNREADABLE, True, text)]
    raise errors.invalid(target.serving.group, target.serving.plural, target.name, found)


def _metadata_of(entry: CacheEntry) -> Object:
    try:
        metadata: Object = entry.decode()["metadata"]
    except UnreadableEntry:
        return {}
    return metadata


def _check_preconditions(
    target: Target, metadata: Object, entry: CacheEntry, options: DeleteOptions
) -> None:
    uid = metadata.get("uid", "")
    if target.serving.strategy.storage_preconditions:
        _check_as_storage(target, uid, entry, options)
    if options.uid is not None and options.uid != uid:
        _precondition(
            target,
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({uid}). The object might have been deleted and then recreated",
        )
    if options.resource_version is not None and options.resource_version != str(entry.revision):
        _precondition(
            target,
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match "
            f"the ResourceVersion in record ({entry.revision}). The object might have been "
            "modified",
        )


def _check_as_storage(target: Target, uid: str, entry: CacheEntry, options: DeleteOptions) -> None:
    pairs = (
        ("UID", options.uid, uid),
        ("ResourceVersion", options.resource_version, str(entry.revision)),
    )
    for what, wanted, actual in pairs:
        if wanted is not None and wanted != actual:
            raise errors.conflict(
                target.serving.group,
                target.serving.plural,
                target.name,
                f"Precondition failed: {what} in precondition: {wanted}, "
                f"{what} in object meta: {actual}",
            )


def _precondition(target: Target, why: str) -> None:
    raise errors.conflict(target.serving.group, target.serving.kind, target.name, why)


def _success(target: Target, metadata: Object) -> bytes:
    details: Object = {"name": target.name}
    if target.serving.group:
        details["group"] = target.serving.group
    details["kind"] = target.serving.plural
    if metadata.get("uid"):
        details["uid"] = metadata["uid"]
    return encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }
    )


async def delete_collection(
    context: Context, target: Target, select: ListOptions, options: DeleteOptions
) -> Listing:
    """Delete what a list with the same options shows; answers that list as it was before."""
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
    """Delete the objects a resource has now in the target's namespace (all when empty). ``asked``
    by somebody, admission has a say: the first refusal ends it.

    For clean-up after a CRD or a namespace: goes by keys, so objects that cannot be read any more
    go too; finalizers are respected. Another replica may be at the same work and done sooner:
    what was created since, under the same name, has another uid and stays.
    """
    objects, below = target.resource.objects, f"{target.namespace}/" if target.namespace else ""
    doomed = [objects.entries[suffix] for suffix in objects.suffixes(below)]
    at_once = _AT_ONCE if asked is OURSELVES else 1
    for start in range(0, len(doomed), at_once):
        chunk = doomed[start : start + at_once]
        await asyncio.gather(
            *(_purge_one(backend, context, target, entry, asked) for entry in chunk)
        )


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
