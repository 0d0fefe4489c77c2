"""Deletion of one object: preconditions, finalizers, grace period, propagation, the response.

The REST handlers, ``delete_many.py``, ``subresources/eviction.py`` and the controllers call
``delete``. As upstream, an object is converted to the request's version first and is not deleted if
the conversion fails; deleting needs only metadata, so ``--rescue-deletes`` and the server's own
clean-up skip the conversion.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

from instar.base import errors, offload
from instar.base.field_errors import invalid
from instar.base.json_values import Object
from instar.kube.access.attributes import OURSELVES
from instar.kube.access.authorizers import authorize
from instar.kube.api.encoding.json_text import encode
from instar.server.registry.resources.admission import Operation, Verb
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.stored.make_entry import new_entry
from instar.server.registry.stored.prepared_object import encode_at_revision
from instar.server.registry.verbs.delete_options import (
    UNREADABLE,
    DeleteOptions,
    check_delete_options,
)
from instar.server.registry.verbs.graceful_delete import Grace, begin
from instar.wire.storage.store import Stale

_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_ATTEMPTS = 100
UNSAFE_DELETE = "unsafe-delete-ignore-read-errors"
"""Upstream's verb for deleting an unreadable object, authorized besides ``delete``."""


class Deleted(NamedTuple):
    """The response: a Status when the object is gone, else the terminating object. Some kinds
    answer with the deleted object."""

    body: bytes
    lingers: bool
    is_object: bool = False
    accepted: bool = False
    """202: the legacy ``orphanDependents: false`` on an object that could not go at once."""


async def delete(
    context: Context, target: Target, options: DeleteOptions, *, listed: bool = False
) -> Deleted:
    """Delete one object. ``listed`` means as part of a collection, so that the request does not
    name it."""
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
            raise  # the delete may have happened: the next object of that name is another one
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
    stored = await offload.run(entry.size, _decode_checked, target, entry, options)
    if options.answered and not context.rescue_deletes:
        # As upstream, which decodes what it deletes: a webhook that is down keeps its objects.
        await target.codec.views([entry], target.version)
    if options.asked is not OURSELVES and not options.admitted:
        await _admit(context, target, entry, options, listed=listed)
    plan = await offload.run(entry.size, _mark, context, target, entry, stored, options)
    if plan.removes:
        return await _remove(context, target, entry, stored, options, changed=plan.changed)
    view, _ = await _linger(context, target, entry, stored, options, changed=plan.changed)
    return Deleted(view, lingers=True, is_object=True, accepted=plan.accepted)


class _Plan(NamedTuple):
    """What a deletion does after the object's metadata is marked."""

    removes: bool
    """Whether nothing holds the object: no finalizer, no grace period."""
    changed: bool
    """Whether its metadata differ from the stored ones."""
    accepted: bool = False


def _decode_checked(target: Target, entry: CacheEntry, options: DeleteOptions) -> Object:
    stored = entry.decode()
    check_preconditions(target, stored["metadata"], entry, options)
    return stored


def _mark(
    context: Context, target: Target, entry: CacheEntry, stored: Object, options: DeleteOptions
) -> _Plan:
    """Write the deletion into the metadata of ``stored``, and decide whether the object goes now or
    waits for finalizers or the end of its grace period."""
    strategy, metadata = target.serving.strategy, stored["metadata"]
    period = strategy.grace_period(stored, options.grace)
    grace = None if period is None else begin(metadata, options.grace, period, context.now())
    if grace is Grace.PENDING:
        return _Plan(removes=False, changed=False)
    present = metadata.get("finalizers") or []
    finalizers = _finalizers(present, options, target)
    marked = strategy.mark_deleting(stored, context.timestamp())
    if not finalizers and not marked and grace is not Grace.RUNNING:
        return _Plan(removes=True, changed=stored != entry.decode())
    if finalizers != present and not marked:
        metadata["finalizers"] = finalizers
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = context.timestamp()
        metadata["deletionGracePeriodSeconds"] = 0
        if "generation" in metadata:
            metadata["generation"] += 1
    accepted = options.orphan_dependents is False
    return _Plan(removes=False, changed=stored != entry.decode(), accepted=accepted)


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
    """Return what admission can see of an object that cannot be converted."""
    version = target.version
    return {
        "apiVersion": version.api_version,
        "kind": version.kind,
        "metadata": _metadata_of(entry),
    }


async def _remove(
    context: Context,
    target: Target,
    entry: CacheEntry,
    stored: Object,
    options: DeleteOptions,
    *,
    changed: bool,
) -> Deleted:
    """Remove an object that nothing holds. One of a kind with grace periods is stored once more
    with the time of its deletion, because watchers of such kinds expect that event."""
    revision, view = entry.revision, b""
    shown = target.serving.strategy.answers_deleted and options.answered
    if shown or changed:
        view, revision = await _linger(context, target, entry, stored, options, changed=changed)
    if not options.dry_run:
        gone = await context.backend.remove(target.resource.objects, target.suffix, revision)
        if shown:
            view = await offload.run(entry.size, _at_revision, view, gone)
    body = view if shown else _success(target, stored["metadata"])
    return Deleted(body, lingers=False, is_object=shown)


def _at_revision(view: bytes, revision: int) -> bytes:
    """Return the deleted object with the revision of its deletion, as its last event shows it."""
    return encode_at_revision(orjson.loads(view), revision)


async def _linger(
    context: Context,
    target: Target,
    entry: CacheEntry,
    marked: Object,
    options: DeleteOptions,
    *,
    changed: bool,
) -> tuple[bytes, int]:
    """Store the object as terminating. The response is made first, because converting it can
    fail."""
    codec, serving = target.codec, target.serving
    if not changed:
        views = await codec.views([entry], target.version) if options.answered else [b""]
        return views[0], entry.revision
    reader = target.version if options.answered else None
    prepared = await codec.prepare_marked(marked, reader, entry.size)
    back = prepared.back
    if options.dry_run:
        view = (
            b""
            if back is None
            else await offload.run(entry.size, encode_at_revision, back, entry.revision)
        )
        return view, entry.revision
    draft = new_entry(prepared, target.suffix)
    written_view = None if back is None else codec.written_view(back, target.version)
    written = await context.backend.put(
        target.resource.objects, draft, entry.revision, written_view
    )
    if serving.strategy.after_write is not None:
        await serving.strategy.after_write(target.name)
    return b"" if written_view is None else written_view.view(written), written.revision


def _finalizers(present: list[str], options: DeleteOptions, target: Target) -> list[str]:
    """Return the finalizers that hold the object, with the one of the propagation policy."""
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
    """Raise 422 if the object can be converted to the requested version."""
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


def check_preconditions(
    target: Target, metadata: Object, entry: CacheEntry, options: DeleteOptions
) -> None:
    """Raise a conflict if the object is not the one that the options name."""
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
