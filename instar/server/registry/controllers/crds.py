"""CRD controller: reconciles names, conditions and clean-up of every CRD after a change.

Created by ``server/lifecycle/controller_setup.py``. One worker handles one CRD at a time and writes
each state as its own revision, like upstream's controllers. ``kube/crds/lifecycle.py`` decides the
states. Every write is guarded by revision, so several replicas may reconcile concurrently.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from instar.base import offload
from instar.base.errors import ApiError
from instar.base.json_values import Object, same_json
from instar.base.supervision import SupervisedTask, rest
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
from instar.kube.crds.lifecycle import status_sequence
from instar.kube.crds.name_acceptance import names_settled
from instar.kube.typed.reading import zero_object
from instar.server.registry.controllers.crd_pending import PendingCrds
from instar.server.registry.controllers.crd_warm_up import IDLE_SECONDS, warm_up
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry
from instar.server.registry.stored.make_entry import new_entry
from instar.server.registry.verbs.delete_many import purge
from instar.server.registry.verbs.ownership import Ownership
from instar.wire.storage.store import Stale
from instar.wire.storage.watchcache.collection import Change

log = logging.getLogger(__name__)
_RETRY_SECONDS = 1.0
_BACKOFF = Backoff(_RETRY_SECONDS, _RETRY_SECONDS)
_ATTEMPTS = 10
_ARRIVING, _LEAVING = 10.0, 1.0
"""Seconds that a write request waits for its CRD to be established, or deleted."""
_OURSELVES = WriteOptions(manager="kube-apiserver")
_CONFIRM_WITHIN = timedelta(seconds=60)
"""How long objects with finalizers may take before the CRD's condition reports it."""
_SEEN_LEAVING = timedelta(seconds=2)
"""How long a CRD with a foreign finalizer is visibly terminating at least, because the client that
deleted it looks for that, and once its objects are gone new ones may be created."""


class CrdController:
    """Reconciles CRDs; write requests wait on it through ``wait_until_reconciled``."""

    def __init__(self, context: Context, catalog: Catalog, crds: Resource) -> None:
        self._context = context
        self._catalog = catalog
        self._crds = crds
        self._arrivals: Queue[str] = Queue(
            "CRD", self._reconcile, _BACKOFF, max_concurrent=1, supervision=context.supervision
        )
        self._departures: Queue[str] = Queue(
            "deleted CRD", self._leave, _BACKOFF, supervision=context.supervision
        )
        """A separate queue: deleting many objects takes long and must not delay other CRDs."""
        self._deciding = asyncio.Lock()
        """Serialises name decisions until they are written."""
        self._arriving: set[str] = set()
        """CRDs just stored together with their final status."""
        self._changes = 0
        """Number of CRD changes seen so far."""
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._restless = PendingCrds(catalog, crds)
        self._warming: SupervisedTask | None = None

    def start(self) -> None:
        self._crds.objects.observers.append(self._changed)
        self._context.backend.cache.on_reset(self._add_all)
        self._add_all()
        self._warming = self._context.supervision.keep("crd-warm-up", self._warm_up)

    async def _warm_up(self) -> None:
        await rest(IDLE_SECONDS)
        await warm_up(self._context, self._crds)

    async def stop(self) -> None:
        if self._warming is not None:
            await self._warming.stop()
        await self._arrivals.stop()
        await self._departures.stop()

    async def store_new(self, draft: InMemoryEntry, crd: Object) -> CacheEntry:
        """Store a new CRD with all its status states in one transaction, if the store supports
        that. Watchers see every state, and the disk is waited for once."""
        backend, objects, name = self._context.backend, self._crds.objects, draft.suffix
        if not backend.chains or draft.token is not self._crds.serving.versions["v1"]:
            return await backend.put(objects, draft, 0)
        async with self._deciding:
            seen = self._changes
            states = await self._states(draft.size, crd, backend.revision + 1)
            drafts = [draft]
            for status in states:
                following, crd = await self._draft_status(name, crd, status)
                drafts.append(following)
            if self._changes != seen or backend.under_way(objects):
                # A CRD of another process, which may request the same names, comes first. That
                # process decides by what was stored first, and so must this one.
                return await backend.put(objects, draft, 0)
            self._arriving.add(name)
            try:
                return await backend.put_chain(objects, drafts, 0)
            finally:
                self._arriving.discard(name)

    async def wait_until_reconciled(self, name: str) -> None:
        """Wait until the CRD has been reconciled once, so that its writer can use it."""
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
        for name in self._restless.waiting_for_name(group):
            self._arrivals.add(name)

    async def _reconcile(self, name: str) -> None:
        try:
            await self._reconcile_with_retries(name)
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

    async def _reconcile_with_retries(self, name: str) -> None:
        """Reconcile with immediate retries after a conflict with another replica, since a client
        waits."""
        for _ in range(_ATTEMPTS):
            await self._context.backend.consistent()
            try:
                async with self._deciding:
                    return await self._reconcile_once(name)
            except Stale as error:
                log.debug("another replica was faster: %s", error)
        raise Stale(name, 0, 0)

    async def _reconcile_once(self, name: str) -> None:
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
        """Return the successive statuses; ``revision`` is the CRD's."""
        others: list[Object] = []
        if not names_settled(crd):
            name, wanted = crd["metadata"]["name"], read_names(crd["spec"].get("names") or {})
            others = self._restless.rivals(name, wanted, revision)
        now = self._context.timestamp()
        return await offload.run(size, lambda: status_sequence(crd, others, now))

    async def _tear_down(self, name: str, entry: CacheEntry, crd: Object) -> bool:
        """Delete a terminating CRD's objects, then its finalizer; return False if objects are
        left."""
        if not _is_leaving(crd):
            return True
        now = self._context.timestamp
        begun = deletion_in_progress(crd["status"], now())
        if not _has_failed_attempt(crd["status"]) and begun != crd["status"]:
            entry, crd = await self._write(entry, crd, begun)
        skipped = deletion_skipped(crd, now())
        if skipped is not None:
            await self._release(entry, crd, skipped)
            return True
        resource = self._catalog.custom(name)
        failure: Callable[[], Object] | None = None
        current = self._crds.objects.entries.get(name)
        if current is None or current.revision != entry.revision:
            # Another replica went on with it; the current one may be a CRD created anew.
            raise Stale(name, entry.revision, 0)
        if resource is not None:
            failure = await self._purge(resource, crd)
        if failure is not None:
            status = failure()
            if not same_json(status, crd["status"]):
                await self._write(entry, crd, status)
            return False
        if _is_held(crd) and self._context.now() - _deletion_time(crd) < _SEEN_LEAVING:
            return False
        await self._release(entry, crd, deletion_completed(crd["status"], now()))
        return True

    async def _purge(self, resource: Resource, crd: Object) -> Callable[[], Object] | None:
        """Delete the objects; return None when none is left, else how to write the reason."""
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
        if self._context.now() - _deletion_time(crd) < _CONFIRM_WITHIN:
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
        draft, new = await self._draft_status(entry.suffix, crd, status)
        written = await self._context.backend.put(self._crds.objects, draft, entry.revision)
        if draft.token is not None:
            written.token = draft.token
        return written, new

    async def _draft_status(
        self, name: str, crd: Object, status: Object
    ) -> tuple[InMemoryEntry, Object]:
        """Return the CRD with that status as a draft to store. Managed fields are attributed to
        this server: what it changed compared with the unset status that a new CRD shows."""
        version = self._crds.serving.versions["v1"]
        unset = zero_object(version.api_version, version.kind)["status"]
        live = {**crd, "status": {**unset, **crd["status"]}}
        new = {**crd, "metadata": dict(crd["metadata"]), "status": status}
        target = Target(self._crds, self._crds.serving, self._crds.codec, version)
        ownership = Ownership(self._context, target, _OURSELVES, "status")
        await ownership.on_update(new, live)
        draft = new_entry(await self._crds.codec.prepare(new, version), name)
        if version is self._crds.serving.storage:
            draft.token = version  # built from decoded data of this version, so it decodes the same
        return draft, new


def _is_leaving(crd: Object) -> bool:
    metadata = crd["metadata"]
    finalizers = metadata.get("finalizers") or ()
    return bool(metadata.get("deletionTimestamp")) and CLEANUP_FINALIZER in finalizers


def _is_held(crd: Object) -> bool:
    return len(crd["metadata"]["finalizers"]) > 1


def _deletion_time(crd: Object) -> datetime:
    return datetime.fromisoformat(crd["metadata"]["deletionTimestamp"])


def _has_failed_attempt(status: Object) -> bool:
    """Return whether the condition already reports a failed attempt. Writing "in progress" before
    each retry would be two writes a second while an object has a finalizer."""
    condition = find_condition(status, TERMINATING) or {}
    return condition.get("reason") in ("InstanceDeletionFailed", "InstanceDeletionCheck")
