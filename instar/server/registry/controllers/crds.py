"""Brings every CRD to rest after a change: names, establishment, conditions, and clean-up.

One worker, one CRD at a time, each state a revision of its own, as upstream's controllers write
them. Every write is guarded by revision, so several replicas may do this side by side.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from instar.base import offload
from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.kube.api.crd import CLEANUP_FINALIZER, read_names
from instar.kube.crds.conditions import (
    TERMINATING,
    deletion_completed,
    deletion_failed,
    deletion_in_progress,
    deletion_skipped,
    deletion_unconfirmed,
    find_condition,
)
from instar.kube.crds.lifecycle import settling_states
from instar.kube.crds.name_acceptance import names_settled
from instar.kube.typed.reading import zero_object
from instar.server.registry.controllers.crd_pending import Restless
from instar.server.registry.controllers.crd_warm_up import IDLE_SECONDS, warm_up
from instar.server.registry.controllers.queue import Delays, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry
from instar.server.registry.stored.make_entry import new_entry
from instar.server.registry.verbs.delete import purge
from instar.server.registry.verbs.ownership import Ownership
from instar.wire.storage.store import Stale
from instar.wire.storage.watchcache.collection import Change

log = logging.getLogger(__name__)
_RETRY_SECONDS = 1.0
_DELAYS = Delays(_RETRY_SECONDS, _RETRY_SECONDS)
_ATTEMPTS = 10
_ARRIVING, _LEAVING = 10.0, 1.0
"""Seconds a writer waits for its CRD to be of use, and for a deleted one to be gone."""
_OURSELVES = WriteOptions(manager="kube-apiserver")
_CONFIRM_WITHIN = timedelta(seconds=60)
"""How long objects with finalizers may take before the CRD's condition says so."""
_SEEN_LEAVING = timedelta(seconds=2)
"""How long at least a CRD that somebody else holds is seen terminating: whoever deleted it looks
for that, and once its objects are gone new ones may be made again."""


class CrdController:
    def __init__(self, context: Context, catalog: Catalog, crds: Resource) -> None:
        self._context = context
        self._catalog = catalog
        self._crds = crds
        self._arrivals: Queue[str] = Queue("CRD", self._attend, _DELAYS, at_once=1)
        self._departures: Queue[str] = Queue("deleted CRD", self._leave, _DELAYS)
        """Apart: many objects take long to delete, and other CRDs do not wait."""
        self._deciding = asyncio.Lock()
        """Who gets a name is one decision at a time, until it is written."""
        self._arriving: set[str] = set()
        """Stored just now, with all that they come to."""
        self._changes = 0
        """So many were seen."""
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._restless = Restless(catalog, crds)
        self._warming: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._crds.objects.listeners.append(self._changed)
        self._context.backend.cache.on_reset(self._add_all)
        self._add_all()
        self._warming = asyncio.get_running_loop().create_task(self._warm_up())

    async def _warm_up(self) -> None:
        await asyncio.sleep(IDLE_SECONDS)
        await warm_up(self._context, self._crds)

    async def stop(self) -> None:
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.gather(self._warming, return_exceptions=True)
        await self._arrivals.stop()
        await self._departures.stop()

    async def store_new(self, draft: InMemoryEntry, crd: Object) -> CacheEntry:
        """With the states that it comes to in the same transaction, where the store can do that:
        watchers see them all, and the disk is waited for once."""
        backend, objects, name = self._context.backend, self._crds.objects, draft.suffix
        if not backend.chains or draft.token is not self._crds.serving.versions["v1"]:
            return await backend.put(objects, draft, 0)
        async with self._deciding:
            seen = self._changes
            states = await self._states(draft.size, crd, backend.revision + 1)
            drafts = [draft]
            for status in states:
                following, crd = await self._drafted(name, crd, status)
                drafts.append(following)
            if self._changes != seen or backend.under_way(objects):
                # Another process' CRD, which may want the same names, comes before this one. It
                # is decided there upon what came first, and so must this one be.
                return await backend.put(objects, draft, 0)
            self._arriving.add(name)
            try:
                return await backend.put_chain(objects, drafts, 0)
            finally:
                self._arriving.discard(name)

    async def at_rest(self, name: str) -> None:
        """Wait until the CRD has been brought to rest once, so that its writer can use it."""
        if self._restless.is_at_rest(name) and not self._arrivals.holds(name):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, []).append(future)
        self._arrivals.add(name)
        entry = self._crds.objects.entries.get(name)
        leaving = entry is None or b'"deletionTimestamp":"' in entry.view
        await asyncio.wait([future], timeout=_LEAVING if leaving else _ARRIVING)

    def _changed(self, change: Change[CacheEntry]) -> None:
        name = change.suffix
        self._changes += 1
        self._restless.note(name)
        if change.new is None:
            self._add_waiting(name.partition(".")[2])
        elif name not in self._arriving and not self._restless.is_at_rest(name):
            self._arrivals.add(name)

    def _add_all(self) -> None:
        for name in self._restless.look_at_all():
            self._arrivals.add(name)

    def _add_waiting(self, group: str) -> None:
        for name in self._restless.unnamed(group):
            self._arrivals.add(name)

    async def _attend(self, name: str) -> None:
        try:
            await self._insist(name)
        except (Stale, ApiError):
            raise
        except Exception:
            self._release_writers(name)
            raise
        if not self._departures.holds(name):
            self._release_writers(name)

    def _release_writers(self, name: str) -> None:
        for future in self._waiting.pop(name, []):
            if not future.done():
                future.set_result(None)

    async def _leave(self, name: str) -> float | None:
        entry = self._crds.objects.entries.get(name)
        try:
            if entry is None:
                return None
            gone = await self._tear_down(name, entry, await self._read(entry))
            return None if gone else _RETRY_SECONDS
        except Stale:
            self._arrivals.add(name)
            return None
        finally:
            self._release_writers(name)

    async def _insist(self, name: str) -> None:
        """Who loses a race to another replica looks again at once: its client is waiting."""
        for _ in range(_ATTEMPTS):
            await self._context.backend.consistent()
            try:
                async with self._deciding:
                    return await self._bring_to_rest(name)
            except Stale as error:
                log.debug("another replica was faster: %s", error)
        raise Stale(name, 0, 0)

    async def _bring_to_rest(self, name: str) -> None:
        entry = self._crds.objects.entries.get(name)
        if entry is None:
            return
        crd = await self._read(entry)
        states = await self._states(entry.size, crd, entry.revision)
        for status in states:
            entry, crd = await self._write(entry, crd, status)
        if states:
            self._add_waiting(crd["spec"]["group"])
            self._arrivals.drop(name)
        if _is_leaving(crd):
            self._departures.add(name)

    async def _states(self, size: int, crd: Object, revision: int) -> list[Object]:
        """What the status becomes, one after the other; ``revision`` is the CRD's."""
        others: list[Object] = []
        if not names_settled(crd):
            name, wanted = crd["metadata"]["name"], read_names(crd["spec"].get("names") or {})
            others = self._restless.rivals(name, wanted, revision)
        now = self._context.timestamp()
        return await offload.run(size, lambda: settling_states(crd, others, now))

    async def _tear_down(self, name: str, entry: CacheEntry, crd: Object) -> bool:
        """A deleted CRD takes its objects with it, then loses its finalizer; False: not yet."""
        if not _is_leaving(crd):
            return True
        now = self._context.timestamp
        begun = deletion_in_progress(crd["status"], now())
        if not _tried(crd["status"]) and begun != crd["status"]:
            entry, crd = await self._write(entry, crd, begun)
        skipped = deletion_skipped(crd, now())
        if skipped is not None:
            await self._release(entry, crd, skipped)
            return True
        resource = self._catalog.custom(name)
        failure: Callable[[], Object] | None = None
        current = self._crds.objects.entries.get(name)
        if current is None or current.revision != entry.revision:
            # Another replica went on with it: what is there now may be a CRD made anew.
            raise Stale(name, entry.revision, 0)
        if resource is not None:
            failure = await self._purge(resource, crd)
        if failure is not None:
            status = failure()
            if status != crd["status"]:
                await self._write(entry, crd, status)
            return False
        if _is_held(crd) and self._context.now() - _marked(crd) < _SEEN_LEAVING:
            return False
        await self._release(entry, crd, deletion_completed(crd["status"], now()))
        return True

    async def _purge(self, resource: Resource, crd: Object) -> Callable[[], Object] | None:
        """None when nothing is left; else what to write as the reason."""
        serving = resource.serving
        target = Target(resource, serving, resource.codec, serving.storage)
        now = self._context.timestamp
        try:
            await purge(self._context.backend, self._context, target)
            await self._context.backend.consistent()
        except ApiError as error:
            text = f"could not issue all deletes: {error.message}"
            return lambda: deletion_failed(crd["status"], text, now())
        if not resource.objects.entries:
            return None
        if self._context.now() - _marked(crd) < _CONFIRM_WITHIN:
            return lambda: crd["status"]
        return lambda: deletion_unconfirmed(crd["status"], "context deadline exceeded", now())

    async def _release(self, entry: CacheEntry, crd: Object, status: Object) -> None:
        finalizers = [f for f in crd["metadata"]["finalizers"] if f != CLEANUP_FINALIZER]
        if not finalizers:
            await self._context.backend.remove(self._crds.objects, entry.suffix, entry.revision)
            return
        metadata = {**crd["metadata"], "finalizers": finalizers}
        await self._write(entry, {**crd, "metadata": metadata}, status)

    async def _read(self, entry: CacheEntry) -> Object:
        codec, serving = self._crds.codec, self._crds.serving
        return (await codec.objects([entry], serving.versions["v1"]))[0]

    async def _write(
        self, entry: CacheEntry, crd: Object, status: Object
    ) -> tuple[CacheEntry, Object]:
        draft, new = await self._drafted(entry.suffix, crd, status)
        written = await self._context.backend.put(self._crds.objects, draft, entry.revision)
        if draft.token is not None:
            written.token = draft.token
        return written, new

    async def _drafted(
        self, name: str, crd: Object, status: Object
    ) -> tuple[InMemoryEntry, Object]:
        """The CRD with that status, on its way. The fields of a status belong to whoever wrote it,
        and this server is as good a manager as any. They are told from those that a CRD shows
        before anybody has written one."""
        version = self._crds.serving.versions["v1"]
        unset = zero_object(version.api_version, version.kind)["status"]
        live = {**crd, "status": {**unset, **crd["status"]}}
        new = {**crd, "metadata": dict(crd["metadata"]), "status": status}
        target = Target(self._crds, self._crds.serving, self._crds.codec, version)
        ownership = Ownership(self._context, target, _OURSELVES, "status")
        await ownership.on_update(new, live, None)
        draft = new_entry(await self._crds.codec.prepare(new, version), name)
        if version is self._crds.serving.storage:
            draft.token = version  # made of what was read, so that it reads the same again
        return draft, new


def _is_leaving(crd: Object) -> bool:
    metadata = crd["metadata"]
    finalizers = metadata.get("finalizers") or ()
    return bool(metadata.get("deletionTimestamp")) and CLEANUP_FINALIZER in finalizers


def _is_held(crd: Object) -> bool:
    return len(crd["metadata"]["finalizers"]) > 1


def _marked(crd: Object) -> datetime:
    return datetime.fromisoformat(crd["metadata"]["deletionTimestamp"])


def _tried(status: Object) -> bool:
    """Whether the condition already tells of a failed try: saying "in progress" again at each
    would be two writes a second for as long as an object is held."""
    condition = find_condition(status, TERMINATING) or {}
    return condition.get("reason") in ("InstanceDeletionFailed", "InstanceDeletionCheck")
