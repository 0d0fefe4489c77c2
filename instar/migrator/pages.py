"""Every object once, page by page, with a digest of its content at each served version.

The pages of all versions are read at the same revision (a continue token belongs to no version),
so their digests describe one state of an object. An object that cannot be converted spoils a
whole list: then another version is listed, smaller pages are tried, and in the end each object is
asked for by itself, so that one bad object is found instead of hiding five hundred good ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from instar.client.client import Client
from instar.errors import ApiError, Expired, NotFound
from instar.migrator.content import cleaned_managed_fields, digest
from instar.migrator.live_crd import LiveCrd, key_of
from instar.migrator.retrying import Patience, persistently
from instar.plain import Object

_SHRINK = 8
_BRIEF = Patience(attempts=2)


@dataclass(frozen=True, slots=True)
class Found:
    """One object as it was listed."""

    key: str
    uid: str
    revision: str
    digests: Mapping[str, str] = field(default_factory=dict)
    """By version; one that could not be read is missing."""
    managed_fields: list[Object] | None = None
    """What managedFields should become, where cleaning was asked for."""


@dataclass(frozen=True, slots=True)
class Page:
    found: list[Found]
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
    client: Client, path: str, token: str, limit: int, patience: Patience
) -> tuple[Object, str]:
    """A page and the token that really led to it: an expired one is replaced where possible."""
    try:
        listing = partial(client.list, path, limit=limit, continue_=token)
        return await persistently(listing, patience), token
    except Expired as error:
        # The server hands out a token that goes on at the same key, at a newer revision.
        fresh = str(error.list_meta.get("continue") or "")
        if not token or not fresh:
            raise
    listing = partial(client.list, path, limit=limit, continue_=fresh)
    return await persistently(listing, patience), fresh


class Lister:
    def __init__(
        self,
        client: Client,
        live: LiveCrd,
        patience: Patience,
        *,
        limit: int = 500,
        verify: bool = True,
        clean_managed_fields: bool = False,
    ) -> None:
        self._client = client
        self._live = live
        self._patience = patience
        self._limit = limit
        self._verify = verify
        self._clean = clean_managed_fields

    async def page(self, token: str, limit: int = 0) -> Page:
        """Raises ``Expired`` only when there is no way on from ``token``: then begin anew."""
        version, listed, token = await self._first(token, min(limit or self._limit, self._limit))
        found = {key_of(obj): self._found(obj, version) for obj in listed.get("items") or ()}
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
        return Page(list(found.values()), unreadable, next_token, remaining)

    async def again(self, key: str) -> Found | None:
        """One object by itself, at every served version; None when it is gone or changes."""
        first, *others = self._live.read_versions
        try:
            call = partial(self._client.get, self._live.path(first, key))
            found = {key: self._found(await persistently(call, self._patience), first)}
        except ApiError:
            return None
        for version in others:
            await self._add_one_by_one(version, found, {})
        return found[key]

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
        found: dict[str, Found],
        unreadable: dict[str, ApiError],
    ) -> None:
        """The same objects at another version, added to ``found`` in place."""
        try:
            page = await self._same_page(version, first, token, len(found))
        except ApiError:
            await self._add_one_by_one(version, found, unreadable)
            return
        for obj in page.get("items") or ():
            self._note(found, obj, version)

    async def _same_page(self, version: str, first: Object, token: str, count: int) -> Object:
        query: dict[str, str | int | bool | None] = {}
        if not token:
            revision = (first.get("metadata") or {}).get("resourceVersion")
            query = {"resourceVersion": revision, "resourceVersionMatch": "Exact"}
        path = self._live.path(version)
        listing = partial(self._client.list, path, limit=max(count, 1), continue_=token, **query)
        return await persistently(listing, _BRIEF)

    async def _add_one_by_one(
        self, version: str, found: dict[str, Found], unreadable: dict[str, ApiError]
    ) -> None:
        for key in list(found):
            path = self._live.path(version, key)
            try:
                obj = await persistently(partial(self._client.get, path), _BRIEF)
            except NotFound:
                continue
            except ApiError as error:
                unreadable[key] = error
                continue
            self._note(found, obj, version)

    def _note(self, found: dict[str, Found], obj: Object, version: str) -> None:
        known = found.get(key_of(obj))
        if known is None or known.revision != obj["metadata"].get("resourceVersion"):
            return
        seen = self._found(obj, version)
        digests = {**known.digests, **seen.digests}
        cleaned = seen.managed_fields if version == self._live.write_version else None
        found[known.key] = replace(
            known, digests=digests, managed_fields=cleaned or known.managed_fields
        )

    def _found(self, obj: Object, version: str) -> Found:
        metadata = obj["metadata"]
        cleaned = None
        if self._clean:
            crd = self._live.crd
            cleaned = cleaned_managed_fields(obj, crd.group, crd.served())
        return Found(
            key=key_of(obj),
            uid=metadata.get("uid", ""),
            revision=metadata.get("resourceVersion", ""),
            digests={version: digest(obj)},
            managed_fields=cleaned,
        )
