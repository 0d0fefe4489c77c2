"""Every object once, page by page, with a digest of its content at each served version.

The pages of all versions are read at the same revision (a continue token belongs to no version),
so their digests describe one state of an object. An object that cannot be converted spoils a
whole list: then another version is listed, smaller pages are tried, and in the end each object is
asked for by itself, so that one bad object is found instead of hiding five hundred good ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from instar.base.errors import ApiError, Expired, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.migrator.content_diff import digest
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.live_crd import LiveCrd, key_of
from instar.tools.migrator.ownership import entries_of, relabelled, versions_named
from instar.tools.migrator.retries import RetryPolicy, call_with_retries
from instar.wire.client.client import Client

_SHRINK = 8
_BRIEF = RetryPolicy(attempts=2)


@dataclass(frozen=True, slots=True)
class ObjectPage:
    found: list[ListedObject]
    unreadable: Mapping[str, ApiError]
    """Objects some version of which cannot be read, by key."""
    token: str
    """Of the next page; empty at the end."""
    remaining: int | None
    """Objects after this page, where the server says so."""


class Unlistable(Exception):
    """Not even the next single object can be listed at any served version."""

    def __init__(self, cause: ApiError) -> None:
        super().__init__(cause.message)
        self.cause = cause


async def list_page(
    client: Client, path: str, token: str, limit: int, patience: RetryPolicy
) -> tuple[Object, str]:
    """A page and the token that really led to it: an expired one is replaced where possible."""
    try:
        listing = partial(client.list, path, limit=limit, continue_=token)
        return await call_with_retries(listing, patience), token
    except Expired as error:
        # The server hands out a token that goes on at the same key, at a newer revision.
        fresh = str(error.list_meta.get("continue") or "")
        if not token or not fresh:
            raise
    listing = partial(client.list, path, limit=limit, continue_=fresh)
    return await call_with_retries(listing, patience), fresh


class Lister:
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
        """``leaving``: versions whose ownership entries are to be carried over, besides those
        that are gone already."""
        self._client = client
        self._live = live
        self._patience = patience
        self._limit = limit
        self._verify = verify or bool(leaving)
        self._leaving = frozenset(leaving)

    async def page(self, token: str, limit: int = 0, *, keep: bool = False) -> ObjectPage:
        """Raises ``Expired`` only when there is no way on from ``token``: then begin anew.
        ``keep`` holds on to the readings at every version, to tell what changed."""
        version, listed, token = await self._first(token, min(limit or self._limit, self._limit))
        found = {key_of(obj): _found(obj, version) for obj in listed.get("items") or ()}
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
        complete = [self._completed(item, keep) for item in found.values()]
        return ObjectPage(complete, unreadable, next_token, remaining)

    async def again(self, key: str) -> ListedObject:
        """One object by itself, at every served version. Raises what reading it raises."""
        first, *others = self._live.read_versions
        call = partial(self._client.get, self._live.path(first, key))
        found = {key: _found(await call_with_retries(call, self._patience), first)}
        if self._verify:
            for version in others:
                await self._add_one_by_one(version, found, {})
        return self._completed(found[key], keep=True)

    async def revision(self) -> str:
        """A revision of now: whatever is written later has a higher one."""
        _, listed, _ = await self._first("", 1)
        return str((listed.get("metadata") or {}).get("resourceVersion") or "")

    async def _first(self, token: str, limit: int) -> tuple[str, Object, str]:
        """The page at the first version that can be listed, in the largest size that can."""
        patience = self._patience
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
            if limit == 1 or not error.retryable:
                raise Unlistable(error)
            limit, patience = max(1, limit // _SHRINK), _BRIEF

    async def _add(
        self,
        version: str,
        first: Object,
        token: str,
        found: dict[str, ListedObject],
        unreadable: dict[str, ApiError],
    ) -> None:
        """The same objects at another version, added to ``found`` in place."""
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
        self, version: str, found: dict[str, ListedObject], unreadable: dict[str, ApiError]
    ) -> None:
        for key in list(found):
            path = self._live.path(version, key)
            try:
                obj = await call_with_retries(partial(self._client.get, path), _BRIEF)
            except NotFound:
                continue
            except ApiError as error:
                unreadable[key] = error
                continue
            _note(found, obj, version)

    def _completed(self, found: ListedObject, keep: bool) -> ListedObject:
        """With everything that needs all readings; they themselves are let go."""
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
        readings = found.readings if keep else {}
        return replace(found, obj=obj, managed_fields=managed, readings=readings)


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
