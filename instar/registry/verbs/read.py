"""Get and list: what resourceVersion, match, limit, continue and selectors mean, from the cache."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

from instar.api.gojson import syntax_error
from instar.api.selectors import FieldSelector, LabelSelector
from instar.errors import BadRequest, Expired, invalid_options, not_found
from instar.fields import FieldError, forbidden, not_supported
from instar.records import dataclass
from instar.registry.resources.resource import Target
from instar.registry.stored.backend import Backend, Objects
from instar.registry.stored.entry import Entry, ingest
from instar.registry.stored.failures import as_api_error
from instar.registry.stored.views import Views
from instar.registry.verbs.selecting import Selection
from instar.storage.store import Compacted, StoreError

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
_EXPIRED_LIST = "The resourceVersion for the provided list is too old."


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


async def list_objects(backend: Backend, target: Target, options: ListOptions) -> Listing:
    check_list_options(options)
    below = f"{target.namespace}/" if target.namespace else ""
    if options.token:
        start = _read_token(options.token)
        if options.revision:
            raise BadRequest("specifying resource version is not allowed when using continue")
    else:
        start = _Start(-1, "")
    await _settle_revision(backend, start.revision if options.token else options.revision)
    target = target.renewed()
    revision, exact = _snapshot(backend, options, start)
    limit = 0 if options.revision == 0 else max(options.limit, 0)
    selection = Selection(target, options.labels, options.fields)
    if selection.everything and (not exact or revision == backend.revision):
        return await _list_all(target, below, start, limit, revision)
    source = await _source(backend, target.resource.objects, below, start, revision, exact)
    if not selection.everything:
        source = _narrowed(target, options, selection, source, exact)
    if selection.looks_inside:
        found = list(source)
        if not all(selection.by_entry(entry) for _, entry in found):
            return await _list_converted(target, selection, found, limit, revision, below)
        source = iter(found)
    entries: list[Entry] = []
    more = False
    for _, entry in source:
        if not selection.everything and not selection.keeps(entry):
            continue
        if limit and len(entries) == limit:
            more = True
            break
        entries.append(entry)
    remaining = 1 + sum(1 for _ in source) if more and selection.everything else None
    views = await target.codec.views(entries, target.version)
    return _listing(views, revision, entries[-1].suffix[len(below) :] if more else "", remaining)


async def _list_all(
    target: Target, below: str, start: _Start, limit: int, revision: int
) -> Listing:
    """What is there now, all of it or a page: found by position, whatever its size."""
    first = below + start.suffix if start.suffix else ""
    entries, remaining = target.resource.objects.select(below, first, limit)
    last = entries[-1].suffix[len(below) :] if remaining else ""
    views = await target.codec.views(entries, target.version)
    return _listing(views, revision, last, remaining or None)


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


async def _source(
    backend: Backend, objects: Objects, below: str, start: _Start, revision: int, exact: bool
) -> Iterator[tuple[str, Entry]]:
    first = below + start.suffix if start.suffix else ""
    if not exact or revision == backend.revision:
        entries = objects.entries
        return ((suffix, entries[suffix]) for suffix in objects.suffixes(below, first))
    try:
        return objects.as_of(revision, below, first)
    except Compacted:
        return await _from_history(backend, objects, below, first, revision, start)


async def _from_history(
    backend: Backend, objects: Objects, below: str, first: str, revision: int, start: _Start
) -> Iterator[tuple[str, Entry]]:
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
    return ((suffix, ingest(record, suffix)) for record, suffix in suffixed)


def _narrowed(
    target: Target,
    options: ListOptions,
    selection: Selection,
    source: Iterator[tuple[str, Entry]],
    exact: bool,
) -> Iterator[tuple[str, Entry]]:
    """The part of the source that can match at all, by key or by label index."""
    if exact:
        return ((suffix, entry) for suffix, entry in source if selection.names(suffix))
    entries = target.resource.objects.entries
    name = selection.name
    if name is not None and (target.namespace or not target.serving.namespaced):
        suffix = target.named(name).suffix
        return iter(((suffix, entries[suffix]),)) if suffix in entries else iter(())
    if options.labels is None or options.token or target.serving.converts_remotely:
        return ((suffix, entry) for suffix, entry in source if selection.names(suffix))
    candidates = target.resource.labels.matching(options.labels)
    if candidates is None:
        return source
    below = f"{target.namespace}/" if target.namespace else ""
    return ((suffix, entries[suffix]) for suffix in candidates if suffix.startswith(below))


async def _list_converted(
    target: Target,
    selection: Selection,
    found: Sequence[tuple[str, Entry]],
    limit: int,
    revision: int,
    below: str,
) -> Listing:
    """Selectors see what a conversion made of an object, so candidates are converted first."""
    kept: list[bytes] = []
    last, more = "", False
    step = max(limit, _CONVERTED_AT_ONCE) if limit else len(found)
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
