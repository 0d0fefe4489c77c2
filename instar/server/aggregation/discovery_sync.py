"""Fetches the discovery documents of backends: at each change of a route, and every minute.

``aggregator.py`` tells it of changes; ``endpoints/groups.py`` merges the entries into the discovery
documents of this server. A Service is asked once for all group versions behind it. One that does
not answer leaves *stale* entries without resources, and delays nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from instar.base import offload
from instar.base.errors import ServiceUnavailable
from instar.base.json_values import Object, same_json
from instar.base.metrics import Counter
from instar.base.supervision import Supervision
from instar.kube.access.attributes import ADMIN_GROUP, User
from instar.server.aggregation import remote_documents
from instar.server.aggregation.backend_connection import BackendFailed
from instar.server.aggregation.backends import BackendPool, Backends
from instar.server.aggregation.routes import ApiRoute, BackendService, RouteTable, ServiceAddress
from instar.server.aggregation.service_endpoints import Unroutable
from instar.server.registry.controllers.queue import Backoff, Queue

_MASTER = User("system:kube-aggregator", (ADMIN_GROUP,))
_PLAIN = User("system:kube-aggregator")
_BACKOFF = Backoff(0.5, 60.0)
_REFRESH_SECONDS = 60.0
_FETCH_SECONDS = 5.0
_READY_SECONDS = 6.0
"""For how long the readiness of this server waits for the first round."""
_MOST_BYTES = 16 << 20
_AT_ONCE = 20


class _NotAggregated(Exception):
    """The backend has no aggregated discovery: each group version is asked for."""


class DiscoverySync:
    """What the backends serve, by group and version."""

    def __init__(
        self, backends: Backends, supervision: Supervision, changed: Callable[[str], None]
    ) -> None:
        """``changed`` is called with a group whose entries are others than before."""
        self._backends, self._group_changed = backends, changed
        self._table = RouteTable()
        self._entries: dict[tuple[str, str], Object] = {}
        self._fetched: dict[BackendService, tuple[str, remote_documents.Versions]] = {}
        """Backend → ETag and content of its document."""
        self._first: set[ServiceAddress] = set()
        """Services that were routed to at the start and have not been asked yet."""
        self._started: float | None = None
        self._services: Queue[ServiceAddress] = Queue(
            "discovery of",
            self._reconcile,
            _BACKOFF,
            max_concurrent=_AT_ONCE,
            supervision=supervision,
        )
        self.fetches = Counter(
            "aggregator_discovery_aggregation_count_total",
            "Times that the discovery of a backend was merged.",
        )

    def entry(self, group: str, version: str) -> Object:
        """The entry of a routed group version, stale until its backend has answered."""
        return self._entries.get((group, version)) or remote_documents.stale(version)

    def resources(self) -> Iterable[tuple[ApiRoute, Object]]:
        """Each route with its entry."""
        return [(route, self.entry(*key)) for key, route in self._table.remote.items()]

    def trouble(self) -> str | None:
        """Return that the first round is not finished yet, for a while."""
        if not self._first or self._started is None:
            return None
        waited = asyncio.get_running_loop().time() - self._started
        return "not finished" if waited < _READY_SECONDS else None

    def routed(self, table: RouteTable) -> None:
        """Follow another table of routes: forget what has left, ask what has changed."""
        before, self._table = self._table, table
        if self._started is None:
            self._started = asyncio.get_running_loop().time()
            self._first = {one.backend.key for one in table.remote.values() if one.backend}
        backends = {one.backend for one in table.remote.values()}
        self._fetched = {key: one for key, one in self._fetched.items() if key in backends}
        for key in [*self._entries]:
            old, new = before.remote.get(key), table.remote.get(key)
            if old is None or new is None or old.backend != new.backend:
                del self._entries[key]
        for key, route in table.remote.items():
            if route != before.remote.get(key) and route.backend is not None:
                self._services.add(route.backend.key)

    async def stop(self) -> None:
        await self._services.stop()

    async def _reconcile(self, service: ServiceAddress) -> float | None:
        routes = self._table.of_service(service)
        failure = ""
        for backend in {route.backend for route in routes if route.backend is not None}:
            behind = [route for route in routes if route.backend == backend]
            failure = await self._refresh(backend, behind) or failure
        self._first.discard(service)
        if not routes:
            return None
        if failure:
            raise ServiceUnavailable(failure)  # asked again after a growing pause
        return _REFRESH_SECONDS

    async def _refresh(self, backend: BackendService, routes: list[ApiRoute]) -> str:
        """Return why something could not be fetched; empty if all could."""
        pool = self._backends.pool(backend)
        if not any(route.available for route in routes):
            self._put(backend, {route: remote_documents.stale(route.version) for route in routes})
            return "service unavailable"
        found: dict[ApiRoute, Object] = {}
        failure = ""
        try:
            versions = await self._aggregated(backend, pool)
            for route in routes:
                entry = versions.get((route.group, route.version))
                found[route] = remote_documents.current(route.version, entry)
        except _NotAggregated:
            for route in routes:
                found[route], told = await _legacy(route, pool)
                failure = told or failure
        except (BackendFailed, Unroutable, ValueError) as error:
            failure = str(error)
            found = {route: remote_documents.stale(route.version) for route in routes}
        self._put(backend, found)
        return failure

    async def _aggregated(
        self, backend: BackendService, pool: BackendPool
    ) -> remote_documents.Versions:
        """Raises ``_NotAggregated``, ``BackendFailed``, ``Unroutable`` and ``ValueError``."""
        etag, known = self._fetched.get(backend, ("", {}))
        headers = {"Accept": remote_documents.ACCEPT}
        if etag:
            headers["If-None-Match"] = etag
        found = await pool.fetch(
            "/apis", _MASTER, headers, seconds=_FETCH_SECONDS, most_bytes=_MOST_BYTES
        )
        if found.status == 304 and etag:
            return known
        if found.status == 503:
            raise BackendFailed("service returned non-success response code: 503")
        if found.status != 200 or not remote_documents.is_aggregated(found.content_type):
            raise _NotAggregated
        body = found.body
        versions = await offload.run(len(body), lambda: remote_documents.read_aggregated(body))
        self._fetched[backend] = (found.etag, versions)
        return versions

    def _put(self, backend: BackendService, found: dict[ApiRoute, Object]) -> None:
        """Show the entries of routes that still lead to the backend."""
        self.fetches.add()
        changed = set()
        for route, entry in found.items():
            key = route.group, route.version
            now = self._table.remote.get(key)
            if now is None or now.backend != backend:
                continue
            if not same_json(self._entries.get(key), entry):
                self._entries[key] = entry
                changed.add(route.group)
        for group in changed:
            self._group_changed(group)


async def _legacy(route: ApiRoute, pool: BackendPool) -> tuple[Object, str]:
    """The entry by the discovery document of one group version, and why there is none."""
    try:
        found = await pool.fetch(
            route.prefix,
            _PLAIN,
            {"Accept": "application/json"},
            seconds=_FETCH_SECONDS,
            most_bytes=_MOST_BYTES,
        )
        if found.status != 200:
            raise BackendFailed(f"failed to download legacy discovery: {found.status}")
        body = found.body
        entry = await offload.run(
            len(body), lambda: remote_documents.read_resource_list(body, route.version)
        )
    except (BackendFailed, Unroutable, ValueError) as error:
        return remote_documents.stale(route.version), str(error)
    return remote_documents.current(route.version, entry), ""
