"""Quota controller: keeps ``status.hard`` and ``status.used`` of ResourceQuotas current.

Created by ``server/lifecycle/controller_setup.py``; only the leader acts. A namespace with a quota
is recounted when something in it changes. Where a real kube-controller-manager recounts, which it
does after deletions and every few minutes, this controller only raises ``status.used``: that is the
part of kube-apiserver, which writes what a create or an update takes.
"""

from __future__ import annotations

from instar.base.json_values import Object, same_json
from instar.kube.builtin_rules.pods.compute_resources import quantity_value
from instar.server.registry.admission.plugins.limit_ranger import amount_text
from instar.server.registry.admission.plugins.quota.quota_usage import counts
from instar.server.registry.admission.plugins.quota.usage_totals import (
    Usage,
    UsageTotals,
    selection,
)
from instar.server.registry.controllers.leadership import Leadership
from instar.server.registry.controllers.manager_lease import ManagerLease
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.stored.make_entry import put_server_object
from instar.wire.storage.watchcache.collection import Change

_BACKOFF = Backoff(0.2, 30.0)


class QuotaController:
    """Recounts usage per namespace."""

    def __init__(
        self,
        context: Context,
        catalog: Catalog,
        leadership: Leadership,
        manager: ManagerLease,
        *,
        recounts: bool = True,
    ) -> None:
        """``recounts``: whether ``--controllers`` names it; else it is as beside a manager."""
        self._context, self._catalog = context, catalog
        self._leadership, self._manager, self._recounts = leadership, manager, recounts
        self._quotas = catalog.builtin("", "resourcequotas")
        self._totals = UsageTotals(context.backend)
        self._held: dict[str, int] = {}
        """Number of quotas per namespace."""
        self._changed: Queue[str] = Queue(
            "quotas of namespace",
            self._count,
            _BACKOFF,
            max_concurrent=1,
            supervision=context.supervision,
        )

    def start(self) -> None:
        self._quotas.objects.observers.append(self._quota_changed)
        for resource in self._catalog.resources():
            self._follow(resource)
        self._catalog.on_opened(self._follow)
        self._context.backend.cache.on_reset(self._look_at_all)
        self._leadership.on_elected(self._elected)
        self._manager.on_released(self._elected)
        self._look_at_all()

    async def stop(self) -> None:
        await self._changed.stop()

    async def _elected(self) -> None:
        self._look_at_all()

    def _look_at_all(self) -> None:
        self._held.clear()
        for suffix in self._quotas.objects.entries:
            namespace = suffix.partition("/")[0]
            self._held[namespace] = self._held.get(namespace, 0) + 1
            self._changed.add(namespace)

    def _quota_changed(self, change: Change[CacheEntry]) -> None:
        namespace = change.suffix.partition("/")[0]
        grown = (change.new is not None) - (change.old is not None)
        if grown:
            self._held[namespace] = self._held.get(namespace, 0) + grown
        if not self._held.get(namespace):
            self._held.pop(namespace, None)
        if change.new is not None:
            self._changed.add(namespace)

    def _follow(self, resource: Resource) -> None:
        if resource.serving.namespaced and resource is not self._quotas:
            resource.follow(self._object_changed)

    def _object_changed(self, change: Change[CacheEntry]) -> None:
        if self._held and change.suffix.partition("/")[0] in self._held:
            self._changed.add(change.suffix.partition("/")[0])

    async def _count(self, namespace: str) -> None:
        if not self._leadership.leads:
            return
        for suffix in list(self._quotas.objects.suffixes(f"{namespace}/")):
            entry = self._quotas.objects.entries.get(suffix)
            if entry is not None:
                await self._report(entry, namespace)

    async def _report(self, entry: CacheEntry, namespace: str) -> None:
        try:
            quota = entry.decode()
        except UnreadableEntry:
            return
        hard = dict((quota.get("spec") or {}).get("hard") or {})
        amounts = await self._used(quota, namespace, hard)
        counted = {name: amount_text(name, amount) for name, amount in amounts.items()}
        # A name that nothing here counts keeps the value that another controller has written.
        before = (quota.get("status") or {}).get("used") or {}
        used = {name: before[name] for name in hard if name in before} | counted
        status = {"hard": hard, "used": dict(sorted(used.items()))} if hard else {}
        if self._manager.is_held or not self._recounts:
            status = _raised(quota.get("status") or {}, hard, amounts)
        if (quota.get("status") or {}) != status:
            quota["status"] = status
            backend = self._context.backend
            await put_server_object(backend, self._quotas, entry.suffix, quota, entry.revision)

    async def _used(self, quota: Object, namespace: str, hard: Object) -> Usage:
        found: Usage = {}
        for resource in self._catalog.resources():
            serving = resource.serving
            place = (serving.group, serving.plural)
            if not serving.namespaced or serving.stored_in:
                continue
            names = [name for name in hard if counts(place, name)]
            if names:
                wanted = selection(place, namespace, names, quota)
                found |= await self._totals.of(resource.objects, wanted)
        return found


def _raised(status: Object, hard: Object, amounts: Usage) -> Object:
    """The status with what more is used than it says; as it is, until the controller that recounts
    has taken in the limits."""
    if not same_json(status.get("hard"), hard):
        return status
    before = status.get("used") or {}
    raised = {
        name: amount_text(name, amount)
        for name, amount in amounts.items()
        if name in before and amount > quantity_value(before[name])
    }
    return {**status, "used": {**before, **raised}} if raised else status
