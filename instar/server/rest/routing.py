"""Routing: from a URL path to its resource, with a cache of recent paths.

``server/app.py`` calls it for each request. Cached routes are dropped when any resource changes, so
the cache never returns a resource that is no longer served.
"""

from __future__ import annotations

from typing import Protocol

from instar.base.fast_dataclass import dataclass
from instar.kube.access.attributes import Attributes, User
from instar.server.aggregation.routes import ApiRoute, RouteTable
from instar.server.http.messages import Request
from instar.server.registry.resources.catalog import Catalog, is_served
from instar.server.registry.resources.resource import Resource, Target
from instar.server.rest.request_attributes import ResourcePath, attributes_of, parse_resource_path

_MOST_KEPT = 4096
"""Cached paths; at this number the cache is emptied."""
_LONGEST_KEPT = 512
"""Longest cached path: clients may send any path before they are authenticated."""
_CLUSTER_WIDE_VERBS = ("list", "watch")
"""Verbs that a namespaced resource supports without a namespace in the path."""


@dataclass(slots=True)
class KnownPath:
    """A cached path: its attributes and its target."""

    path: ResourcePath | None
    """None for a path that is no resource path."""
    target: Target | None = None
    """Cached only where it is the same for every verb."""
    method: str = ""
    asked: Attributes | None = None
    """Attributes of the last request with ``method`` and without a query."""
    remote: ApiRoute | None = None
    """The route to the server that answers for the path; None: this one."""


class RouteOwner(Protocol):
    """Has the routes to other servers; a change of ``table`` retargets the catalog."""

    table: RouteTable


class Routes:
    """Recent paths and what they lead to."""

    def __init__(self, catalog: Catalog, remote: RouteOwner | None = None) -> None:
        """``remote`` has the routes to other servers; None: there are none."""
        self._catalog, self._remote = catalog, remote
        self._retargeted = catalog.retargeted
        self._known: dict[str, KnownPath] = {}

    def of(self, text: str) -> KnownPath:
        if self._retargeted != self._catalog.retargeted:
            self._retargeted = self._catalog.retargeted
            self._known.clear()
        known = self._known.get(text)
        if known is not None:
            return known
        route = KnownPath(parse_resource_path(text))
        if self._remote is not None:
            route.remote = self._remote.table.find(text)
        if len(text) <= _LONGEST_KEPT:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[text] = route
        return route

    def asked(self, route: KnownPath, request: Request, user: User) -> Attributes:
        """The request's attributes, reused from the last request if that was the same."""
        known = route.asked
        if (
            known is not None
            and known.user is user
            and route.method == request.method
            and not request.query
        ):
            return known
        made = attributes_of(request, route.path, user)
        if not request.query:
            route.method, route.asked = request.method, made
        return made

    def target(self, route: KnownPath, verb: str) -> Target | None:
        """The target by the current CRDs, also for a cached route."""
        current = self._retargeted == self._catalog.retargeted
        if route.target is not None and current:
            return route.target
        path = route.path
        resource = None if path is None else self._catalog.find(path.group, path.plural)
        if path is None or resource is None:
            return None
        target = _target(resource, path, verb)
        if current and target is not None and (path.namespace or not target.serving.namespaced):
            route.target = target
        return target


def _target(resource: Resource, path: ResourcePath, verb: str) -> Target | None:
    """None where kube-apiserver answers 404: wrong scope, version not served, names pending."""
    serving = resource.serving
    version = serving.served(path.version)
    if version is None:
        return None
    if path.namespace and not serving.namespaced:
        return None
    if serving.namespaced and not path.namespace and verb not in _CLUSTER_WIDE_VERBS:
        return None
    if not is_served(resource.crd):
        return None
    return Target(resource, serving, resource.codec, version, path.namespace, path.name)
