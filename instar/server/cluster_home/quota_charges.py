"""Charges the main cluster's ResourceQuotas with the objects that are stored here.

``home.py`` runs it. kube-controller-manager counts aggregated objects only now and then, because
the admission of a create is expected to raise ``status.used``. Admission here counts the stored
objects themselves (``registry/admission/plugins/quota``); this module tells the main cluster the
number a moment later, once for all creates and deletions of that moment.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import NamedTuple

from instar.base.errors import ApiError, NotFound
from instar.base.json_values import Object
from instar.base.supervision import report_failure, rest, resting
from instar.server.cluster_home.main_cluster import MainCluster
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.admission.plugins.quota.quota_usage import count_name
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.client.paths import resource_path
from instar.wire.storage.keys import collection_prefix
from instar.wire.storage.watchcache.collection import Change

_PAUSE_SECONDS = 1.0
"""Changes within this time are charged together."""


class _Charge(NamedTuple):
    resource: Resource
    namespace: str


class QuotaCharges:
    """Keeps ``status.used`` of quotas that count our objects current."""

    def __init__(self, cluster: MainCluster, mirror: Backend, catalog: Catalog) -> None:
        self._cluster, self._catalog = cluster, catalog
        self._quotas = Lookup(mirror, "", "resourcequotas")
        self._stored_quotas = mirror.collection(collection_prefix("", "resourcequotas"))
        self._due: dict[tuple[str, str], _Charge] = {}
        self._changed = asyncio.Event()

    def follow(self) -> None:
        """Follow the quotas, and the objects of every served resource."""
        self._stored_quotas.observers.append(self._note_quota)
        self._catalog.on_opened(self._follow)
        for resource in self._catalog.customs():
            self._follow(resource)

    def _follow(self, resource: Resource) -> None:
        if resource.serving.namespaced:
            resource.follow(partial(self._note, resource))

    def _note(self, resource: Resource, change: Change[CacheEntry]) -> None:
        if (change.old is None) != (change.new is None):  # else the number is the same
            self._add(resource, change.suffix.partition("/")[0])

    def _note_quota(self, change: Change[CacheEntry]) -> None:
        if change.new is not None:
            for resource in self._catalog.customs():
                if resource.serving.namespaced:
                    self._add(resource, change.suffix.partition("/")[0])

    def _add(self, resource: Resource, namespace: str) -> None:
        self._due[(resource.crd.name, namespace)] = _Charge(resource, namespace)
        self._changed.set()

    async def run(self) -> None:
        while True:
            with resting():
                await self._changed.wait()
            await rest(_PAUSE_SECONDS)
            self._changed.clear()
            due, self._due = self._due, {}
            for charge in due.values():
                try:
                    await self._charge(charge)
                except ApiError as error:
                    report_failure("quota-charges", error, charge.namespace)

    async def _charge(self, charge: _Charge) -> None:
        serving, namespace = charge.resource.serving, charge.namespace
        name = count_name(serving.group, serving.plural)
        for quota in list(self._quotas.in_namespace(namespace)):
            used = _used(quota, name)
            if used is None:
                continue
            count = sum(1 for _ in charge.resource.objects.suffixes(f"{namespace}/"))
            if used != str(count):
                await self._write(namespace, quota["metadata"]["name"], {name: str(count)})

    async def _write(self, namespace: str, quota: str, used: Object) -> None:
        path = resource_path(
            "", "v1", "resourcequotas", namespace=namespace, name=quota, subresource="status"
        )
        try:
            await self._cluster.asking.patch(path, {"status": {"used": used}})
        except NotFound:
            return


def _used(quota: Object, name: str) -> str | None:
    """Return what the quota's status says is used of ``name``; None if it does not limit it."""
    spec = quota.get("spec") or {}
    if name not in (spec.get("hard") or {}) or spec.get("scopes") or spec.get("scopeSelector"):
        return None
    return str(((quota.get("status") or {}).get("used") or {}).get(name, ""))
