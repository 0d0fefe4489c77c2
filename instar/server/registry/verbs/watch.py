"""Watch: opens a stream with its initial events and encodes later changes as watch events.

The watch handler of ``server/rest`` calls ``open_watch`` and sends the stream.
``stored/watchers.py`` sends events to many watchers and calls ``_Frames`` once per kind of watch.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Hashable, Sequence
from typing import Any

import orjson

from instar.base import offload
from instar.base.errors import ApiError, Expired, invalid_options
from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import FieldError, forbidden, not_supported
from instar.kube.api.encoding.json_text import encode
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.watchers import ChangeKey, Watcher, WatchHub, is_error
from instar.server.registry.verbs.read import ListOptions
from instar.server.registry.verbs.selecting import Selection
from instar.server.registry.verbs.watch_events import (
    EventRenderer,
    InitialEvents,
    as_internal,
    error_event,
)
from instar.wire.storage.store import Compacted
from instar.wire.storage.watchcache.collection import Change

INITIAL_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The query of a watch request."""

    select: ListOptions
    bookmarks: bool = False
    watch_list: bool = True
    """Whether sendInitialEvents is served (the feature gate WatchList)."""


def check_watch_options(options: WatchOptions) -> None:
    """Refuse combinations of sendInitialEvents and resourceVersionMatch that a watch may not
    have."""
    select, field = options.select, "resourceVersionMatch"
    errors: list[FieldError] = []
    initial = select.send_initial_events
    if initial is None and select.match:
        errors.append(
            forbidden(field, f"{field} is forbidden for watch unless sendInitialEvents is provided")
        )
    if initial is not None and select.match != "NotOlderThan":
        errors.append(
            forbidden(field, f"sendInitialEvents requires setting {field} to NotOlderThan")
        )
    if initial is not None and not options.watch_list:
        errors.append(
            forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for watch unless the WatchList feature gate is "
                "enabled",
            )
        )
    if initial is not None and select.match not in ("", "NotOlderThan"):
        errors.append(not_supported(field, select.match, ("NotOlderThan",)))
    # A watch without a revision asks for initial events, which sets the match, too.
    implied = options.watch_list and initial is None and not select.revision
    if select.token and (select.match or implied):
        errors.append(forbidden(field, f"{field} is forbidden when continue is provided"))
    if errors:
        raise invalid_options("ListOptions", errors)


@dataclass(slots=True)
class WatchStream:
    """An open watch: its initial events, then what the watcher receives."""

    opening: Sequence[bytes]
    watcher: Watcher
    hub: WatchHub
    finished: bool = False
    """Whether the initial events are all there is, because they end with an error."""

    def close(self) -> None:
        self.hub.leave(self.watcher)

    def bookmark(self, revision: int) -> bytes:
        return self.watcher.channel.bookmark(revision)

    def complete(self) -> bool:
        """Return whether every change so far has reached the watcher: some may wait for a
        conversion."""
        return not self.watcher.channel.busy


async def open_watch(
    backend: Backend, target: Target, options: WatchOptions, kind: Hashable, render: EventRenderer
) -> WatchStream:
    """Join the collection's watchers and make the initial events. ``kind`` names the
    representation; watches that are equal otherwise share their bytes."""
    check_watch_options(options)
    select = options.select
    initial = _wants_initial(select)
    if select.revision is None:
        await backend.consistent()
    refusal = None
    if initial and select.revision is not None:
        refusal = await _refusal(backend, select.revision)
    target = target.under_latest_crd()
    resource, below = target.resource, f"{target.namespace}/" if target.namespace else ""
    frames = _Frames(target, select, below, render)
    # A watch from a future revision sends nothing until then: it shares a channel only with others
    # from the same revision.
    ahead = select.revision or 0
    ahead = ahead if ahead > backend.revision else 0
    frames.after = ahead
    channel: Hashable = (
        ahead,
        target.codec,
        target.version.name,
        below,
        target.name,
        select.labels,
        select.fields,
        kind,
    )
    watcher = resource.hub.join(channel, frames, backend.revision)
    stream = WatchStream([], watcher, resource.hub)
    try:
        if refusal is not None:
            raise refusal
        if initial:
            await _open_with_state(target, options, stream, frames)
        else:
            await _open_after(backend, target, select, stream, frames)
    except ApiError as error:
        stream.opening = [*stream.opening, error_event(as_internal(error))]
        stream.finished = True
    except BaseException:
        stream.close()
        raise
    return stream


async def _refusal(backend: Backend, revision: int) -> ApiError | None:
    """Return the error that the stream starts with where the revision cannot be reached."""
    try:
        await backend.wait_for_revision(revision)
    except ApiError as error:
        return error
    return None


def _wants_initial(select: ListOptions) -> bool:
    if select.send_initial_events is not None:
        return select.send_initial_events
    return not select.revision


async def _open_with_state(
    target: Target,
    options: WatchOptions,
    stream: WatchStream,
    frames: _Frames,
) -> None:
    revision = stream.watcher.last_revision
    selection = frames.selection
    if selection.looks_inside:
        await target.codec.make_normal(frames.candidates(), target.version)
    entries = frames.current()
    views = await target.codec.views(entries, target.version)
    if frames.render.costs_little and all(map(selection.matches_entry, entries)):
        closing = _initial_end(target, options, revision, frames)
        stream.opening = InitialEvents(views, frames.render, closing)
        return
    turn, lines = offload.LoopBytes(), list[bytes]()
    stream.opening = lines
    for entry, view in zip(entries, views, strict=True):
        if selection.matches_entry(entry) or selection.matches(view):
            made = frames.rendered("ADDED", view)
            lines.append(made if isinstance(made, bytes) else await made)
        if turn.is_spent(len(view)):
            await asyncio.sleep(0)
    lines += _initial_end(target, options, revision, frames)


def _initial_end(
    target: Target, options: WatchOptions, revision: int, frames: _Frames
) -> list[bytes]:
    """Return the bookmark behind the initial events, if the client wants bookmarks."""
    if not options.bookmarks:
        return []
    return [frames.render("BOOKMARK", _bookmark(target, revision, {INITIAL_END: "true"}))]


async def _open_after(
    backend: Backend, target: Target, select: ListOptions, stream: WatchStream, frames: _Frames
) -> None:
    asked = select.revision or backend.revision
    frames_from = max(asked, 0)
    if asked >= stream.watcher.last_revision:
        return
    try:
        changes = target.resource.objects.changes_after(frames_from)
    except Compacted as error:
        raise Expired(f"too old resource version: {asked} ({error.oldest})") from error
    known = stream.watcher.last_revision
    missed = [change for change in changes if change.revision <= known]
    if len(missed) > 1:
        await frames.prefetch(missed)
    turn, lines = offload.LoopBytes(), list[bytes]()
    stream.opening = lines
    for change in missed:
        made = frames(change)
        frame = made if isinstance(made, bytes) else await made
        if turn.is_spent(len(frame)):
            await asyncio.sleep(0)
        if frame:
            lines.append(frame)
        if is_error(frame):
            stream.finished = True
            return


def _bookmark(target: Target, revision: int, annotations: dict[str, str] | None = None) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if annotations:
        metadata = {"annotations": annotations, **metadata}
    return encode(
        {
            "apiVersion": target.version.api_version,
            "kind": target.version.kind,
            "metadata": metadata,
        }
    )


class _Frames:
    """Encodes changes of the collection for one kind of watch (``EventFrames``)."""

    def __init__(
        self, target: Target, select: ListOptions, below: str, render: EventRenderer
    ) -> None:
        self._target = target
        self._below = below
        self._name = target.name
        self.render = render
        self.selection = Selection(target, select.labels, select.fields)
        self.change_keys = self._change_keys(select)
        self.after = 0
        """Changes up to this revision are not sent."""

    def _change_keys(self, select: ListOptions) -> Sequence[ChangeKey] | None:
        """Return by what changes are routed to this watch: key, label or namespace, whichever
        selects fewest."""
        if self._name:
            return (self._target.suffix,)
        if select.labels is not None and not self.selection.looks_inside:
            pairs = select.labels.one_of()
            if pairs:
                return pairs
        return (self._below,) if self._below else None

    def candidates(self) -> list[CacheEntry]:
        """Return the entries that the selectors choose from."""
        objects = self._target.resource.objects
        if self._name:
            entry = self._target.entry()
            return [entry] if entry is not None else []
        return [objects.entries[suffix] for suffix in objects.suffixes(self._below)]

    def current(self) -> list[CacheEntry]:
        """Return the entries of the initial events; those that must be converted first are not
        filtered yet."""
        found, selection = self.candidates(), self.selection
        if selection.everything:
            return found
        return [
            entry
            for entry in found
            if selection.names(entry.suffix)
            and (not selection.matches_entry(entry) or selection.keeps(entry))
        ]

    def __call__(self, change: Change[CacheEntry]) -> bytes | Coroutine[Any, Any, bytes]:
        if not self._concerns(change):
            return b""
        try:
            if all(self.selection.matches_entry(entry) for entry in _entries(change)):
                return self._framed(change)
        except ApiError as error:
            return error_event(as_internal(error))
        return self._converted(change)

    async def prefetch(self, changes: Sequence[Change[CacheEntry]]) -> None:
        """Convert what these changes need in one batch. A failure is reported when the change is
        encoded."""
        codec, version = self._target.codec, self._target.version
        concerned = [change for change in changes if self._concerns(change)]
        entries = [entry for change in concerned for entry in _entries(change)]
        if codec.remembers:
            with contextlib.suppress(ApiError):
                await codec.views(entries, version)

    def bookmark(self, revision: int) -> bytes:
        return self.render("BOOKMARK", _bookmark(self._target, revision))

    def _concerns(self, change: Change[CacheEntry]) -> bool:
        if change.revision <= self.after:
            return False
        if self._name and change.suffix != self._target.suffix:
            return False
        return change.suffix.startswith(self._below) and self.selection.names(change.suffix)

    def _framed(self, change: Change[CacheEntry]) -> bytes | Coroutine[Any, Any, bytes]:
        type_, entry = self._seen(change)
        if entry is None:
            return b""
        view = self._target.codec.view_now(entry, self._target.version)
        if view is None:
            return self._converted_event(type_, entry, change.revision)
        return self._line(type_, entry, view, change.revision)

    def _seen(self, change: Change[CacheEntry]) -> tuple[str, CacheEntry | None]:
        new, old = change.new, change.old
        if not self.selection.everything:
            new = new if new is not None and self.selection.keeps(new) else None
            old = old if old is not None and self.selection.keeps(old) else None
        if new is None:
            return "DELETED", old
        return ("ADDED" if old is None else "MODIFIED"), new

    async def _converted_event(self, type_: str, entry: CacheEntry, revision: int) -> bytes:
        try:
            views = await self._target.codec.views([entry], self._target.version)
        except ApiError as error:
            return error_event(as_internal(error))
        made = self._line(type_, entry, views[0], revision)
        return made if isinstance(made, bytes) else await made

    async def _converted(self, change: Change[CacheEntry]) -> bytes:
        try:
            views = await self._target.codec.views(_entries(change), self._target.version)
        except ApiError as error:
            return error_event(as_internal(error))
        matched = [view if self.selection.matches(view) else None for view in views]
        new = matched[0] if change.new is not None else None
        old = matched[-1] if change.old is not None else None
        if new is not None:
            made = self.rendered("MODIFIED" if old is not None else "ADDED", new)
        elif old is None or change.old is None:
            return b""
        else:
            made = self._line("DELETED", change.old, old, change.revision)
        return made if isinstance(made, bytes) else await made

    def _line(
        self, type_: str, entry: CacheEntry, view: bytes, revision: int
    ) -> bytes | Coroutine[Any, Any, bytes]:
        if type_ == "DELETED" and entry.revision != revision:
            view = _at_revision(view, entry.revision, revision)
        return self.rendered(type_, view)

    def rendered(self, type_: str, view: bytes) -> bytes | Coroutine[Any, Any, bytes]:
        """Encode an event; in a thread if that is costly."""
        if self.render.costs_little:
            return self.render(type_, view)
        line = offload.run_if_small(len(view), self.render, type_, view)
        return self._rendered_in_thread(type_, view) if line is None else line

    async def _rendered_in_thread(self, type_: str, view: bytes) -> bytes:
        try:
            await self.render.prepare()
            return await offload.run_in_thread(self.render, type_, view)
        except ApiError as error:
            return error_event(as_internal(error))


def _at_revision(view: bytes, old: int, new: int) -> bytes:
    """Return the last state of a deleted object with the revision of the deletion."""
    member = b'"resourceVersion":"%d","uid"' % old
    if view.count(member) == 1:
        return view.replace(member, b'"resourceVersion":"%d","uid"' % new)
    obj = orjson.loads(view)
    obj["metadata"]["resourceVersion"] = str(new)
    return encode(obj)


def _entries(change: Change[CacheEntry]) -> list[CacheEntry]:
    return [entry for entry in (change.new, change.old) if entry is not None]
