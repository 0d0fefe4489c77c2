"""Routes: which server answers for a group version, computed from the APIService objects alone.

``aggregator.py`` makes a ``RouteTable`` after each change of an APIService; ``rest/routing.py``
looks paths up in it, ``endpoints`` lists groups in its order. Pure values, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from instar.base.json_values import Object
from instar.kube.api.names import GroupVersion, by_priority

AVAILABLE = "Available"
DEFAULT_PORT = 443
AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"
"""Label of APIServices that this server keeps as they are: ``true``, or ``onstart``."""


class BackendService(NamedTuple):
    """The Service behind which a backend runs, and how its certificate is verified."""

    namespace: str
    name: str
    port: int
    ca_bundle: str = ""
    """PEM in base64; empty: the CAs of the system."""
    insecure: bool = False

    @property
    def server_name(self) -> str:
        """The DNS name that the backend's certificate must have."""
        return f"{self.name}.{self.namespace}.svc"

    @property
    def key(self) -> ServiceAddress:
        return ServiceAddress(self.namespace, self.name, self.port)


class ServiceAddress(NamedTuple):
    """A Service and its port: group versions with the same one share their documents."""

    namespace: str
    name: str
    port: int


class ApiRoute(NamedTuple):
    """One APIService as far as requests are concerned."""

    name: str
    group: str
    version: str
    group_priority: int
    version_priority: int
    backend: BackendService | None
    """None: this server."""
    available: bool
    """Whether its condition ``Available`` is true; without the condition it is not."""

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def prefix(self) -> str:
        """The path at which the group version is served."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


class RouteTable:
    """All routes of one moment that differ from what this server does by itself."""

    def __init__(self, routes: Iterable[ApiRoute] = ()) -> None:
        self.explicit = {(route.group, route.version): route for route in routes}
        """Routes of APIServices that this server does not manage itself, local ones too."""
        self.remote: Mapping[tuple[str, str], ApiRoute] = {
            key: route for key, route in self.explicit.items() if route.backend is not None
        }
        self.groups = frozenset(group for group, _ in self.remote)

    def find(self, path: str) -> ApiRoute | None:
        """The remote route of a path; None where this server answers."""
        return self.remote.get(_place(path)) if self.remote else None

    def of_group(self, group: str) -> list[ApiRoute]:
        return [route for route in self.remote.values() if route.group == group]

    def of_service(self, key: ServiceAddress) -> list[ApiRoute]:
        return [
            route
            for route in self.remote.values()
            if route.backend is not None and route.backend.key == key
        ]


def _place(path: str) -> tuple[str, str]:
    """Group and version of a path, read as leniently as ``parse_resource_path`` reads it: one that
    is local for one of them and remote for the other could pass by the route."""
    parts = [part for part in path.split("/") if part][:6]
    if parts[:3] == ["openapi", "v3", "apis"] and len(parts) == 5:
        return unquote(parts[3]), unquote(parts[4])
    if len(parts) >= 3 and unquote(parts[0]) == "apis":
        return unquote(parts[1]), unquote(parts[2])
    return ("", "v1") if parts and unquote(parts[0]) == "api" else ("", "")


def read_route(obj: Mapping[str, Any]) -> ApiRoute:
    """The route of an APIService object."""
    spec, status = obj["spec"], obj.get("status") or {}
    service = spec.get("service")
    backend = None
    # An APIService of a CRD with the label is put back within seconds: it never leads away.
    if service is not None and not is_kept_local(obj):
        backend = BackendService(
            service.get("namespace", ""),
            service.get("name", ""),
            service.get("port") or DEFAULT_PORT,
            spec.get("caBundle") or "",
            bool(spec.get("insecureSkipTLSVerify")),
        )
    found = condition(status)
    return ApiRoute(
        name=obj["metadata"]["name"],
        group=spec.get("group", ""),
        version=spec.get("version", ""),
        group_priority=spec.get("groupPriorityMinimum", 0),
        version_priority=spec.get("versionPriority", 0),
        backend=backend,
        available=backend is None or (found is not None and found.get("status") == "True"),
    )


def is_kept_local(obj: Mapping[str, Any]) -> bool:
    """Whether this server keeps the spec of the APIService: then it is always local."""
    return (obj["metadata"].get("labels") or {}).get(AUTOMANAGED) == "true"


def condition(status: Mapping[str, Any]) -> Object | None:
    """The condition ``Available`` of an APIService's status."""
    found: list[Object] = [
        one for one in status.get("conditions") or () if one.get("type") == AVAILABLE
    ]
    return found[0] if found else None


class RankedVersion(NamedTuple):
    """A version as discovery sorts it."""

    name: str
    group_priority: int
    version_priority: int


def sort_versions(versions: Iterable[RankedVersion]) -> list[RankedVersion]:
    """By priority, then in Kubernetes' order of versions (v2, v1, v1beta1): the first is
    preferred."""
    known = {one.name: one for one in versions}
    ordered = [known[name] for name in by_priority(set(known))]
    return sorted(ordered, key=lambda one: -one.version_priority)


def group_rank(group: str, versions: Iterable[RankedVersion]) -> tuple[int, str]:
    """Sort rank of a group: its highest priority, then the name of the APIService that has it."""
    return min((-one.group_priority, f"{one.name}.{group}") for one in versions)
