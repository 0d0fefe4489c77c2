"""Sandbox of a rehearsal: one CRD and some of its objects on an embedded server.

``batch.py`` runs steps on it. Only this module sends requests to the embedded server. A sandbox
can be copied, so that a rollback or a fault is tried without side effects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

import orjson

from instar.base.json_values import Object
from instar.kube.api.crd import Crd, read_crd
from instar.server.lifecycle.embedded import Embedded, EmbeddedReply, embedded
from instar.tools.redacting import is_secret, last_name, redact
from instar.tools.rehearsal.converting import ConversionMode
from instar.tools.rehearsal.model import Exchange
from instar.tools.rehearsal.object_diff import key_of
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import Access
from instar.wire.client.paths import crd_path, path_in
from instar.wire.client.transport import ClientReply as SentReply
from instar.wire.client.transport import ConnectionLost
from instar.wire.conversion.in_process import ConvertFunction

T = TypeVar("T")
PAGE = 500
_AT_ONCE = 16
_ANSWER = 400
_CONFLICT = 409
_SERVERS_OWN = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
AGENT = "instar-rehearse"


class SandboxReading(NamedTuple):
    """One object at one version, or the reason why it cannot be read there."""

    key: str
    obj: Object | None
    problem: Exchange | None = None
    code: int = 200


class Listed(NamedTuple):
    """All objects of the sandbox at one version, as a client lists them."""

    readings: list[SandboxReading]
    failed: Exchange | None
    """The list itself failed, so each object was read alone."""
    warnings: tuple[str, ...]


class Sandbox:
    """Embedded server with a copy of one CRD and some of its objects."""

    def __init__(
        self,
        api: Embedded,
        name: str,
        keys: Sequence[str],
        conversion: ConversionMode,
        functions: Mapping[str, ConvertFunction],
    ) -> None:
        self.api = api
        self.name = name
        self.keys = keys
        self.conversion = conversion
        self.functions = functions
        self.requests = 0
        self.crd: Crd
        self.document: Object

    async def refresh(self) -> Object:
        """Read the CRD from the server again."""
        reply = await self.api.ask("GET", crd_path(self.name))
        if reply.refused:
            raise LookupError(self.name)
        self.document = reply.document
        self.crd = read_crd(reply.document)
        return self.document

    async def apply_crd(self, crd: Object, *, dry_run: bool = False) -> str:
        """Apply a CRD; return the server's refusal, if any."""
        query = {"dryRun": "All"} if dry_run else {}
        reply = await self.api.ask("GET", crd_path(self.name))
        if reply.refused:
            body = {key: value for key, value in crd.items() if key != "status"}
            reply = await self.api.ask("POST", crd_path(), body, query=query)
        else:
            body = {**reply.document, "spec": crd["spec"]}
            reply = await self.api.ask("PUT", crd_path(self.name), body, query=query)
        if reply.refused:
            return answer(reply)
        if not dry_run:
            await self.refresh()
        return ""

    async def set_stored_versions(self, versions: Sequence[str]) -> None:
        body = {"status": {"storedVersions": list(versions)}}
        reply = await self.api.ask(
            "PATCH",
            crd_path(self.name, subresource="status"),
            body,
            content_type="application/merge-patch+json",
        )
        if reply.refused:
            raise LookupError(answer(reply))
        await self.refresh()

    async def create_others(self, others: Sequence[Object]) -> list[str]:
        """Create captured objects of built-in kinds; return the refusals."""
        refused = []
        for obj in others:
            group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
            kind = self.api.kind(group, str(obj.get("kind") or ""))
            metadata = obj.get("metadata")
            if kind is None or not isinstance(metadata, dict):
                continue
            bare = {name: each for name, each in metadata.items() if name not in _SERVERS_OWN}
            path = kind.path(version, str(metadata.get("namespace") or ""))
            reply = await self.api.ask("POST", path, {**obj, "metadata": bare})
            if reply.refused and reply.status != _CONFLICT:
                refused.append(f"{obj.get('kind')} {metadata.get('name')}: {answer(reply)}")
        return refused

    async def place(self, objects: Sequence[Object]) -> int:
        """Store objects without validation; return their size."""
        kind = self.api.kind(self.crd.group, self.crd.names.kind)
        if kind is None:
            raise LookupError(self.name)
        size = 0
        for obj in objects:
            metadata = obj["metadata"]
            namespace = str(metadata.get("namespace") or "") if kind.namespaced else ""
            bare = {name: each for name, each in metadata.items() if name != "resourceVersion"}
            name = str(metadata["name"])
            size += await self.api.place(kind, namespace, name, {**obj, "metadata": bare})
        self.keys = sorted({key_of(obj) for obj in objects})
        return size

    @asynccontextmanager
    async def copy(
        self,
        functions: Mapping[str, ConvertFunction] | None = None,
        keys: Sequence[str] | None = None,
    ) -> AsyncIterator[Sandbox]:
        """Return another sandbox with the same state; ``keys`` limits it to those objects."""
        kept = self.keys if keys is None else keys
        prefix, mine = self._prefix(), set(kept)
        store = await self.api.copied_store(
            lambda key: not key.startswith(prefix) or key.removeprefix(prefix) in mine
        )
        converters = self.functions if functions is None else functions
        async with embedded(converters, store) as api:
            stage = Sandbox(api, self.name, kept, self.conversion, converters)
            await stage.refresh()
            yield stage

    def _prefix(self) -> str:
        kind = self.api.kind(self.crd.group, self.crd.names.kind)
        return "" if kind is None else kind.resource.objects.prefix

    def path(self, version: str, key: str = "", subresource: str = "") -> str:
        return path_in(self.crd, version, key, subresource)

    async def pages(self, version: str) -> AsyncIterator[Listed]:
        """Yield every object at a version, page by page. If a page fails, read the rest
        individually.
        """
        token, done = "", 0
        while True:
            query = {"limit": str(PAGE), **({"continue": token} if token else {})}
            reply = await self.ask("GET", self.path(version), query=query)
            if reply.refused:
                break
            items = reply.document.get("items") or []
            done += len(items)
            readings = [SandboxReading(key_of(obj), obj) for obj in items]
            yield Listed(readings, None, tuple(reply.warnings))
            token = (reply.document.get("metadata") or {}).get("continue") or ""
            if not token:
                return
        failed = Exchange(f"GET {self.path(version)}", "", answer(reply))
        for start in range(done, len(self.keys), PAGE):
            part = self.keys[start : start + PAGE]
            found = await self.each(part, lambda key: self.read(version, key))
            yield Listed(found, failed, tuple(reply.warnings))

    async def read(self, version: str, key: str) -> SandboxReading:
        reply = await self.ask("GET", self.path(version, key))
        if not reply.refused:
            return SandboxReading(key, reply.document)
        exchange = Exchange(f"GET {self.path(version, key)}", key, answer(reply))
        return SandboxReading(key, None, exchange, reply.status)

    async def ask(self, method: str, path: str, body: Any = None, **how: Any) -> EmbeddedReply:
        self.requests += 1
        how.setdefault("user_agent", AGENT)
        return await self.api.ask(method, path, body, **how)

    async def each(self, items: Iterable[Any], work: Callable[[Any], Awaitable[T]]) -> list[T]:
        """Apply ``work`` to the items in order; concurrently if it waits for a webhook."""
        listed = list(items)
        if self.conversion in (ConversionMode.NONE, ConversionMode.ABSENT):
            return [await work(item) for item in listed]
        found: dict[int, T] = {}
        queue = iter(enumerate(listed))

        async def worker() -> None:
            for position, item in queue:
                found[position] = await work(item)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(_AT_ONCE, len(listed))):
                group.create_task(worker())
        return [found[position] for position in range(len(listed))]

    def client(self, sender: SandboxSender | None = None) -> Client:
        """Return a client for tools that expect a cluster; its requests go to the embedded
        server.
        """
        return Client(
            Access(server="the rehearsal's copy"),
            user_agent="instar-migrate",
            sender=sender or SandboxSender(self.api),
        )


class SandboxSender:
    """Transport of a client that calls the embedded server."""

    def __init__(self, api: Embedded) -> None:
        self._api = api
        self.writes = 0
        self.dead_after = -1
        """Number of writes after which every request fails; -1 means never."""
        self.died = asyncio.Event()

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | Sequence[tuple[str, str]],
        body: bytes | None = None,
        query: Mapping[str, str] | None = None,
        server_name: str | None = None,
    ) -> SentReply:
        if 0 <= self.dead_after <= self.writes:
            self.died.set()
            raise ConnectionLost("the process was killed")
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        path = url[url.index("/") :]
        asked = {name.lower().encode(): value.encode() for name, value in pairs}
        wanted = {name: [value] for name, value in (query or {}).items()}
        got = await self._api.exchange(method, path, wanted, asked, body or b"")
        self.writes += method in ("PATCH", "PUT", "POST")
        shown = {name.decode().title(): value.decode() for name, value in got.headers.items()}
        return SentReply(got.status, shown, got.body)

    async def close(self) -> None:
        return


def answer(reply: EmbeddedReply) -> str:
    """Return a response in one line of limited length, without secret values."""
    document = reply.document
    text = str(document)
    if isinstance(document, dict):
        text = str(document.get("message") or document.get("reason") or "")
        causes = (document.get("details") or {}).get("causes") or ()
        fields = [str(cause.get("field") or "") for cause in causes if isinstance(cause, dict)]
        secret = [field for field in fields if is_secret(last_name(field))]
        if secret:
            text = f"{document.get('reason')}: {', '.join(fields)} (redacted)"
    text = " ".join(text.split())
    if len(text) > _ANSWER:
        text = f"{text[:_ANSWER]}…"
    if text.startswith(str(reply.status)):
        return text
    return f"{reply.status} {text}".strip()


def body_text(body: Any) -> str:
    """Return a request's body as text."""
    if body is None:
        return ""
    text = orjson.dumps(redact(body)).decode()
    return text if len(text) <= _ANSWER else f"{text[:_ANSWER]}…"
