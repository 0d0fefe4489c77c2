"""Embedded server: the whole API server in this process, without port, TLS and files.

The validator, suites and rehearsals call it for the answers a cluster would give: requests are
method calls, and responses are those of a served API byte for byte. ``lifetime.py`` runs the same
server behind a port.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from instar.base.errors import ApiError
from instar.base.json_values import Object, copy_json
from instar.kube.access.attributes import ADMIN_GROUP, AUTHENTICATED, User
from instar.server.access.authentication import Anonymous
from instar.server.access.authorization import ALWAYS_ALLOW
from instar.server.access.identities import AccountSettings, Identities
from instar.server.http.messages import JSON_TYPE, Request
from instar.server.identity.issuer import KeyFiles
from instar.server.lifecycle.composition import ServerComponents
from instar.server.lifecycle.loaded_settings import LoadedSettings
from instar.server.lifecycle.parts import Part, start_parts
from instar.server.registry.resources.resource import Resource
from instar.server.settings import Settings
from instar.wire.conversion.in_process import ConvertFunction
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import Store, Write

_ADMIN = User("kubernetes-admin", (ADMIN_GROUP, AUTHENTICATED))
_NO_CREDENTIALS = Identities(
    static={}, accounts=AccountSettings(), keys=KeyFiles(Path(os.devnull)), anonymous=Anonymous()
)
"""No credential is checked: every request is the administrator's."""
_JSON = "application/json"


class EmbeddedReply(NamedTuple):
    """Status and decoded body of a response."""

    status: int
    document: Any
    """Text instead of JSON where nothing is served at the path."""
    warnings: list[str]

    @property
    def refused(self) -> bool:
        return self.status >= 400


class RawResponse(NamedTuple):
    """Status, headers and bytes of a response."""

    status: int
    headers: Mapping[bytes, bytes]
    body: bytes
    """Empty for a watch, which is closed before its first event."""
    warnings: list[str]


class ServedKind:
    """A served kind: its versions, scope and paths."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource

    @property
    def name(self) -> str:
        serving = self.resource.serving
        return f"{serving.plural}.{serving.group}" if serving.group else serving.plural

    @property
    def namespaced(self) -> bool:
        return self.resource.serving.namespaced

    @property
    def versions(self) -> list[str]:
        """Names of the served versions."""
        versions = self.resource.serving.versions
        return [name for name, each in versions.items() if each.served]

    def has_status(self, version: str) -> bool:
        """Whether the version has the status subresource."""
        return self.resource.serving.versions[version].has_status

    def path(self, version: str, namespace: str = "", name: str = "") -> str:
        serving = self.resource.serving
        front = f"/apis/{serving.group}/{version}" if serving.group else f"/api/{version}"
        place = f"/namespaces/{namespace}" if namespace else ""
        return f"{front}{place}/{serving.plural}" + (f"/{name}" if name else "")

    def unknown_fields(self, obj: Object, version: str) -> list[str]:
        """Paths that are not in the version's schema; none where the object cannot be decoded, as
        ``ask`` returns a better error for that."""
        serving = self.resource.serving
        try:
            return serving.strategy.decode(copy_json(obj), serving.versions[version])
        except ApiError:
            return []


class Embedded:
    """Client of an embedded server."""

    def __init__(self, machinery: ServerComponents) -> None:
        self._machinery = machinery

    async def ask(
        self,
        method: str,
        path: str,
        body: Object | list[Any] | bytes | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = _JSON,
        user_agent: str = "instar",
    ) -> EmbeddedReply:
        """Send a request with a JSON body; the reply is decoded."""
        data = b"" if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        answer = await self.exchange(
            method,
            path,
            {name: [value] for name, value in (query or {}).items()},
            {
                b"content-type": content_type.encode(),
                b"accept": _JSON.encode(),
                b"user-agent": user_agent.encode(),
            },
            data,
        )
        is_json = answer.headers.get(JSON_TYPE[0]) == JSON_TYPE[1]
        document = orjson.loads(answer.body) if is_json else answer.body.decode().strip()
        return EmbeddedReply(answer.status, document, answer.warnings)

    async def exchange(
        self,
        method: str,
        path: str,
        query: dict[str, list[str]],
        headers: dict[bytes, bytes],
        body: bytes = b"",
    ) -> RawResponse:
        """Send a request as a connection reads it; returns the response as it would be sent."""
        request = Request(method, path, query, headers, body)
        await asyncio.sleep(0)  # most requests never wait: let other tasks run in between
        response = await self._machinery.app(request, _ADMIN)
        if response.stream is not None:
            response.stream.close()
        return RawResponse(
            response.status, dict(response.headers), b"".join(response.chunks), request.warnings
        )

    def kind(self, group: str, kind: str) -> ServedKind | None:
        """None for a kind that is not served."""
        found = self._machinery.catalog.of_kind(group, kind)
        return None if found is None else ServedKind(found)

    async def place(self, kind: ServedKind, namespace: str, name: str, obj: Object) -> int:
        """Store an object without validation or admission, as if it had been written under another
        schema. Replaces an object of that name. Returns its size in bytes."""
        backend, resource = self._machinery.backend, kind.resource
        suffix = f"{namespace}/{name}" if namespace else name
        current = resource.objects.entries.get(suffix)
        expected = 0 if current is None else current.revision
        value = orjson.dumps(obj, option=orjson.OPT_SORT_KEYS) + b"\n"
        revision = await backend.store.commit(
            Write(resource.objects.prefix + suffix, value, expected)
        )
        await backend.wait_for_revision(revision)
        return len(value)

    async def copied_store(self, wanted: Callable[[str], bool] = lambda key: True) -> MemoryStore:
        """A copy of the store, or of some of its keys, for another server to start on. The bytes
        are shared, so a copy costs little."""
        page = await self._machinery.backend.store.range("")
        copy = MemoryStore()
        for record in page.records:
            if wanted(record.key):
                await copy.commit(Write(record.key, record.value, 0))
        return copy

    async def clear(self, kind: ServedKind) -> None:
        """Remove every object of a kind, also those with finalizers."""
        objects = kind.resource.objects
        for suffix, entry in list(objects.entries.items()):
            await self._machinery.backend.remove(objects, suffix, entry.revision)


@contextlib.asynccontextmanager
async def embedded(
    converters: Mapping[str, ConvertFunction] | None = None, store: Store | None = None
) -> AsyncIterator[Embedded]:
    """An embedded server from ``async with`` to its end. Namespaces need not exist, and there is
    no garbage collection. ``store`` may contain objects; it is closed with the server."""
    settings = Settings(
        aggregation=None,
        authorization=ALWAYS_ALLOW,
        collect_garbage=False,
        conversion_cache=False,
        converters=converters or {},
        bootstrap_objects=False,
        reads_at_once=0,
        writes_at_once=0,
        strict_namespaces=False,
    )
    loaded = LoadedSettings(
        settings=settings,
        identities=_NO_CREDENTIALS,
        authorization=(ALWAYS_ALLOW,),
        service_network=IPv4Network(settings.service_cluster_ip_range),
    )
    used = MemoryStore() if store is None else store
    stack = contextlib.AsyncExitStack()
    try:
        await start_parts([Part("store", stop=used.close)], stack)
        machinery = ServerComponents(loaded, used)
        await start_parts(
            [
                *machinery.reading_parts(),
                *machinery.controller_parts(),
                machinery.readiness_part(),
            ],
            stack,
        )
        yield Embedded(machinery)
    finally:
        await asyncio.shield(stack.__aexit__(*sys.exc_info()))
