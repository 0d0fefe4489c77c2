"""Compares every object at every served version on both sides.

Before the freeze (``compare``) most objects are compared while clients write; under the freeze
(``settle``) only those that changed since. After the flip (``changed_by_move``) each object is read
through the main cluster and compared with what it was there before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable

from instar.base.errors import NotFound
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.tools.adopter.adoption_client import AdoptionClient
from instar.tools.adopter.digests import ObjectDigest, digest_of
from instar.tools.adopter.errors import AdoptError
from instar.tools.adopter.moved_group import MovedCrd, key_of, revision_of
from instar.tools.adopter.shadow_copy import ShadowCopy
from instar.wire.client.client import Client

_PAGE = 500
_AT_ONCE = 16
_SHOWN = 5
_ATTEMPTS = 5
_PAUSE = 0.2
Seen = dict[str, ObjectDigest]


class SideComparison:
    """The objects of one CRD, on both sides."""

    def __init__(self, client: Client, adoption: AdoptionClient, shadow: ShadowCopy) -> None:
        self._client, self._adoption, self._shadow = client, adoption, shadow
        self._crd: MovedCrd = shadow.crd
        self._seen: dict[str, Seen] = {version: {} for version in self._crd.served}
        """By version and key: what was equal on both sides, at the main cluster's revision."""

    async def compare(self) -> None:
        """Compare all objects. Raises ``AdoptError`` for what differs and is not being written."""
        for version in self._crd.served:
            here = await self._of_main(version)
            there: Seen = {}
            async for page in self._adoption.objects(self._crd.plural, version):
                there.update((key_of(obj), digest_of(obj)) for obj in page)
            equal = {
                key: found
                for key, found in here.items()
                if key in there and there[key].digest == found.digest
            }
            self._seen[version] = equal
            index = self._shadow.index
            copied = {
                key
                for key in set(here) - set(equal)
                if key in index and index[key].revision == here[key].revision
            }
            await self._recheck(version, copied, still=False)  # the rest is on its way

    async def settle(self) -> int:
        """Under the freeze, compare what changed since ``compare``; return the number of objects
        compared anew."""
        anew = 0
        for version, seen in self._seen.items():
            index = self._shadow.index
            for key in set(seen) - set(index):
                del seen[key]
            late = {
                key
                for key, found in index.items()
                if key not in seen or seen[key].revision != found.revision
            }
            anew += len(late)
            await self._recheck(version, late, still=True)
        return anew

    async def changed_by_move(self, floor: int) -> list[str]:
        """Return objects that instar shows otherwise than the main cluster did, through the
        aggregation layer; those written since (above ``floor``) are left out."""
        wrong: list[str] = []
        for version, seen in self._seen.items():
            missing = set(seen)
            async for page in self._client.pages(self._crd.path(version), limit=_PAGE):
                for obj in page.get("items") or ():
                    key, found = key_of(obj), digest_of(obj)
                    missing.discard(key)
                    same = key in seen and seen[key].digest == found.digest
                    if not same and revision_of(obj) <= floor:
                        wrong.append(f"{self._crd.name} {key} at {version}")
            wrong += [f"{self._crd.name} {key} at {version}" for key in await self._lost(missing)]
        return wrong

    async def _lost(self, keys: set[str]) -> list[str]:
        """Of keys that are gone, return those that no client deleted since: none can be told from
        those, so each is looked up in what instar remembers."""
        if not keys:
            return []
        document = await self._adoption.document()
        deleted = int(document["since"]["deleted"])
        return [] if len(keys) <= deleted else sorted(keys)

    async def _of_main(self, version: str) -> Seen:
        found: Seen = {}
        async for page in self._client.pages(self._crd.path(version), limit=_PAGE):
            for obj in page.get("items") or ():
                obj.setdefault("apiVersion", f"{self._crd.group}/{version}")
                obj.setdefault("kind", self._crd.kind)
                found[key_of(obj)] = digest_of(obj)
        return found

    async def _recheck(self, version: str, keys: Iterable[str], *, still: bool) -> None:
        turns = asyncio.Semaphore(_AT_ONCE)

        async def differs(key: str) -> bool:
            async with turns:
                return await self._differs(version, key, still=still)

        named = sorted(keys)
        answers = await asyncio.gather(*map(differs, named))
        wrong = [key for key, is_other in zip(named, answers, strict=True) if is_other]
        if wrong:
            listed = ", ".join(wrong[:_SHOWN]) + (", …" if len(wrong) > _SHOWN else "")
            raise AdoptError(
                f"instar and the main cluster show {counted(len(wrong), 'object')} of "
                f"{self._crd.name} differently at {version}: {listed}"
            )

    async def _differs(self, version: str, key: str, *, still: bool) -> bool:
        """Look a few times: an object that a client just wrote may be on its way. Unless ``still``
        an object that is written all the time is left for later."""
        copied = None
        for attempt in range(_ATTEMPTS if still else 2):
            if attempt:
                await asyncio.sleep(_PAUSE)
            copied = self._shadow.index.get(key)
            here = await self._read(self._client.get(self._crd.path(version, key)))
            there = await self._read(self._adoption.object(self._crd.plural, version, key))
            if here is None:
                return False  # deleted meanwhile: the shadow removes it, or reconcile does
            if there is not None and here.digest == there.digest:
                self._seen[version][key] = here
                return False
            is_copied = copied is not None and copied.revision == here.revision
            if is_copied and attempt and self._shadow.index.get(key) == copied:
                return True
        return still

    async def _read(self, answer: Awaitable[Object]) -> ObjectDigest | None:
        try:
            return digest_of(await answer)
        except NotFound:
            return None
