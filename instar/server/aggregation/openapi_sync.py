"""Fetches the OpenAPI documents of backends: at each change of a route, and every minute.

``aggregator.py`` tells it of changes; ``endpoints/openapi.py`` merges the parts into the documents
of this server. A Service is asked once for all group versions behind it. After a failure the last
good documents stay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from hashlib import sha512
from typing import NamedTuple

from instar.base import offload
from instar.base.errors import ServiceUnavailable
from instar.base.json_values import Object
from instar.base.supervision import Supervision
from instar.kube.access.attributes import User
from instar.kube.api.encoding.json_text import encode
from instar.kube.openapi.v2 import DocumentPart
from instar.server.aggregation import openapi_documents
from instar.server.aggregation.backend_connection import BackendFailed
from instar.server.aggregation.backends import BackendPool, Backends
from instar.server.aggregation.routes import ApiRoute, BackendService, RouteTable, ServiceAddress
from instar.server.aggregation.service_endpoints import Unroutable
from instar.server.registry.controllers.queue import Backoff, Queue

log = logging.getLogger(__name__)
_USER = User("system:aggregator")
_BACKOFF = Backoff(60.0, 3600.0)
_REFRESH_SECONDS = 60.0
_FETCH_SECONDS = 60.0
_MOST_BYTES = 32 << 20
_AT_ONCE = 2
Key = tuple[str, str]


class SwaggerPart(NamedTuple):
    """The v2 document of one group version, and a digest of it."""

    digest: bytes
    part: DocumentPart


class _Fetched(NamedTuple):
    """The v2 document of a backend as it came last, cut to the group versions behind it."""

    etag: str
    keys: frozenset[Key]
    digest: bytes


class OpenApiSync:
    """OpenAPI of the backends, by group and version."""

    def __init__(
        self, backends: Backends, supervision: Supervision, changed: Callable[[str], None]
    ) -> None:
        """``changed`` is called with a group whose documents are others than before."""
        self._backends, self._group_changed = backends, changed
        self._table = RouteTable()
        self._hashes: dict[Key, str] = {}
        self._parts: dict[Key, SwaggerPart] = {}
        self._converted: dict[Key, bytes] = {}
        """v3 documents made of v2, for backends without v3."""
        self._fetched: dict[BackendService, _Fetched] = {}
        self._services: Queue[ServiceAddress] = Queue(
            "OpenAPI of",
            self._reconcile,
            _BACKOFF,
            max_concurrent=_AT_ONCE,
            supervision=supervision,
        )

    def hashes(self, group: str) -> dict[str, str]:
        """Version → hash of the v3 document, of the remote versions of a group."""
        return {version: said for (name, version), said in self._hashes.items() if name == group}

    def parts(self) -> list[SwaggerPart]:
        """The v2 parts in the order in which they are merged: by group priority, then by name."""
        routes = self._table.remote
        ordered = sorted(
            self._parts, key=lambda key: (-routes[key].group_priority, routes[key].name)
        )
        return [self._parts[key] for key in ordered]

    def converted(self, group: str, version: str) -> bytes | None:
        """The v3 document of a backend that has only v2."""
        return self._converted.get((group, version))

    def routed(self, table: RouteTable) -> None:
        """Follow another table of routes: forget what has left, ask what has changed."""
        before, self._table = self._table, table
        backends = {one.backend for one in table.remote.values()}
        self._fetched = {key: one for key, one in self._fetched.items() if key in backends}
        for key in before.remote:
            new = table.remote.get(key)
            if new is None or new.backend != before.remote[key].backend:
                self._drop(key)
        for key, route in table.remote.items():
            if route != before.remote.get(key) and route.available and route.backend is not None:
                self._services.add(route.backend.key)

    async def stop(self) -> None:
        await self._services.stop()

    def _drop(self, key: Key) -> None:
        for kept in (self._hashes, self._parts, self._converted):
            kept.pop(key, None)

    async def _reconcile(self, service: ServiceAddress) -> float | None:
        routes = [one for one in self._table.of_service(service) if one.available]
        failures = []
        for backend in {route.backend for route in routes if route.backend is not None}:
            behind = [route for route in routes if route.backend == backend]
            try:
                await self._refresh(backend, behind)
            except (BackendFailed, Unroutable, ValueError) as error:
                failures.append(str(error))
        if failures:
            raise ServiceUnavailable("; ".join(failures))  # asked again after a growing pause
        return _REFRESH_SECONDS if routes else None

    async def _refresh(self, backend: BackendService, routes: list[ApiRoute]) -> None:
        pool = self._backends.pool(backend)
        failure: Exception | None = None
        hashes: dict[Key, str] | None
        try:
            hashes = await self._index(pool, routes)
        except (BackendFailed, ValueError) as error:
            failure = error
            hashes = {key: self._hashes[key] for key in map(_key, routes) if key in self._hashes}
        parts = await self._swagger(backend, pool, routes)
        if parts is None:
            parts = {key: self._parts[key] for key in map(_key, routes) if key in self._parts}
        converted: dict[Key, bytes] = {}
        if hashes is None:
            hashes = {}
            for key, (digest, part) in parts.items():
                title = str(self._table.remote[key].name) if key in self._table.remote else ""
                converted[key] = await offload.run_in_thread(_as_v3, part, title)
                hashes[key] = digest.hex().upper()
        for route in routes:
            key = _key(route)
            now = self._table.remote.get(key)
            if now is not None and now.backend == backend:
                self._put(key, hashes.get(key), parts.get(key), converted.get(key))
        if failure is not None:
            raise failure

    def _put(
        self, key: Key, said: str | None, part: SwaggerPart | None, converted: bytes | None
    ) -> None:
        old = self._parts.get(key)
        same_part = (old and old.digest) == (part and part.digest)
        if self._hashes.get(key) == said and same_part:
            return
        self._drop(key)
        if said is not None:
            self._hashes[key] = said
        if part is not None:
            self._parts[key] = part
        if converted is not None:
            self._converted[key] = converted
        self._group_changed(key[0])

    async def _index(self, pool: BackendPool, routes: list[ApiRoute]) -> dict[Key, str] | None:
        """Hashes of the v3 documents; None for a backend without v3."""
        found = await pool.fetch(
            "/openapi/v3", _USER, {}, seconds=_FETCH_SECONDS, most_bytes=_MOST_BYTES
        )
        if found.status == 404:
            return None
        if found.status != 200:
            raise BackendFailed(f"failed to retrieve openAPI spec, http error: {found.status}")
        keys = {route.prefix.strip("/"): _key(route) for route in routes}
        body = found.body
        told = await offload.run(len(body), lambda: openapi_documents.read_index(body, keys))
        return {keys[name]: said for name, said in told.items()}

    async def _swagger(
        self, backend: BackendService, pool: BackendPool, routes: list[ApiRoute]
    ) -> dict[Key, SwaggerPart] | None:
        """The v2 parts of the routes; None if they are as before."""
        known, keys = self._fetched.get(backend), frozenset(map(_key, routes))
        headers = {"Accept": "application/json"}
        if known is not None and known.etag and known.keys == keys:
            headers["If-None-Match"] = known.etag
        found = await pool.fetch(
            "/openapi/v2", _USER, headers, seconds=_FETCH_SECONDS, most_bytes=_MOST_BYTES
        )
        if found.status == 304 and "If-None-Match" in headers:
            return None
        if found.status == 404:
            return {}
        if found.status != 200:
            raise BackendFailed(f"failed to retrieve openAPI spec, http error: {found.status}")
        body = found.body
        digest = sha512(body).digest()
        if known is not None and (known.keys, known.digest) == (keys, digest):
            return None
        prefixes = {_key(route): route.prefix for route in routes}
        parts = await offload.run_in_thread(_cut, body, prefixes, digest)
        self._fetched[backend] = _Fetched(found.etag, keys, digest)
        return parts


def _key(route: ApiRoute) -> Key:
    return route.group, route.version


def _cut(body: bytes, prefixes: dict[Key, str], digest: bytes) -> dict[Key, SwaggerPart]:
    document = openapi_documents.read_v2(body)
    return {
        key: SwaggerPart(digest, openapi_documents.part_of(document, prefix))
        for key, prefix in prefixes.items()
    }


def _as_v3(part: DocumentPart, title: str) -> bytes:
    document: Object = openapi_documents.as_v3(part, title)
    return encode(document)
