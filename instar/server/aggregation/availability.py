"""Availability controller: asks each backend whether it answers, and writes the condition.

``aggregator.py`` tells it of changes; the leader alone acts. A backend is asked at every change of
its APIService, Service and EndpointSlices, every 30 s, and after a failure with growing pauses. The
texts are in ``conditions.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from instar.base.errors import ServiceUnavailable
from instar.base.metrics import Counter, Measured
from instar.kube.access.attributes import ADMIN_GROUP, User
from instar.server.aggregation.backend_connection import BackendFailed
from instar.server.aggregation.backends import BackendPool, Backends
from instar.server.aggregation.conditions import (
    LOCAL,
    PASSED,
    Availability,
    failed_check,
    service_trouble,
    with_condition,
)
from instar.server.aggregation.routes import ApiRoute, BackendService, read_route
from instar.server.aggregation.service_endpoints import Unroutable
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.make_entry import put_server_object
from instar.wire.webhooks.dialer import address_text

PROBE_USER = User("system:kube-aggregator", (ADMIN_GROUP,))
_BACKOFF = Backoff(0.005, 30.0)
_RESYNC_SECONDS = 30.0
_PROBES = 5
"""Requests per check; one success is enough."""
_PROBE_SECONDS = 5.0
_MOST_BYTES = 1 << 20
_AT_ONCE = 20


class AvailabilityController:
    """Keeps the condition ``Available`` of every APIService."""

    def __init__(
        self,
        context: Context,
        services: Resource,
        backends: Backends,
        leads: Callable[[], bool],
    ) -> None:
        self._context, self._services, self._backends = context, services, backends
        self._leads = leads
        self._names: Queue[str] = Queue(
            "the availability of",
            self._reconcile,
            _BACKOFF,
            max_concurrent=_AT_ONCE,
            supervision=context.supervision,
        )
        self._lost = Counter(
            "aggregator_unavailable_apiservice_total",
            "APIServices that were marked as unavailable, by name and reason.",
            ("name", "reason"),
        )

    def metrics(self, known: Callable[[], Iterable[ApiRoute]]) -> tuple[Counter, Measured]:
        """``known`` returns the routes that are shown."""
        help = "Whether an APIService is unavailable (1), by its name."
        gauge = Measured(
            "aggregator_unavailable_apiservice",
            help,
            ("name",),
            lambda: [((route.name,), 0 if route.available else 1) for route in known()],
        )
        return self._lost, gauge

    def look_at(self, name: str) -> None:
        self._names.add(name)

    async def stop(self) -> None:
        await self._names.stop()

    async def _reconcile(self, name: str) -> float | None:
        entry = self._services.objects.entries.get(name)
        if entry is None or not self._leads():
            return None
        obj = entry.decode()
        route = read_route(obj)
        found = LOCAL if route.backend is None else await self._availability(route, route.backend)
        changed = with_condition(obj, found, self._context.timestamp())
        if changed is not None:
            await put_server_object(
                self._context.backend, self._services, name, changed, entry.revision
            )
            if route.available and found.status != "True":
                self._lost.add((name, found.reason))
        if route.backend is None:
            return None
        if found.reason == "FailedDiscoveryCheck":
            raise ServiceUnavailable(found.message)  # asked again after a growing pause
        return _RESYNC_SECONDS

    async def _availability(self, route: ApiRoute, backend: BackendService) -> Availability:
        if self._backends.routing.mapped(backend) is None:
            trouble = service_trouble(backend, self._backends.objects)
            if trouble is not None:
                return trouble
        failure = await self._probe(route, self._backends.pool(backend))
        return PASSED if failure is None else failed_check(failure)

    async def _probe(self, route: ApiRoute, pool: BackendPool) -> str | None:
        """Ask several times at once; return the last failure if none succeeds."""
        asking = [asyncio.ensure_future(_ask(route, pool)) for _ in range(_PROBES)]
        failure: str | None = None
        try:
            for done in asyncio.as_completed(asking):
                failure = await done
                if failure is None:
                    break
        finally:
            for one in asking:
                one.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        if failure is not None:
            pool.close_idle()
        return failure


async def _ask(route: ApiRoute, pool: BackendPool) -> str | None:
    """Ask for the discovery document; return what is wrong."""
    try:
        address = address_text(*pool.resolve())
    except Unroutable as error:
        return str(error)
    url = f"https://{address}{route.prefix}"
    try:
        found = await pool.fetch(
            route.prefix, PROBE_USER, {}, seconds=_PROBE_SECONDS, most_bytes=_MOST_BYTES
        )
    except Unroutable as error:
        return str(error)
    except BackendFailed as error:
        return f'failing or missing response from {url}: Get "{url}": {error}'
    if not 200 <= found.status < 300:
        cause = f"bad status from {url}: {found.status}"
        return f"failing or missing response from {url}: {cause}"
    return None
