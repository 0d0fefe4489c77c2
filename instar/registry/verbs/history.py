"""Time travel: an object as it was, and who wrote it when, as far as the store remembers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from instar import offload
from instar.errors import ApiError, BadRequest, Expired, not_found
from instar.history.writes import State, rows
from instar.plain import Object
from instar.registry.resources.resource import Target
from instar.registry.stored.backend import Backend, as_api_error, too_new
from instar.registry.stored.entry import Entry, Unreadable, ingest
from instar.storage.store import Ahead, Compacted, Event, Record, Remembering, StoreError


async def object_at(backend: Backend, target: Target, revision: int) -> bytes:
    """One object's JSON at the target's version, as of a revision. RBAC is the caller's."""
    key = target.resource.objects.prefix + target.suffix
    try:
        page = await backend.store.range(key, limit=1, revision=revision)
    except Compacted as error:
        raise _forgotten(revision, error.oldest) from error
    except Ahead as error:
        raise too_new(revision, error.current) from error
    except StoreError as error:
        raise as_api_error(error) from error
    record = next((each for each in page.records if each.key == key), None)
    if record is None:
        raise not_found(target.serving.group, target.serving.plural, target.name)
    entry = ingest(record, target.suffix)
    return (await target.codec.uncached().views([entry], target.version))[0]


async def writes_of(backend: Backend, target: Target, before: int, limit: int) -> Object:
    """The last writes of one object, oldest first: who, when, at which version, what."""
    if not isinstance(backend.store, Remembering):
        raise BadRequest("this storage tells nothing of the past")
    key = target.resource.objects.prefix + target.suffix
    try:
        # One more than asked for: what the first of them changed.
        found = await backend.store.past(key, before=before, limit=limit + 1)
    except StoreError as error:
        raise as_api_error(error) from error
    if not found.events and not before:
        raise not_found(target.serving.group, target.serving.plural, target.name)
    entries = [_entry(event, target.suffix) for event in found.events]
    states = await _states(target, found.events, entries)
    more = found.more or len(states) > limit
    earlier = states[0] if len(states) > limit else None
    shown = states[-limit:]
    size = sum(len(event.value or b"") for event in found.events)
    if earlier is None and found.events and found.events[0].revision > found.compacted and not more:
        earlier = State(0, "", None)  # its first write made it
    told = await offload.run(size, partial(rows, shown, earlier))
    head: Object = {"apiVersion": "instar.dev/v1", "kind": "History", "current": backend.revision}
    return {**head, "more": more, "revisions": told}


def _entry(event: Event, suffix: str) -> Entry | None:
    if event.value is None:
        return None
    return ingest(Record(event.key, event.value, event.revision, event.seal), suffix)


async def _states(
    target: Target, events: Sequence[Event], entries: Sequence[Entry | None]
) -> list[State]:
    """Each at the target's version; one that cannot be converted says why, and only that one."""
    codec = target.codec.uncached()
    kept = [entry for entry in entries if entry is not None]
    try:
        objects = iter(await codec.objects(kept, target.version))
    except ApiError:
        return [await _state(target, *pair) for pair in zip(events, entries, strict=True)]
    return [
        State(event.revision, "", None)
        if entry is None
        else State(event.revision, _version(entry), next(objects))
        for event, entry in zip(events, entries, strict=True)
    ]


async def _state(target: Target, event: Event, entry: Entry | None) -> State:
    if entry is None:
        return State(event.revision, "", None)
    try:
        [obj] = await target.codec.uncached().objects([entry], target.version)
    except ApiError as error:
        return State(event.revision, _version(entry), None, error.message)
    return State(event.revision, _version(entry), obj)


def _version(entry: Entry) -> str:
    try:
        return entry.api_version.rpartition("/")[2]
    except Unreadable:
        return ""


def _forgotten(revision: int, oldest: int) -> Expired:
    return Expired(
        f"revision {revision} is forgotten; the oldest that can be read is {oldest} (--history)"
    )
