"""Get and list: what resourceVersion, match, limit, continue and selectors mean, from the cache."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

import orjson

from instar.base import offload
from instar.base.errors import BadRequest, Expired, invalid_options, not_found
from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import FieldError, forbidden, not_supported
from instar.kube.api.encoding.go_json_errors import syntax_error
from instar.kube.api.selectors import FieldSelector, LabelSelector
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.backend import Backend, Objects
from instar.server.registry.stored.entry import CacheEntry, ingest
from instar.server.registry.stored.label_index import LabelIndex
from instar.server.registry.stored.page_cache import CachedPage, PageKey, Pages
from instar.server.registry.stored.storage_errors import as_api_error, guarded
from instar.server.registry.stored.views import Views
from instar.server.registry.verbs.selecting import Selection
from instar.wire.storage.store import Compacted, StoreError
from instar.wire.storage.watchcache.collection import CollectionReloaded

TOKEN_VERSION = "meta.k8s.io/v1"
_EXPIRED_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)
_CONVERTED_AT_ONCE = 500
"""Candidates of a limited list that are converted together before the first is judged."""
_LOOKED_AT = 100
"""Objects between two looks at the clock."""
_AT_ONCE = 20_000
"""Objects of a list that are found in one step; more are taken in slices."""
_EXPIRED_LIST = "The resourceVersion for the provided list is too old."
_IN_A_PART = 1000
Parts = AsyncGenerator[Views, None]
Slices = AsyncGenerator[Sequence[tuple[str, CacheEntry]], None]
"""Entries with their keys, in order; others have their turn in between."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """A list or watch request's query, parsed but not yet judged."""

    labels: LabelSelector | None = None
    fields: FieldSelector | None = None
    revision: int | None = None
    """None when no resourceVersion was given."""
    match: str = ""
    limit: int = 0
    token: str = ""
    send_initial_events: bool | None = None
    timeout_seconds: int = 0


class Listing(NamedTuple):
    views: Views
    revision: int
    token: str = ""
    remaining: int | None = None
    more: Parts | None = None
    """Views that follow, made while they are sent; only where the caller said it can do that."""


class _Start(NamedTuple):
    """Where a continued list goes on; revision -1 is "at the latest state"."""

    revision: int
    suffix: str


async def get(backend: Backend, target: Target, revision: int | None) -> bytes:
    """One object's JSON at the target's version."""
    await _settle_revision(backend, revision)
    target = target.renewed()
    entry = target.entry()
    if entry is None:
        raise not_found(target.serving.group, target.serving.plural, target.name)
    view = target.codec.view_now(entry, target.version)
    return view if view is not None else (await target.codec.views([entry], target.version))[0]


async def list_objects(
    backend: Backend, target: Target, options: ListOptions, *, streams: bool = False
) -> Listing:
    """With ``streams`` a long list that has to be worked on may come in parts."""
    check_list_options(options)
    below = f"{target.namespace}/" if target.namespace else ""
    if options.token:
        start = _read_token(options.token)
        if options.revision:
            raise BadRequest("specifying resource version is not allowed when using continue")
    else:
        start = _Start(-1, "")
    await _settle_revision(backend, start.revision if options.token else options.revision)
    labels = await _label_index(target, options)
    target = target.renewed()
    revision, exact = _snapshot(backend, options, start)
    limit = 0 if options.revision == 0 else max(options.limit, 0)
    selection = Selection(target, options.labels, options.fields)
    if selection.everything and (not exact or revision == backend.revision):
        return await _list_all(target, below, start, limit, revision, streams, backend.pages)
    if selection.everything and limit:
        return await _page_of_the_past(backend, target, below, start, limit, revision)
    slices = _narrowed(target, labels, options, selection, below) if not exact else None
    if slices is None:
        past = revision if exact and revision != backend.revision else None
        slices = _slices(backend, target.resource.objects, below, start, past)
    async with aclosing(slices):
        if selection.looks_inside:
            found = [each async for part in slices for each in part if selection.names(each[0])]
            if not all(selection.by_entry(entry) for _, entry in found):
                return await _list_converted(target, selection, found, limit, revision, below)
            slices = _one(found)
        entries = await _kept(slices, selection, limit)
    more = 0 < limit < len(entries)
    views = await target.codec.views(entries[: limit or None], target.version)
    last = entries[limit - 1].suffix[len(below) :] if more else ""
    return _listing(views, revision, last, None)


async def _kept(slices: Slices, selection: Selection, limit: int) -> list[CacheEntry]:
    """What the selection means of these, and one more than the limit where there is one."""
    entries: list[CacheEntry] = []
    breaks = offload.Breaks()
    async for part in slices:
        for position, (suffix, entry) in enumerate(part):
            if position % _LOOKED_AT == _LOOKED_AT - 1:
                await breaks.between()
            if selection.everything or (selection.names(suffix) and selection.keeps(entry)):
                entries.append(entry)
            if limit and len(entries) > limit:
                return entries
    return entries


async def _one(found: Sequence[tuple[str, CacheEntry]]) -> Slices:
    yield found


async def _list_all(
    target: Target,
    below: str,
    start: _Start,
    limit: int,
    revision: int,
    streams: bool,
    pages: Pages,
) -> Listing:
    """What is there now, all of it or a page: found by position, whatever its size."""
    first = below + start.suffix if start.suffix else ""
    objects = target.resource.objects
    if not limit and not first and objects.count(below) > _AT_ONCE:
        entries = await guarded(partial(objects.gather, below))
        return await _list_very_many(target, entries, revision, streams)
    mark, version = target.serving.mark, target.version.name
    key, state = PageKey(mark, version, below, first, limit), objects.state
    page = pages.find(key, state)
    if page is None:
        entries, remaining = objects.select(below, first, limit)
        last = entries[-1].suffix[len(below) :] if remaining else ""
        page = CachedPage(await target.codec.views(entries, target.version), last, remaining)
        pages.add(key, state, page)
    return _listing(page.views, revision, page.last, page.remaining or None)


async def _list_very_many(
    target: Target, entries: Sequence[CacheEntry], revision: int, streams: bool
) -> Listing:
    known = await target.codec.alike(entries, target.version) if streams else None
    if known is not None or not streams:
        views = known or await target.codec.views(entries, target.version)
        return _listing(views, revision, "", None)
    parts = _parts(target, entries)
    return Listing(await anext(parts), revision, more=parts)


async def _parts(target: Target, entries: Sequence[CacheEntry]) -> Parts:
    """Of objects that have to be worked on, converted or brought up to today's schema: for very
    many that takes longer than a client waits for the first. The first part is there before the
    answer begins: a converter that is down is an error."""
    for start in range(0, len(entries), _IN_A_PART):
        part = entries[start : start + _IN_A_PART]
        yield await target.codec.views(part, target.version)


def check_list_options(options: ListOptions) -> None:
    """The rules on resourceVersionMatch and sendInitialEvents for lists."""
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
    """None is "now"; a revision may come from a replica that is ahead of this one."""
    if revision is None:
        await backend.consistent()
    elif revision > backend.revision:
        await backend.at_least(revision)


def _snapshot(backend: Backend, options: ListOptions, start: _Start) -> tuple[int, bool]:
    """The revision the list shows, and whether it must be exactly that one."""
    if options.token:
        return (start.revision, True) if start.revision > 0 else (backend.revision, False)
    asked = options.revision
    if asked and (options.match == "Exact" or (not options.match and options.limit > 0)):
        return asked, True
    return backend.revision, False


async def _page_of_the_past(
    backend: Backend, target: Target, below: str, start: _Start, limit: int, revision: int
) -> Listing:
    """The next page of a list that was begun before something else was written."""
    objects, first = target.resource.objects, below + start.suffix if start.suffix else ""
    try:
        entries, last, remaining = objects.page_as_of(revision, below, first, limit)
    except Compacted:
        found = await _from_history(backend, objects, below, first, revision, start)
        entries = [entry for _, entry in found[:limit]]
        last, remaining = found[limit - 1][0] if len(found) > limit else "", len(found) - limit
    views = await target.codec.views(entries, target.version)
    if remaining <= 0:
        return _listing(views, revision, "", None)
    return _listing(views, revision, last[len(below) :], remaining)


async def _slices(
    backend: Backend, objects: Objects, below: str, start: _Start, revision: int | None
) -> Slices:
    """Everything from ``start`` on: of now, or of a revision of the past."""
    first = below + start.suffix if start.suffix else ""
    try:
        async with aclosing(objects.slices(below, first, revision)) as slices:
            async for part in slices:
                yield part
    except CollectionReloaded as error:
        raise as_api_error(error) from error
    except Compacted:
        if revision is None:
            raise
        yield await _from_history(backend, objects, below, first, revision, start)


async def _from_history(
    backend: Backend, objects: Objects, below: str, first: str, revision: int, start: _Start
) -> list[tuple[str, CacheEntry]]:
    prefix = objects.prefix
    try:
        page = await backend.store.range(prefix + below, start=prefix + first, revision=revision)
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
    """Before it is settled of which moment the list is: it may have to be made."""
    if options.labels is None or options.token or target.serving.converts_remotely:
        return None
    return await target.resource.labels()


def _narrowed(
    target: Target,
    labels: LabelIndex | None,
    options: ListOptions,
    selection: Selection,
    below: str,
) -> Slices | None:
    """What can match at all, by key or by label index; None where that is everything."""
    entries = target.resource.objects.entries
    name = selection.name
    if name is not None and (target.namespace or not target.serving.namespaced):
        suffix = target.named(name).suffix
        return _one([(suffix, entries[suffix])] if suffix in entries else [])
    if labels is None or options.labels is None:
        return None
    candidates = labels.matching(options.labels)
    if candidates is None:
        return None
    return _one([(name, entries[name]) for name in candidates if name.startswith(below)])


async def _list_converted(
    target: Target,
    selection: Selection,
    found: Sequence[tuple[str, CacheEntry]],
    limit: int,
    revision: int,
    below: str,
) -> Listing:
    """Selectors see what a conversion made of an object, so candidates are converted first."""
    kept: list[bytes] = []
    last, more = "", False
    step = max(limit, _CONVERTED_AT_ONCE)
    for start in range(0, len(found), step):
        part = found[start : start + step]
        views = await target.codec.views([entry for _, entry in part], target.version)
        for (suffix, _), view in zip(part, views, strict=True):
            if not selection.matches(view):
                continue
            if limit and len(kept) == limit:
                more = True
                break
            kept.append(view)
            last = suffix
        if more:
            break
    return _listing(Views(kept), revision, last[len(below) :] if more else "", None)


def _listing(views: Views, revision: int, last: str, remaining: int | None) -> Listing:
    """``last`` is the last key shown when more follow, else empty."""
    token = write_token(revision, last + "\0") if last else ""
    return Listing(views, revision, token, remaining)


def write_token(revision: int, start: str) -> str:
    document = orjson.dumps({"v": TOKEN_VERSION, "rv": revision, "start": start})
    return base64.urlsafe_b64encode(document).rstrip(b"=").decode()


def _not_json(document: bytes) -> str:
    """A byte that begins no character is shown as it is."""
    if document and document[0] >= 0x80:
        return f"invalid character '\\x{document[0]:02x}' looking for beginning of value"
    return syntax_error(document)


def _read_token(token: str) -> _Start:
    refused = "invalid continue token: continue key is not valid"
    try:
        document = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest(f"{refused}: illegal base64 data at input byte 0") from error
    try:
        parsed = orjson.loads(document)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"{refused}: {_not_json(document)}") from error
    if not isinstance(parsed, dict) or parsed.get("v") != TOKEN_VERSION:
        version = parsed.get("v", "") if isinstance(parsed, dict) else ""
        raise BadRequest(f"{refused}: server does not recognize this encoded version {version}")
    revision, start = parsed.get("rv", 0), parsed.get("start", "")
    if not isinstance(revision, int) or revision == 0:
        raise BadRequest(
            f"{refused}: incorrect encoded start resourceVersion (version {TOKEN_VERSION})"
        )
    if not isinstance(start, str) or not start:
        raise BadRequest(f"{refused}: encoded start key empty (version {TOKEN_VERSION})")
    plain = start.removeprefix("/")
    if any(part in ("", ".", "..") for part in plain.rstrip("\0").split("/")):
        raise BadRequest(f"{refused}: {start}")
    return _Start(revision, plain)
