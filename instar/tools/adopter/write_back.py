"""Writes the objects that changed in instar through the main cluster's API (return without etcd).

``return_group.py`` calls it after the flip, under a policy that lets this writer alone write.
Objects that the main cluster has keep their uid and are updated in place; a created one gets a uid
of its own, and owner references inside the group are rewritten to it. generation and
deletionTimestamp are the main cluster's.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from instar.base.errors import AlreadyExists, Conflict, Forbidden, NotFound
from instar.base.json_values import Object
from instar.tools.adopter.adoption_client import AdoptionClient
from instar.tools.adopter.moved_group import MovedCrd, MovedGroup, key_of
from instar.tools.adopter.owner_references import rewritten
from instar.wire.client.client import Client

_ATTEMPTS = 100
_PAUSE = 0.05
_SERVERS = (
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "generation",
    "selfLink",
    "managedFields",
)
_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")


class WriteBack:
    """One return: the numbers of objects written, and the new uid of each created object."""

    def __init__(self, client: Client, adoption: AdoptionClient, manager: str, floor: int) -> None:
        """Only objects written in instar after the revision ``floor`` can differ."""
        self._client, self._adoption, self._manager = client, adoption, manager
        self._floor = floor
        self.renamed: dict[str, str] = {}
        self.updated = self.created = self.removed = 0

    async def run(self, group: MovedGroup) -> None:
        """Create what is new (owners first), update what differs, remove what is gone."""
        waiting = [
            (crd, obj) async for crd, obj in self._wanted(group) if not await self._update(crd, obj)
        ]
        while waiting:
            fresh = {obj["metadata"]["uid"] for _, obj in waiting}
            ready = [item for item in waiting if not _owners(item[1]) & fresh] or waiting
            for crd, obj in ready:
                await self._create(crd, obj)
            done = {obj["metadata"]["uid"] for _, obj in ready}
            waiting = [item for item in waiting if item[1]["metadata"]["uid"] not in done]
        await self._repoint(group)
        for crd in group.crds:
            await self._remove_gone(crd)

    async def _wanted(self, group: MovedGroup) -> Any:
        for crd in group.crds:
            async for page in self._adoption.objects(crd.plural, crd.read_version, self._floor):
                for obj in page:
                    yield crd, obj

    async def _update(self, crd: MovedCrd, wanted: Object) -> bool:
        """Make an object of the main cluster equal; False if it does not have this object."""
        path = crd.path(crd.read_version, key_of(wanted))
        for _ in range(_ATTEMPTS):
            try:
                live = await self._client.get(path)
            except NotFound:
                return False
            if live["metadata"]["uid"] != wanted["metadata"]["uid"]:
                if live["metadata"]["uid"] in self.renamed.values():
                    return True  # created by an earlier run of this return
                await self._delete(crd, live)
                continue
            if _same(live, wanted):
                return True
            try:
                await self._make_equal(crd, path, live, wanted)
            except (Conflict, Forbidden):  # an API server may still enforce the policy of before
                await asyncio.sleep(_PAUSE)
                continue
            self.updated += 1
            return True
        raise Conflict(f"{path} is being written by another client")

    async def _make_equal(self, crd: MovedCrd, path: str, live: Object, wanted: Object) -> None:
        """Write content, then status, then the owners of fields, which the writes changed."""
        metadata = {
            **_given(wanted),
            **{k: live["metadata"][k] for k in _SERVERS if k in live["metadata"]},
        }
        body = {**wanted, "metadata": metadata}
        now = await self._put(path, body)
        if crd.read_version in crd.with_status and now.get("status") != wanted.get("status"):
            revision = {**metadata, "resourceVersion": now["metadata"]["resourceVersion"]}
            now = await self._put(f"{path}/status", {**body, "metadata": revision})
        owners = wanted["metadata"].get("managedFields")
        if owners and now["metadata"].get("managedFields") != owners:
            restored = {**now, "metadata": {**now["metadata"], "managedFields": owners}}
            now = await self._put(path, restored)
        if "deletionTimestamp" in wanted["metadata"] and "deletionTimestamp" not in now["metadata"]:
            await self._delete(crd, now, keep_finalizers=True)

    async def _create(self, crd: MovedCrd, wanted: Object) -> None:
        metadata = _given(wanted)
        if references := metadata.get("ownerReferences"):
            metadata["ownerReferences"] = rewritten(references, self.renamed)
        body = {**wanted, "metadata": metadata}
        key = key_of(wanted)
        try:
            made = await self._insistently(
                lambda: self._client.post(
                    crd.collection_path(crd.read_version, key), body, fieldManager=self._manager
                )
            )
            self.created += 1
        except AlreadyExists:
            made = await self._client.get(crd.path(crd.read_version, key))
        self.renamed[wanted["metadata"]["uid"]] = made["metadata"]["uid"]
        same = {
            **wanted,
            "metadata": {**wanted["metadata"], "ownerReferences": metadata.get("ownerReferences")},
        }
        if same["metadata"]["ownerReferences"] is None:
            del same["metadata"]["ownerReferences"]
        path = crd.path(crd.read_version, key)
        await self._insistently(lambda: self._make_equal(crd, path, made, same))

    async def _repoint(self, group: MovedGroup) -> None:
        """Name the new uids in objects of the group that were there before."""
        if not self.renamed:
            return
        async for crd, wanted in self._wanted(group):
            references = wanted["metadata"].get("ownerReferences") or []
            if not _owners(wanted) & self.renamed.keys():
                continue
            path = crd.path(crd.read_version, key_of(wanted))
            body = {"metadata": {"ownerReferences": rewritten(references, self.renamed)}}
            write = partial(self._client.patch, path, body, fieldManager=self._manager)
            await self._insistently(write)

    async def _remove_gone(self, crd: MovedCrd) -> None:
        there = await self._adoption.keys(crd.plural)
        async for page in self._client.metadata_pages(crd.path(crd.read_version)):
            for item in page.get("items") or ():
                if key_of(item) not in there:
                    await self._delete(crd, item)
                    self.removed += 1

    async def _delete(self, crd: MovedCrd, obj: Object, *, keep_finalizers: bool = False) -> None:
        """Delete; without ``keep_finalizers`` also what would wait for them: it is gone already."""
        path = crd.path(crd.read_version, key_of(obj))
        if obj["metadata"].get("finalizers") and not keep_finalizers:
            without = {"metadata": {"finalizers": None}}
            await self._insistently(
                lambda: self._client.patch(path, without, fieldManager=self._manager)
            )
        uid = {"uid": obj["metadata"]["uid"]}
        body = {"propagationPolicy": "Background", "preconditions": uid}
        try:
            await self._insistently(lambda: self._client.delete(path, body))
        except NotFound:
            return

    async def _put(self, path: str, body: Object) -> Object:
        return await self._client.put(path, body, fieldManager=self._manager)

    async def _insistently(self, call: Any) -> Any:
        """Repeat a write while an API server still enforces the policy without the exemption."""
        for _ in range(_ATTEMPTS):
            try:
                return await call()
            except Forbidden:
                await asyncio.sleep(_PAUSE)
        return await call()


def _given(obj: Object) -> Object:
    left_out = (*_SERVERS, *_DELETION)
    return {name: value for name, value in obj["metadata"].items() if name not in left_out}


def _owners(obj: Object) -> set[str]:
    return {each["uid"] for each in obj["metadata"].get("ownerReferences") or ()}


def _same(live: Object, wanted: Object) -> bool:
    """Return whether only what the server counts differs."""
    counted = ("resourceVersion", "generation")

    def shown(obj: Object) -> Object:
        kept = {name: value for name, value in obj["metadata"].items() if name not in counted}
        return {**obj, "metadata": kept}

    return shown(live) == shown(wanted)
