"""Lists every object of a CRD page by page, at every served version.

Used by the rewriting pass, the verification and the scans. The pages of all versions are read at
the same revision (a continue token is valid for every version), so the readings of an object
describe one state. An object that cannot be converted fails a whole list; then another version is
listed, then smaller pages, and finally each object is read individually. An object that cannot be
read at any version is located by its key (``undecodable.py``) and skipped.

The size of pages follows the size of objects, so that a page needs a bounded amount of memory.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

import orjson

from instar.base.errors import ApiError, Expired, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.migrator.content_diff import digest
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.live_crd import LiveCrd, key_of
from instar.tools.migrator.outcomes import UNDECODABLE, Fate, ObjectResult
from instar.tools.migrator.ownership import entries_of, relabelled, versions_named
from instar.tools.migrator.retries import RetryPolicy, call_with_retries
from instar.tools.migrator.undecodable import (
    UndecodableObject,
    find_undecodable,
    start_of,
    token_at,
)
from instar.wire.client.client import Client

_SHRINK = 8
_AT_ONCE = 8
"""Objects that are read by themselves at a time."""
_PAGE_BYTES = 4 << 20
"""About so many bytes of JSON make a page, at one version."""
_MOST_UNDECODABLE = 100
"""On one page."""
_BRIEF = RetryPolicy(attempts=2)
_SLOW = 2.0
"""Seconds after which a failed list means a webhook that hangs, not an undecodable object."""


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """A page of a list: its objects, and those that cannot be read."""

    found: list[ListedObject]
    unreadable: Mapping[str, ApiError]
    """Objects some version of which cannot be read, by key."""
    token: str
    """Of the next page; empty at the end."""
    remaining: int | None
    """Objects after this page, where the server says so."""
    undecodable: list[ObjectResult] = field(default_factory=list)
    """Objects that the server cannot read at any version."""
    repeated: list[str] = field(default_factory=list)
    """Keys that this page shows more than once."""


class Unlistable(Exception):
    """The next object cannot be listed at any served version, and its key is not found."""

    def __init__(self, cause: ApiError) -> None:
        super().__init__(cause.message)
        self.cause = cause


async def list_page(
    client: Client,
    path: str,
    token: str,
    limit: int,
    patience: RetryPolicy,
    *,
    metadata: bool = False,
) -> tuple[Object, str]:
    """Return a page and the token that was used for it: an expired token is replaced if possible.
    ``metadata``: list only the metadata of objects.
    """
    listing = client.list_metadata if metadata else client.list
    try:
        call = partial(listing, path, limit=limit, continue_=token)
        return await call_with_retries(call, patience), token
    except Expired as error:
        # The server hands out a token that goes on at the same key, at a newer revision.
        fresh = str(error.list_meta.get("continue") or "")
        if not token or not fresh:
            raise
    call = partial(listing, path, limit=limit, continue_=fresh)
    return await call_with_retries(call, patience), fresh


class Lister:
    """Lists the objects of a CRD, around those that cannot be converted."""

    def __init__(
        self,
        client: Client,
        live: LiveCrd,
        patience: RetryPolicy,
        *,
        limit: int = 500,
        verify: bool = True,
        leaving: Collection[str] = (),
    ) -> None:
        """``leaving``: versions whose managedFields entries are to be relabelled, besides versions
        that are not in the CRD any more.
        """
        self._client = client
        self._live = live
        self._patience = patience
        self._limit = limit
        self._verify = verify or bool(leaving)
        self._leaving = frozenset(leaving)
        self._object_bytes = 0
        """The size of an average object of the last page."""
        self._bad_known = False
        """Whether an object was found that no version can show."""

    async def page(self, token: str, limit: int = 0) -> ObjectPage:
        """Return the next page. Raises ``Expired`` only if the list cannot continue from ``token``;
        then list from the start.
        """
        undecodable: list[ObjectResult] = []
        most = min(limit or self._limit, self._limit, self._fitting())
        while True:
            try:
                version, listed, token = await self._first(token, most)
                break
            except Unlistable as error:
                bad = await self._undecodable(token)
                if bad is None or len(undecodable) >= _MOST_UNDECODABLE:
                    raise
                undecodable.append(_unread(bad, error))
                token = bad.token
        items = listed.get("items") or ()
        found = {key_of(obj): _found(obj, version) for obj in items}
        times = Counter(key_of(obj) for obj in items) if len(found) < len(items) else {}
        repeated = [key for key, number in times.items() if number > 1]
        unreadable: dict[str, ApiError] = {}
        others = [other for other in self._live.read_versions if other != version]
        if self._verify or version != self._live.write_version:
            for other in others:
                await self._add(other, listed, token, found, unreadable)
        meta = listed.get("metadata") or {}
        remaining = meta.get("remainingItemCount")
        next_token = meta.get("continue") or ""
        if remaining is None and not next_token:
            remaining = 0
        complete = [self._completed(item) for item in found.values()]
        self._measure(complete)
        return ObjectPage(complete, unreadable, next_token, remaining, undecodable, repeated)

    def _fitting(self) -> int:
        return max(_PAGE_BYTES // self._object_bytes, 1) if self._object_bytes else self._limit

    def _measure(self, page: Sequence[ListedObject]) -> None:
        """Estimate the size of objects from a sample of the page."""
        sample = [found.obj for found in page[:: max(len(page) // 5, 1)] if found.obj is not None]
        if sample:
            self._object_bytes = sum(len(orjson.dumps(obj)) for obj in sample) // len(sample) + 1

    async def _undecodable(self, token: str) -> UndecodableObject | None:
        start = start_of(token)
        if start is None:
            return None

        async def probe(key: str) -> bool:
            return await self._lists_at(token_at(key))

        began = time.monotonic()
        if not await probe(start or "-") and time.monotonic() - began > _SLOW:
            return None
        found = await find_undecodable(start, probe)
        self._bad_known = self._bad_known or found is not None
        return found

    async def read_one(self, key: str) -> ListedObject:
        """Read one object individually, at every served version. Raises the error of the read."""
        first, *others = self._live.read_versions
        call = partial(self._client.get, self._live.path(first, key))
        found = {key: _found(await call_with_retries(call, self._patience), first)}
        if self._verify:
            for version in others:
                await self._add_one_by_one(version, found, {}, self._patience)
        return self._completed(found[key])

    async def revision(self) -> str:
        """Return the current resourceVersion; later writes have a higher one."""
        try:
            _, listed, _ = await self._first("", 1)
        except Unlistable:
            # The first object may be undecodable; the list behind the last one holds none.
            path = self._live.path(self._live.write_version)
            listed, _ = await list_page(self._client, path, token_at("~"), 1, self._patience)
        return str((listed.get("metadata") or {}).get("resourceVersion") or "")

    async def _first(self, token: str, limit: int) -> tuple[str, Object, str]:
        """Return the page at the first version that can be listed, with the largest page size that
        works.

        A list fails because of one object or because the server or a webhook is down. Only the
        second is worth waiting for, so a look at the first object of all tells them apart.
        """
        patience, waited = _BRIEF, False
        while True:
            error: ApiError | None = None
            for version in self._live.read_versions:
                try:
                    path = self._live.path(version)
                    listed, used = await list_page(self._client, path, token, limit, patience)
                    return version, listed, used
                except (Expired, NotFound):
                    raise
                except ApiError as failure:
                    error = error or failure
            assert error is not None
            if not error.retryable:
                raise Unlistable(error)
            if not waited and not self._bad_known and not await self._lists_at(""):
                patience, waited = self._patience, True
                continue
            if limit == 1:
                raise Unlistable(error)
            limit, patience = max(1, limit // _SHRINK), _BRIEF

    async def _lists_at(self, token: str) -> bool:
        """Return whether a list of one object succeeds at some served version."""
        for version in self._live.read_versions:
            path = self._live.path(version)
            try:
                await self._client.list(path, limit=1, continue_=token)
                return True
            except ApiError:
                continue
        return False

    async def _add(
        self,
        version: str,
        first: Object,
        token: str,
        found: dict[str, ListedObject],
        unreadable: dict[str, ApiError],
    ) -> None:
        """List the same objects at another version and add the readings to ``found`` in place."""
        try:
            page = await self._same_page(version, first, token, len(found))
        except ApiError:
            await self._add_one_by_one(version, found, unreadable)
            return
        for obj in page.get("items") or ():
            _note(found, obj, version)

    async def _same_page(self, version: str, first: Object, token: str, count: int) -> Object:
        query: dict[str, str | int | bool | None] = {}
        if not token:
            revision = (first.get("metadata") or {}).get("resourceVersion")
            query = {"resourceVersion": revision, "resourceVersionMatch": "Exact"}
        path = self._live.path(version)
        listing = partial(self._client.list, path, limit=max(count, 1), continue_=token, **query)
        return await call_with_retries(listing, _BRIEF)

    async def _add_one_by_one(
        self,
        version: str,
        found: dict[str, ListedObject],
        unreadable: dict[str, ApiError],
        patience: RetryPolicy = _BRIEF,
    ) -> None:
        queue = iter(list(found))

        async def work() -> None:
            for key in queue:
                path = self._live.path(version, key)
                try:
                    obj = await call_with_retries(partial(self._client.get, path), patience)
                except NotFound:
                    continue
                except ApiError as error:
                    unreadable[key] = error
                    continue
                _note(found, obj, version)

        await asyncio.gather(*(work() for _ in range(min(_AT_ONCE, len(found)))))

    def _completed(self, found: ListedObject) -> ListedObject:
        """Return the object with the values that are computed from all of its readings."""
        crd = self._live.crd
        obj = found.readings.get(self._live.write_version)
        managed = None
        if obj is not None:
            known = {version.name for version in crd.versions}
            leaving = {
                version
                for version in versions_named(obj, crd.group)
                if version not in known or version in self._leaving
            }
            new = relabelled(obj, crd.group, leaving, found.readings) if leaving else None
            managed = None if new is None else new.entries
        return replace(found, obj=obj, managed_fields=managed)


def _unread(bad: UndecodableObject, error: Unlistable) -> ObjectResult:
    return ObjectResult(
        bad.key,
        Fate.FAILED,
        reason=UNDECODABLE,
        message=f"the API server cannot read what is stored (the object after "
        f"{bad.after or 'the beginning'}, or the last of several): {error}",
    )


def _note(found: dict[str, ListedObject], obj: Object, version: str) -> None:
    known = found.get(key_of(obj))
    if known is None or known.revision != obj["metadata"].get("resourceVersion"):
        return
    found[known.key] = replace(
        known,
        digests={**known.digests, version: digest(obj)},
        readings={**known.readings, version: obj},
    )


def _found(obj: Object, version: str) -> ListedObject:
    metadata = obj["metadata"]
    return ListedObject(
        key=key_of(obj),
        uid=metadata.get("uid", ""),
        revision=metadata.get("resourceVersion", ""),
        digests={version: digest(obj)},
        entries=tuple(entries_of(obj)),
        readings={version: obj},
    )
