"""A stand-in for kube-apiserver: our server behind a proxy that behaves worse, as upstream does.

What it changes is described in ``../shared/reference``: it has no ``/instar/…`` paths, wipes
managedFields when an entry names a version that is gone from the CRD, and refuses writes in a
namespace that was finalized by force while its objects still list.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from instar.base.json_values import Object
from instar.wire.client.kubeconfig import load_access
from tests.support.server import LiveServer

_WRITES = ("PATCH", "PUT")
Passing = Callable[[str, str, bool], bool]
Meddle = Callable[[str, str, Any], tuple[int, Object] | None]


class Upstream(LiveServer):
    """Use it where a ``LiveServer`` is expected; ``request`` still goes past the proxy."""

    def __init__(self, behind: LiveServer, folder: Path) -> None:
        super().__init__(behind.running, behind.loop)
        self.folder = folder
        self.lost_namespaces: set[str] = set()
        self.wipes: Callable[[Object], bool] = lambda obj: False
        """Asked per write besides the rule of vanished versions, with the entries that would be."""
        self.down = False
        self.meddle: Meddle = lambda method, path, body: None
        """An answer instead of the server's, if it wants to give one."""
        self.hidden: set[str] = set()
        """Names that lists leave out."""
        self.passing: Passing = lambda method, path, answered: False
        """Asked before and after the server has a write; True: hang up instead of an answer."""
        self.is_real = False
        """The server behind is kube-apiserver itself, so nothing needs to be imitated."""
        self.seen: list[tuple[str, str]] = []
        self.port = 0

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def connection(self, timeout: float = 30.0) -> http.client.HTTPSConnection:
        """A real server has a certificate of its own making."""
        if self.ca:
            return super().connection(timeout)
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        address = self.url.removeprefix("https://")
        return http.client.HTTPSConnection(address, context=context, timeout=timeout)

    def write_kubeconfig(self) -> None:
        cluster = {"server": f"http://127.0.0.1:{self.port}"}
        document = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": self.token}}],
        }
        self.kubeconfig.write_text(json.dumps(document))

    async def answer(self, request: web.Request, session: aiohttp.ClientSession) -> web.Response:
        method, path = request.method, request.path
        body = await request.read()
        self.seen.append((method, path))
        if self.down:
            return _hung_up(request)
        if path.startswith("/instar/"):
            return _status(404, "the server could not find the requested resource")
        given = self.meddle(method, path, json.loads(body) if body else None)
        if given is not None:
            return web.json_response(given[1], status=given[0])
        if method in _WRITES and "/namespaces/" in path:
            namespace = path.split("/namespaces/")[1].split("/")[0]
            if namespace in self.lost_namespaces:
                details = {"name": namespace, "kind": "namespaces"}
                return _status(404, f'namespaces "{namespace}" not found', details)
            if not self.is_real:
                try:
                    body = await self._as_upstream_would(path, body, session)
                except aiohttp.ClientError:
                    return _hung_up(request)
        counts = method in _WRITES and "dryRun" not in request.query
        if counts and self.passing(method, path, False):
            return _hung_up(request)
        url = f"{self.running.url}{request.path_qs}"
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in ("host", "content-length", "accept-encoding")
        }
        try:
            asking = session.request(method, url, data=body or None, headers=headers)
            async with asking as answer:
                data = await answer.read()
        except aiohttp.ClientError:
            return _hung_up(request)
        if counts and self.passing(method, path, True):
            return _hung_up(request)
        if path == "/version":
            data = data.replace(b"+instar.", b"+")
        if self.hidden and method == "GET" and data.startswith(b'{"apiVersion"'):
            data = self._without_hidden(data)
        kept = {"Content-Type": answer.headers.get("Content-Type", "application/json")}
        return web.Response(status=answer.status, body=data, headers=kept)

    def _without_hidden(self, data: bytes) -> bytes:
        document = json.loads(data)
        if "items" in document:
            document["items"] = [
                item for item in document["items"] if item["metadata"]["name"] not in self.hidden
            ]
        return json.dumps(document).encode()

    async def _as_upstream_would(
        self, path: str, body: bytes, session: aiohttp.ClientSession
    ) -> bytes:
        """The body, with managedFields reset where upstream forgets them."""
        if "/apis/" not in path or not body:
            return body
        group = path.split("/")[2]
        plural = path.split("/namespaces/")[1].split("/")[1]
        auth = {"Authorization": f"Bearer {self.token}"}
        async with session.get(f"{self.running.url}{path}", headers=auth) as answer:
            obj = await answer.json()
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        crd_url = f"{self.running.url}{crds}/{plural}.{group}"
        async with session.get(crd_url, headers=auth) as answer:
            crd = await answer.json()
        if "spec" not in crd or "metadata" not in obj:
            return body
        change = json.loads(body)
        sent = (change.get("metadata") or {}).get("managedFields")
        entries = sent or obj["metadata"].get("managedFields") or []
        known = {f"{group}/{version['name']}" for version in crd["spec"]["versions"]}
        vanished = any(entry["apiVersion"] not in known for entry in entries)
        owned = {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}
        if vanished or self.wipes(owned):
            change.setdefault("metadata", {})["managedFields"] = [{}]
        return json.dumps(change).encode()


def _hung_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.close()
    return web.Response()


def _status(code: int, message: str, details: Object | None = None) -> web.Response:
    body: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": "NotFound",
        "details": details or {},
        "code": code,
    }
    return web.json_response(body, status=code)


@contextmanager
def upstream(behind: LiveServer, folder: Path) -> Iterator[Upstream]:
    proxy = Upstream(behind, folder)
    loop = asyncio.new_event_loop()
    started, stopping = threading.Event(), asyncio.Event()

    async def serve() -> None:
        tls = load_access(behind.kubeconfig).ssl_context()
        connector = aiohttp.TCPConnector(ssl=tls if tls else True)
        async with aiohttp.ClientSession(connector=connector) as session:
            app = web.Application(client_max_size=16 << 20)

            async def handle(request: web.Request) -> web.Response:
                return await proxy.answer(request, session)

            app.router.add_route("*", "/{tail:.*}", handle)
            runner = web.AppRunner(app)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            proxy.port = runner.addresses[0][1]
            proxy.write_kubeconfig()
            started.set()
            await stopping.wait()
            await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    started.wait(20)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(20)
        loop.close()
