"""Migration controller: runs StorageVersionMigrations and reports their status.

Created by ``server/lifecycle/controller_setup.py``. The controller runs one migration at a time per
resource, oldest first, and several resources in parallel; upstream splits this over three
controllers. Writes are guarded by revision and safe to repeat, so several replicas may work on the
same migration. ``rewrite_batches.py`` rewrites the objects.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from instar.base.errors import ApiError, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.supervision import note_progress, rest
from instar.kube.api.names import GroupResource
from instar.kube.crds.conditions import with_condition
from instar.server.registry.controllers.migration_crd import MigratingCrd
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.controllers.rewrite_batches import RewriteBatches
from instar.server.registry.insight.census import ServerCensus
from instar.server.registry.kinds.migrations import (
    FAILED,
    RUNNING,
    SUCCEEDED,
    condition_is_true,
    is_paused,
    is_terminal,
)
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context, WriteOptions, timestamp
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.verbs.write import update
from instar.server.registry.verbs.write_request import Proposal, UpdateRules
from instar.wire.storage.watchcache.collection import Change

log = logging.getLogger(__name__)
_NEEDED = ("update", "patch", "list")
_DISCOVERY_SECONDS = 60.0
_PROGRESS_SECONDS = 5.0
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 30.0
_MOST_NAMED = 100
"""Number of failed objects that the status names."""
_BACKOFF = Backoff(_FIRST_DELAY, _LONGEST_DELAY)
_OPTIONS = WriteOptions(manager="storage-version-migrator-controller")
_STATUS = UpdateRules("status", unconditional=True, uid_is_precondition=False)


class MigrationController:
    """Runs the pending migrations, one queue key per resource."""

    def __init__(
        self, context: Context, catalog: Catalog, census: ServerCensus, migrations: Resource
    ) -> None:
        self._context = context
        self._catalog = catalog
        self._census = census
        self._migrations = migrations
        self._work: Queue[GroupResource] = Queue(
            "migration of", self._next_one, _BACKOFF, supervision=context.supervision
        )
        self._under_way: dict[str, _UnderWay] = {}

    def document(self) -> Object:
        """Return the body of ``/instar/migrations``: progress of this process's migrations."""
        now = self._context.now()
        return {name: found.document(now) for name, found in self._under_way.items()}

    def start(self) -> None:
        self._migrations.objects.observers.append(self._changed)
        self._context.backend.cache.on_reset(self._look_at_all)
        self._look_at_all()

    async def stop(self) -> None:
        await self._work.stop()

    def _changed(self, change: Change[CacheEntry]) -> None:
        for migration in _readable([change.new] if change.new is not None else []):
            self._work.add(_subject(migration))

    def _look_at_all(self) -> None:
        for migration in list(self._all()):
            self._work.add(_subject(migration))

    async def _next_one(self, subject: GroupResource) -> float | None:
        """Run one migration of the resource, then requeue for the next."""
        migration = self._next(subject)
        if migration is None:
            return None
        name = migration["metadata"]["name"]
        try:
            await self._reconcile(name, subject, migration)
        except _Paused:
            log.info("migration %s is paused, it continues when resumed", name)
        finally:
            self._under_way.pop(name, None)
        return 0.0

    def _next(self, subject: GroupResource) -> Object | None:
        """Return a running (or not yet finalised) migration, else the oldest pending one."""
        waiting = [
            item
            for item in self._all()
            if _subject(item) == subject
            and (condition_is_true(item, RUNNING) or not is_terminal(item))
            and (is_terminal(item) or not is_paused(item))
        ]
        return min(waiting, key=_queue_order, default=None)

    def _all(self) -> Iterator[Object]:
        return _readable(self._migrations.objects.entries.values())

    async def _reconcile(self, name: str, subject: GroupResource, migration: Object) -> None:
        crds = self._catalog.builtin("apiextensions.k8s.io", "customresourcedefinitions")
        crd = MigratingCrd(self._context, crds, self._census, str(subject))
        if not is_terminal(migration):
            begun = bool((migration.get("status") or {}).get("resourceVersion"))
            await crd.begin(name, resumed=begun)
            await self._write_status(name, self._running("The migration is running"))
            try:
                await self._migrate(name, subject, migration)
            except NotFound:
                await crd.end(succeeded=False)
                raise
        current = self._read(name)
        succeeded = current is not None and condition_is_true(current, SUCCEEDED)
        await crd.end(succeeded=succeeded)
        if current is not None:
            completed = ("False", "MigrationCompleted", "Migration completed")
            await self._write_status(name, self._condition(RUNNING, *completed))

    async def _migrate(self, name: str, subject: GroupResource, migration: Object) -> None:
        resource = await self._resource(subject, migration)
        if resource is None:
            await self._fail(name, "resource does not exist in discovery")
            return
        verbs = resource.serving.verbs
        if verbs is not None and not set(_NEEDED) <= set(verbs):
            text = (
                f'resource "{subject}" does not support discovery operations: [update patch list]'
            )
            await self._fail(name, text)
            return
        backlog = await RewriteBatches.of(self._context, resource, await self._checkpoint(name))
        self._under_way[name] = _UnderWay(backlog, self._context.now())
        await self._rewrite(name, subject, backlog)
        if backlog.failed:
            more = len(backlog.failed) - 1
            text = f"migration encountered unhandled error: {backlog.failed[0][1].message}"
            await self._fail(name, text + (f" (and {more} more objects)" if more else ""))
        else:
            succeeded = ("True", "StorageVersionMigrationSucceeded", "")
            await self._write_status(name, self._condition(SUCCEEDED, *succeeded))

    async def _rewrite(self, name: str, subject: GroupResource, backlog: RewriteBatches) -> None:
        loop = asyncio.get_running_loop()
        told, delay = loop.time(), _FIRST_DELAY
        while backlog.left:
            await self._raise_if_paused(name, backlog)
            if backlog.pending:
                await backlog.batch()
                note_progress()
            if self._catalog.find(*subject) is not backlog.resource:
                raise ApiError(f"{subject} was removed or replaced during the migration")
            round_over = bool(backlog.retry) and not backlog.pending
            if round_over or loop.time() - told >= _PROGRESS_SECONDS:
                await self._write_status(name, self._running(_progress(backlog)))
                told = loop.time()
            if round_over:
                await rest(delay)
                delay = min(delay * 2, _LONGEST_DELAY)
                backlog.next_round()

    async def _raise_if_paused(self, name: str, backlog: RewriteBatches) -> None:
        """Raise ``_Paused`` if requested. Rewritten objects stay; the rest is found by revision."""
        current = self._read(name)
        if current is not None and is_paused(current):
            text = f"The migration is paused: {backlog.left} objects not yet migrated"
            await self._write_status(
                name, self._condition(RUNNING, "False", "MigrationPaused", text)
            )
            raise _Paused

    async def _resource(self, subject: GroupResource, migration: Object) -> Resource | None:
        """Find the resource, waiting a moment for a CRD created right after its migration."""
        created = datetime.fromisoformat(migration["metadata"]["creationTimestamp"])
        while True:
            found = self._catalog.find(*subject)
            if found is not None:
                return found
            if (self._context.now() - created).total_seconds() > _DISCOVERY_SECONDS:
                return None
            await rest(_FIRST_DELAY)

    async def _checkpoint(self, name: str) -> int:
        """Return the revision up to which objects are rewritten, kept in the migration's status."""
        await self._context.backend.consistent()
        sample = str(self._context.backend.revision)

        def note(status: Object) -> Object:
            return {"resourceVersion": sample, **status}

        await self._write_status(name, note)
        current = self._read(name) or {}
        return int((current.get("status") or {}).get("resourceVersion") or sample)

    async def _fail(self, name: str, text: str) -> None:
        failed = ("True", "StorageVersionMigrationFailed", text)
        await self._write_status(name, self._condition(FAILED, *failed))

    def _running(self, text: str) -> Callable[[Object], Object]:
        return self._condition(RUNNING, "True", "MigrationRunning", text)

    def _condition(
        self, type: str, value: str, reason: str, message: str
    ) -> Callable[[Object], Object]:
        now = self._context.timestamp()
        return lambda status: with_condition(status, type, value, reason, message, now)

    def _read(self, name: str) -> Object | None:
        entry = self._migrations.objects.entries.get(name)
        return None if entry is None else entry.decode()

    async def _write_status(self, name: str, change: Callable[[Object], Object]) -> None:
        serving = self._migrations.serving
        target = Target(
            self._migrations, serving, self._migrations.codec, serving.storage, name=name
        )

        async def propose(old: Object, entry: CacheEntry) -> Proposal:
            return Proposal({**old, "status": change(old.get("status") or {})})

        await update(self._context, target, propose, _OPTIONS, _STATUS)


class _Paused(Exception):
    """The migration was paused by a user."""


@dataclass(frozen=True)
class _UnderWay:
    backlog: RewriteBatches
    began: datetime

    def document(self, now: datetime) -> Object:
        backlog = self.backlog
        done = backlog.total - backlog.left
        seconds = max((now - self.began).total_seconds(), 0.001)
        rate = done / seconds
        trouble = backlog.trouble
        return {
            "total": backlog.total,
            "left": backlog.left,
            "failed": len(backlog.failed),
            "failures": [
                {"object": suffix, "message": error.message}
                for suffix, error in backlog.failed[:_MOST_NAMED]
            ],
            "trouble": None if trouble is None else trouble.message,
            "started": timestamp(self.began),
            "seconds": round(seconds, 3),
            "perSecond": round(rate, 3),
            "secondsLeft": round(backlog.left / rate, 3) if rate else None,
        }


def _readable(entries: Iterable[CacheEntry]) -> Iterator[Object]:
    for entry in entries:
        with contextlib.suppress(UnreadableEntry):
            yield entry.decode()


def _progress(backlog: RewriteBatches) -> str:
    text = f"The migration is running: {backlog.left}/{backlog.total} objects not yet migrated"
    if backlog.trouble is not None:
        text += f"; transient error: {backlog.trouble.message}"
    return text


def _subject(migration: Object) -> GroupResource:
    asked = (migration.get("spec") or {}).get("resource") or {}
    return GroupResource(asked.get("group") or "", asked.get("resource") or "")


def _queue_order(migration: Object) -> tuple[bool, str, str]:
    metadata = migration["metadata"]
    running = condition_is_true(migration, RUNNING)
    return (not running, metadata.get("creationTimestamp", ""), metadata["name"])
