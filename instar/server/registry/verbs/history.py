"""Past states of an object: at a revision, and the list of its writes, as far as the store keeps
them.

``server/endpoints/history.py`` calls it for requests that ``server/app.py`` has authorized. What a
write changed is computed by ``kube/history``.
"""

from __future__ import annotations

from collections.abc import Sequence

from instar.base import limits, offload
from instar.base.errors import ApiError, BadRequest, Expired, not_found
from instar.base.json_values import Object
from instar.kube.history.writes import ObjectState, writes_between
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.backend import Backend, too_new
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry, ingest
from instar.server.registry.stored.storage_errors import as_api_error
from instar.wire.storage.store import Ahead, Compacted, Event, Past, Record, Remembering, StoreError


async def last_deletion(backend: Backend, key: str) -> int:
    """Return the revision at which a key was last deleted; 0 where the store no longer has it."""
    events = (await _past(backend, key, 0, 0)).events
    return max((event.revision for event in events if event.value is None), default=0)


async def object_at(backend: Backend, target: Target, revision: int, since: int = 0) -> bytes:
    """Return one object's JSON at the target's version as of a revision. Revisions up to ``since``
    are hidden."""
    key = target.resource.objects.prefix + target.suffix
    if revision <= since:
        raise not_found(target.serving.group, target.serving.plural, target.name)
    try:
        page = await backend.store.range(key, limit=1, revision=revision)
        record = next((each for each in page.records if each.key == key), None)
    except Compacted as error:
        record = await _kept(backend, key, revision)
        if record is None:
            raise _forgotten(revision, error.oldest) from error
    except Ahead as error:
        raise too_new(revision, error.current) from error
    except StoreError as error:
        raise as_api_error(error) from error
    if record is None:
        raise not_found(target.serving.group, target.serving.plural, target.name)
    entry = ingest(record, target.suffix)
    return (await target.codec.uncached().views([entry], target.version))[0]


async def _kept(backend: Backend, key: str, revision: int) -> Record | None:
    """Return the value that a compaction kept, if it was written at exactly this revision: the
    list of writes names it as the earliest."""
    if not isinstance(backend.store, Remembering):
        return None
    for event in (await _past(backend, key, revision + 1, 1)).events:
        if event.revision == revision and event.value is not None:
            return Record(event.key, event.value, event.revision, event.seal)
    return None


async def writes_of(
    backend: Backend, target: Target, before: int, limit: int, since: int = 0
) -> Object:
    """Return the last writes of one object after ``since``, oldest first: manager, time, version
    and changed fields."""
    key = target.resource.objects.prefix + target.suffix
    # One more than requested, to see what the first of them changed.
    found = await _past(backend, key, before, limit + 1)
    known = [event for event in found.events if event.revision > since]
    events = _affordable(known)
    if not events and not before:
        raise not_found(target.serving.group, target.serving.plural, target.name)
    if len(events) < len(known):
        limit = min(limit, len(events) - 1)
    entries = [_entry(event, target.suffix) for event in events]
    states = await _states(target, events, entries)
    older = found.more and len(known) == len(found.events)
    more = older or len(states) > limit
    earlier = states[0] if len(states) > limit else None
    shown = states[-limit:]
    if earlier is None and events and events[0].revision > found.compacted and not more:
        earlier = ObjectState(0, "", None)  # the first write created the object
    revisions = await offload.run(_size(events), writes_between, shown, earlier)
    head: Object = {"apiVersion": "instar.dev/v1", "kind": "History", "current": backend.revision}
    return {**head, "more": more, "revisions": revisions}


async def _past(backend: Backend, key: str, before: int, limit: int) -> Past:
    if not isinstance(backend.store, Remembering):
        raise BadRequest("this storage tells nothing of the past")
    try:
        return await backend.store.past(key, before=before, limit=limit)
    except StoreError as error:
        raise as_api_error(error) from error


def _affordable(events: Sequence[Event]) -> Sequence[Event]:
    """Return the newest events that are read together, at least two, so that paging always
    advances."""
    left, kept = limits.HISTORY_READ_AT_ONCE, 0
    for event in reversed(events):
        left -= len(event.value or b"")
        if left < 0 and kept >= 2:
            break
        kept += 1
    return events[len(events) - kept :]


def _size(events: Sequence[Event]) -> int:
    return sum(len(event.value or b"") for event in events)


def _entry(event: Event, suffix: str) -> CacheEntry | None:
    if event.value is None:
        return None
    return ingest(Record(event.key, event.value, event.revision, event.seal), suffix)


async def _states(
    target: Target, events: Sequence[Event], entries: Sequence[CacheEntry | None]
) -> list[ObjectState]:
    """Return the object's states at the target's version; one that cannot be converted has an error
    instead."""
    codec = target.codec.uncached()
    kept = [entry for entry in entries if entry is not None]
    try:
        objects = iter(await codec.objects(kept, target.version))
    except ApiError:
        return [await _state(target, *pair) for pair in zip(events, entries, strict=True)]
    return [
        ObjectState(event.revision, "", None)
        if entry is None
        else ObjectState(event.revision, _version(entry), next(objects))
        for event, entry in zip(events, entries, strict=True)
    ]


async def _state(target: Target, event: Event, entry: CacheEntry | None) -> ObjectState:
    if entry is None:
        return ObjectState(event.revision, "", None)
    try:
        [obj] = await target.codec.uncached().objects([entry], target.version)
    except ApiError as error:
        return ObjectState(event.revision, _version(entry), None, error.message)
    return ObjectState(event.revision, _version(entry), obj)


def _version(entry: CacheEntry) -> str:
    try:
        return entry.api_version.rpartition("/")[2]
    except UnreadableEntry:
        return ""


def _forgotten(revision: int, oldest: int) -> Expired:
    return Expired(
        f"revision {revision} is forgotten; the oldest that can be read is {oldest} (--history)"
    )
