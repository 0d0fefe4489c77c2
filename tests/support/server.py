"""A real server for tests: TLS, tokens, its own event loop in a thread of this process."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from instar.server.lifetime import RunningServer, running
from instar.server.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def warnings(self) -> list[str]:
        return [value for name, value in self.headers if name.lower() == "warning"]

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        return found[0] if found else None


class LiveServer:
    """Talk to it with ``request``; point clients at ``kubeconfig``."""

    def __init__(self, running: RunningServer, loop: asyncio.AbstractEventLoop) -> None:
        self.running = running
        self.loop = loop

    @property
    def url(self) -> str:
        return self.running.url

    @property
    def token(self) -> str:
        return self.running.token

    @property
    def kubeconfig(self) -> Path:
        return self.running.kubeconfig

    def connection(self, timeout: float = 30.0) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cadata=self.running.ca.decode())
        parts = urlsplit(self.url)
        return http.client.HTTPSConnection(
            cast(str, parts.hostname), parts.port, context=context, timeout=timeout
        )

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
        token: str | None = "",
    ) -> Answer:
        """``body``: bytes and str as they are, anything else as JSON. ``token`` None: anonymous."""
        sent = {"Content-Type": content_type, **(headers or {})}
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body)
        connection = self.connection()
        try:
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """In the server's own event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def stored(self, key: str) -> dict[str, Any]:
        """The bytes in the store under ``group/plural/[namespace/]name``, parsed."""
        future = asyncio.run_coroutine_threadsafe(
            self.running.machinery.backend.store.get(key), self.loop
        )
        record = future.result(10)
        assert record is not None, f"nothing is stored at {key}"
        return cast(dict[str, Any], json.loads(record.value))

    def create_crd(self, crd: dict[str, Any]) -> dict[str, Any]:
        version = crd["apiVersion"].partition("/")[2]
        path = f"/apis/apiextensions.k8s.io/{version}/customresourcedefinitions"
        answer = self.request("POST", path, crd)
        assert answer.status == 201, answer.text
        return cast(dict[str, Any], answer.json)


@contextmanager
def live_server(**settings: Any) -> Iterator[LiveServer]:
    """A server until the end of the block; any setting of ``Settings`` by keyword. It is bare
    unless ``furniture`` is asked for: most tests count what they made."""
    started = threading.Event()
    stop: list[asyncio.Event] = []
    servers: list[LiveServer] = []
    failures: list[BaseException] = []

    async def serve() -> None:
        event = asyncio.Event()
        stop.append(event)
        async with running(Settings(**{"port": 0, "furniture": False, **settings})) as server:
            servers.append(LiveServer(server, asyncio.get_running_loop()))
            started.set()
            await event.wait()

    def work() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            failures.append(error)
        finally:
            started.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    started.wait(30)
    if failures:
        raise failures[0]
    try:
        yield servers[0]
    finally:
        servers[0].loop.call_soon_threadsafe(stop[0].set)
        thread.join(30)
    if failures:
        raise failures[0]
