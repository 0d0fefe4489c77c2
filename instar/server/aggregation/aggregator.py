"""Aggregator: follows the APIService objects, keeps the routes, and makes a change of one act.

``lifecycle/aggregation_setup.py`` makes one per server. Requests read ``table`` through
``rest/routing.py``. When a route changes, the streams that it strands end: watches of this server's
own objects when the group version leaves, proxied ones when it comes back or moves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from instar.base.json_values import same_json
from instar.base.metrics import Metric
from instar.server.aggregation.availability import AvailabilityController
from instar.server.aggregation.backends import Backends
from instar.server.aggregation.discovery_sync import DiscoverySync
from instar.server.aggregation.openapi_sync import OpenApiSync
from instar.server.aggregation.proxy import ApiProxy
from instar.server.aggregation.routes import (
    AUTOMANAGED,
    ApiRoute,
    RouteTable,
    condition,
    read_route,
)
from instar.server.aggregation.stored_services import StoredServices
from instar.server.http.body_stream import StreamedPaths
from instar.server.http.messages import JSON_TYPE, Request, Response
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.watchcache.collection import Change

log = logging.getLogger(__name__)


class Aggregator:
    """The routes of one server, and everything that follows them."""

    def __init__(
        self,
        backend: Backend,
        catalog: Catalog,
        services: StoredServices,
        backends: Backends,
        proxy: ApiProxy,
        availability: AvailabilityController,
        discovery: DiscoverySync,
        openapi: OpenApiSync,
    ) -> None:
        self.table = RouteTable()
        self.discovery, self.openapi = discovery, openapi
        self.proxy = proxy
        self.backends = backends
        self._backend, self._catalog, self._stored_services = backend, catalog, services
        self._availability = availability
        self._objects = catalog.builtin("apiregistration.k8s.io", "apiservices").objects
        self._routes: dict[str, ApiRoute] = {}
        self._streamed: list[StreamedPaths] = []

    def metrics(self) -> Sequence[Metric]:
        known = self._availability.metrics(lambda: self.table.remote.values())
        return (*known, self.discovery.fetches)

    def checks(self) -> dict[str, Callable[[], str | None]]:
        """Checks of /readyz, by kube-apiserver's names."""
        return {"poststarthook/apiservice-discovery-controller": self.discovery.trouble}

    async def serve(self, request: Request, route: ApiRoute, audit_id: str) -> Response:
        """Pass an authorized request on."""
        if request.path.startswith("/openapi/"):
            made = self.openapi.converted(route.group, route.version)
            if made is not None:
                return Response(200, (made,), [JSON_TYPE])
        return await self.proxy.serve(request, route, audit_id)

    def stream_bodies(self, paths: StreamedPaths) -> None:
        """Have the connections of a port stream the bodies of proxied requests."""
        self._streamed.append(paths)
        self._tell_ports()

    # --- start and stop -------------------------------------------------------------------

    def start(self) -> None:
        self._objects.observers.append(self._changed)
        self._backend.cache.on_reset(self._read_all)
        self._read_all()

    async def stop(self) -> None:
        await self._availability.stop()
        await self.discovery.stop()
        await self.openapi.stop()
        self.proxy.close()
        self.backends.close()

    async def look_at_all(self) -> None:
        """This server has become the leader: check every backend."""
        for name, entry in list(self._objects.entries.items()):
            if name in self._routes or not _is_labelled(entry):
                self._availability.look_at(name)

    # --- APIServices ----------------------------------------------------------------------

    def _read_all(self) -> None:
        routes = {
            entry.suffix: route
            for entry in list(self._objects.entries.values())
            if (route := _route_of(entry)) is not None
        }
        self._replace(routes)
        for name in routes:
            self._availability.look_at(name)

    def _changed(self, change: Change[CacheEntry]) -> None:
        name = change.suffix
        route = None if change.new is None else _route_of(change.new)
        known = self._routes.get(name)
        if route is None and known is None:
            return
        routes = {key: one for key, one in self._routes.items() if key != name}
        if route is not None:
            routes[name] = route
        if route != known:
            self._replace(routes)
        if change.new is not None and self._is_news(change, route):
            self._availability.look_at(name)

    def _is_news(self, change: Change[CacheEntry], route: ApiRoute | None) -> bool:
        """Whether a change calls for a check: one of the status alone is the controller's own."""
        if change.old is None or change.new is None:
            return True
        if route is None or route.backend is None:
            found = condition(change.new.decode().get("status") or {})
            return found is None or found.get("reason") != "Local"
        return not same_json(change.old.decode().get("spec"), change.new.decode().get("spec"))

    def _service_changed(self, namespace: str, name: str) -> None:
        for route in self.table.remote.values():
            backend = route.backend
            if backend is not None and (backend.namespace, backend.name) == (namespace, name):
                self._availability.look_at(route.name)

    # --- effects --------------------------------------------------------------------------

    def _replace(self, routes: dict[str, ApiRoute]) -> None:
        before, self._routes = self.table, routes
        self.table = after = RouteTable(routes.values())
        if after.remote:
            self._stored_services.follow(self._service_changed)
        self._tell_ports()
        self.backends.keep_only({one.backend for one in after.remote.values() if one.backend})
        changed = {
            key
            for key in before.explicit.keys() | after.explicit.keys()
            if before.explicit.get(key) != after.explicit.get(key)
        }
        self.discovery.routed(after)
        self.openapi.routed(after)
        for key in changed:
            if key in before.remote or key in after.remote:
                self._catalog.reroute(key[0])
            self._end_stranded(before.remote.get(key), after.remote.get(key), key)

    def _end_stranded(
        self, old: ApiRoute | None, new: ApiRoute | None, key: tuple[str, str]
    ) -> None:
        """End the streams that would go on by the old route."""
        led_to = None if old is None else old.backend
        leads_to = None if new is None else new.backend
        if led_to == leads_to:
            return
        log.info("%s/%s is served by %s", *key, leads_to.key if leads_to else "this server")
        if old is not None:
            self.proxy.end_streams(old.name)
        else:
            for resource in self._catalog.members(key[0]):
                if resource.serving.served(key[1]) is not None:
                    resource.hub.end_all()

    def _tell_ports(self) -> None:
        wanted = self._is_streamed if self.table.remote else None
        for paths in self._streamed:
            paths.wanted = wanted

    def _is_streamed(self, target: bytes) -> bool:
        path = target.partition(b"?")[0].decode("latin-1")
        return self.table.find(path) is not None


def _route_of(entry: CacheEntry) -> ApiRoute | None:
    """The route of a stored APIService; None for one that this server keeps local. Most are: there
    is one for each group version of a CRD, and they are not decoded."""
    return None if _is_labelled(entry) else read_route(entry.decode())


def _is_labelled(entry: CacheEntry) -> bool:
    return entry.labels.get(AUTOMANAGED) == "true"
