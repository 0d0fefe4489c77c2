"""Get and list: reads objects from the watch cache.

The REST handlers (``server/rest``) and ``delete_many.py`` call ``get`` and ``list_objects``. This
module decides what resourceVersion, match, limit, continue and selectors mean, and picks a list
strategy; ``stored/codec.py`` makes the JSON at the requested version.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

from instar.base import offload
from instar.base.errors import BadRequest, Expired, invalid_options, not_found
from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import FieldError, forbidden, not_supported
from instar.kube.api.selectors import FieldSelector, LabelSelector
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry, ingest
from instar.server.registry.stored.label_index import LabelIndex
from instar.server.registry.stored.page_cache import CachedPage, PageKey
from instar.server.registry.stored.storage_errors import as_api_error, with_api_errors
from instar.server.registry.stored.views import Views
from instar.server.registry.verbs.continue_token import (
    FROM_START,
    ContinueFrom,
    read_token,
    write_token,
)
from instar.server.registry.verbs.selecting import Selection
from instar.wire.storage.store import Compacted, StoreError
from instar.wire.storage.watchcache.collection import CollectionReloaded

_EXPIRED_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)
_EXPIRED_LIST = "The resourceVersion for the provided list is too old."
_CONVERTED_AT_ONCE = 500
"""Candidates that a limited list converts together before it applies the selectors."""
_CLOCK_INTERVAL = 100
"""Objects that are filtered between two looks at the clock."""
_AT_ONCE = 20_000
"""Objects that a list selects in one turn of the event loop; a longer list takes slices."""
_IN_A_PART = 1000
"""Objects per part of a streamed list."""
Parts = AsyncGenerator[Views, None]
KeyedEntries = Sequence[tuple[str, CacheEntry]]
"""Entries with their keys, in key order."""
Slices = AsyncGenerator[KeyedEntries, None]
"""All entries in key order; other tasks run between two slices."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The query of a list or watch request, parsed; ``check_list_options`` validates it."""

    labels: LabelSelector | None = None
    fields: FieldSelector | None = None
    revision: int | None = None
    """None when the request has no resourceVersion."""
    match: str = ""
    limit: int = 0
    token: str = ""
    send_initial_events: bool | None = None
    timeout_seconds: int = 0


class Listing(NamedTuple):
    """The result of a list, of which ``server/rest/responses.py`` makes the response."""

    views: Views
    revision: int
    token: str = ""
    remaining: int | None = None
    more: Parts | None = None
    """The parts that follow ``views``, made while they are sent; None unless the caller passed
    ``streams``."""


class _Query(NamedTuple):
    """A list request with its revision settled."""

    backend: Backend
    target: Target
    selection: Selection
    below: str
    """Key prefix of the namespace; empty for all namespaces."""
    start: ContinueFrom
    first: str
    """The key that the list begins with; empty for the first one."""
    limit: int
    revision: int
    exact: bool
    """Whether the list must show ``revision``, not a later state."""
    is_past: bool
    """Whether ``revision`` is not the latest one."""
    labels: LabelIndex | None
    label_selector: LabelSelector | None
    streams: bool


async def get(backend: Backend, target: Target, revision: int | None) -> bytes:
    """Return one object's JSON at the target's version."""
    await _settle_revision(backend, revision)
    target = target.under_latest_crd()
    entry = target.entry()
    if entry is None:
        raise not_found(target.serving.group, target.serving.plural, target.name)
    view = target.codec.view_now(entry, target.version)
    return view if view is not None else (await target.codec.views([entry], target.version))[0]


async def list_objects(
    backend: Backend, target: Target, options: ListOptions, *, streams: bool = False
) -> Listing:
    """Return the objects that a list request selects. With ``streams`` a long list may come in
    parts, if its objects have to be converted."""
    check_list_options(options)
    start = _start_of(options) if options.token else FROM_START
    await _settle_revision(backend, start.revision if options.token else options.revision)
    labels = await _label_index(target, options)
    # From here until the strategy has its entries nothing is awaited: they are of one revision.
    target = target.under_latest_crd()
    revision, exact = _snapshot(backend, options, start)
    below = f"{target.namespace}/" if target.namespace else ""
    query = _Query(
        backend,
        target,
        Selection(target, options.labels, options.fields),
        below,
        start,
        below + start.suffix if start.suffix else "",
        0 if options.revision == 0 else max(options.limit, 0),
        revision,
        exact,
        exact and revision != backend.revision,
        labels,
        options.labels,
        streams,
    )
    return await _strategy(query)(query)


def _start_of(options: ListOptions) -> ContinueFrom:
    start = read_token(options.token)
    if options.revision:
        raise BadRequest("specifying resource version is not allowed when using continue")
    return start


def _strategy(query: _Query) -> Callable[[_Query], Awaitable[Listing]]:
    """Return how the list finds its objects: by position where it selects everything, else by
    looking at candidates."""
    if not query.selection.everything:
        return _list_matching
    if query.is_past:
        return _list_past_page if query.limit else _list_matching
    is_whole = not query.limit and not query.first
    if is_whole and query.target.resource.objects.count(query.below) > _AT_ONCE:
        return _list_very_many
    return _list_page


async def _list_page(query: _Query) -> Listing:
    """List the current objects, all of them or a page; the same page is cached until a write."""
    target, below, limit = query.target, query.below, query.limit
    objects, first = target.resource.objects, query.first
    key = PageKey(target.serving.mark, target.version.name, below, first, limit)
    pages, state = query.backend.pages, objects.state
    page = pages.find(key, state)
    if page is None:
        entries, remaining = objects.select(below, first, limit)
        last = entries[-1].suffix[len(below) :] if remaining else ""
        page = CachedPage(await target.codec.views(entries, target.version), last, remaining)
        pages.add(key, state, page)
    return _listing(page.views, query.revision, page.last, page.remaining or None)


async def _list_very_many(query: _Query) -> Listing:
    """List all current objects of a large collection, streamed where views have to be made."""
    target, codec = query.target, query.target.codec
    entries = await with_api_errors(partial(target.resource.objects.gather, query.below))
    if not query.streams:
        return _listing(await codec.views(entries, target.version), query.revision, "", None)
    ready = await codec.uniform_views(entries, target.version)
    if ready is not None:
        return _listing(ready, query.revision, "", None)
    parts = _parts(target, entries)
    return Listing(await anext(parts), query.revision, more=parts)


async def _parts(target: Target, entries: Sequence[CacheEntry]) -> Parts:
    """Convert the objects, or bring them to today's schema, while they are sent: for very many that
    takes longer than a client waits for the first byte. The caller takes the first part before it
    sends the status, so that a converter that is down is an error response."""
    for start in range(0, len(entries), _IN_A_PART):
        part = entries[start : start + _IN_A_PART]
        yield await target.codec.views(part, target.version)


async def _list_past_page(query: _Query) -> Listing:
    """List the next page of a list that was begun before another write."""
    target, below, limit = query.target, query.below, query.limit
    try:
        entries, last, remaining = target.resource.objects.page_as_of(
            query.revision, below, query.first, limit
        )
    except Compacted:
        found = await _from_history(query)
        entries = [entry for _, entry in found[:limit]]
        last, remaining = found[limit - 1][0] if len(found) > limit else "", len(found) - limit
    views = await target.codec.views(entries, target.version)
    if remaining <= 0:
        return _listing(views, query.revision, "", None)
    return _listing(views, query.revision, last[len(below) :], remaining)


async def _list_matching(query: _Query) -> Listing:
    """List the candidates that match the selectors."""
    target, selection, limit = query.target, query.selection, query.limit
    async with aclosing(_candidates(query)) as slices:
        if selection.looks_inside:
            found = [each async for part in slices for each in part if selection.names(each[0])]
            if not all(selection.matches_entry(entry) for _, entry in found):
                return await _list_converted(query, found)
            await target.codec.make_normal([entry for _, entry in found], target.version)
            entries = await _filter(_one_slice(found), selection, limit)
        else:
            entries = await _filter(slices, selection, limit)
    more = 0 < limit < len(entries)
    views = await target.codec.views(entries[: limit or None], target.version)
    last = entries[limit - 1].suffix[len(query.below) :] if more else ""
    return _listing(views, query.revision, last, None)


async def _list_converted(query: _Query, found: KeyedEntries) -> Listing:
    """List candidates that are stored at another version: selectors apply to the converted object,
    so these are converted first."""
    target, limit = query.target, query.limit
    kept: list[bytes] = []
    last = ""
    step = max(limit, _CONVERTED_AT_ONCE)
    for start in range(0, len(found), step):
        part = found[start : start + step]
        views = await target.codec.views([entry for _, entry in part], target.version)
        for (suffix, _), view in zip(part, views, strict=True):
            if not query.selection.matches(view):
                continue
            if limit and len(kept) == limit:
                return _listing(Views(kept), query.revision, last[len(query.below) :], None)
            kept.append(view)
            last = suffix
    return _listing(Views(kept), query.revision, "", None)


async def _filter(slices: Slices, selection: Selection, limit: int) -> list[CacheEntry]:
    """Return the entries that the selectors match, at most one more than the limit."""
    entries: list[CacheEntry] = []
    breaks = offload.Breaks()
    async for part in slices:
        for position, (suffix, entry) in enumerate(part):
            if position % _CLOCK_INTERVAL == _CLOCK_INTERVAL - 1:
                await breaks.between()
            if selection.everything or (selection.names(suffix) and selection.keeps(entry)):
                entries.append(entry)
            if limit and len(entries) > limit:
                return entries
    return entries


def check_list_options(options: ListOptions) -> None:
    """Refuse a resourceVersionMatch or sendInitialEvents that a list may not have."""
    errors: list[FieldError] = []
    field = "resourceVersionMatch"
    if options.send_initial_events is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if options.match:
        if options.revision is None:
            errors.append(
                forbidden(field, f"{field} is forbidden unless resourceVersion is provided")
            )
        if options.token:
            errors.append(forbidden(field, f"{field} is forbidden when continue is provided"))
        if options.match not in ("Exact", "NotOlderThan"):
            errors.append(not_supported(field, options.match, ("Exact", "NotOlderThan", "")))
        if options.match == "Exact" and options.revision == 0:
            errors.append(forbidden(field, f'{field} "exact" is forbidden for resourceVersion "0"'))
    if errors:
        raise invalid_options("ListOptions", errors)


async def _settle_revision(backend: Backend, revision: int | None) -> None:
    """Wait until the cache has the revision, which a replica ahead of this one may have given out.
    None means the latest one in the store."""
    if revision is None:
        await backend.consistent()
    elif revision > backend.revision:
        await backend.wait_for_revision(revision)


def _snapshot(backend: Backend, options: ListOptions, start: ContinueFrom) -> tuple[int, bool]:
    """Return the revision that the list shows, and whether it must be exactly that one."""
    if options.token:
        return (start.revision, True) if start.revision > 0 else (backend.revision, False)
    asked = options.revision
    if asked and (options.match == "Exact" or (not options.match and options.limit > 0)):
        return asked, True
    return backend.revision, False


def _candidates(query: _Query) -> Slices:
    """Return the entries that can match: by key, by label index, or all of the collection."""
    narrowed = None if query.exact else _narrowed(query)
    return _scan(query) if narrowed is None else _one_slice(narrowed)


def _narrowed(query: _Query) -> KeyedEntries | None:
    """Return the entries that the name or the label index leaves; None where neither helps."""
    target, entries = query.target, query.target.resource.objects.entries
    name = query.selection.name
    if name is not None and (target.namespace or not target.serving.namespaced):
        suffix = target.named(name).suffix
        return [(suffix, entries[suffix])] if suffix in entries else []
    if query.labels is None or query.label_selector is None:
        return None
    suffixes = query.labels.matching(query.label_selector)
    if suffixes is None:
        return None
    return [(suffix, entries[suffix]) for suffix in suffixes if suffix.startswith(query.below)]


async def _one_slice(found: KeyedEntries) -> Slices:
    yield found


async def _scan(query: _Query) -> Slices:
    """Yield every entry from the start on, of now or of a past revision."""
    revision = query.revision if query.is_past else None
    objects = query.target.resource.objects
    try:
        async with aclosing(objects.slices(query.below, query.first, revision)) as slices:
            async for part in slices:
                yield part
    except CollectionReloaded as error:
        raise as_api_error(error) from error
    except Compacted:
        if revision is None:
            raise
        yield await _from_history(query)


async def _from_history(query: _Query) -> list[tuple[str, CacheEntry]]:
    """Read the objects of a revision that has left the cache's window from the store."""
    prefix, start = query.target.resource.objects.prefix, query.start
    try:
        page = await query.backend.store.range(
            prefix + query.below, start=prefix + query.first, revision=query.revision
        )
    except Compacted as error:
        if start.suffix:
            token = write_token(-1, start.suffix)
            raise Expired(_EXPIRED_TOKEN, list_meta={"continue": token}) from error
        raise Expired(_EXPIRED_LIST) from error
    except StoreError as error:
        raise as_api_error(error) from error
    suffixed = ((record, record.key[len(prefix) :]) for record in page.records)
    return [(suffix, ingest(record, suffix)) for record, suffix in suffixed]


async def _label_index(target: Target, options: ListOptions) -> LabelIndex | None:
    """Return the label index. Awaited before the list's revision is settled, because the index may
    have to be built."""
    if options.labels is None or options.token or target.serving.converts_remotely:
        return None
    return await target.resource.labels()


def _listing(views: Views, revision: int, last: str, remaining: int | None) -> Listing:
    """``last`` is the last key of the page if more follow, else empty."""
    token = write_token(revision, last + "\0") if last else ""
    return Listing(views, revision, token, remaining)
