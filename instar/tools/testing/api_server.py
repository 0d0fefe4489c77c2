"""Runs a real API server for the duration of a ``with`` block: TLS, token, event loop in a thread.

Used through ``instar.testing`` and by the pytest plugin. The server shares only the process with a
test, so tests may be synchronous, use asyncio or trio, or start clients in other languages.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import ssl
import threading
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote, urlsplit

import orjson
import uvloop

from instar.base.fast_dataclass import dataclass
from instar.server.lifecycle.lifetime import RunningServer, running
from instar.server.settings import Settings
from instar.tools.testing.manifests import INSTALL_IT, Source, read_manifests

if TYPE_CHECKING:
    from instar.tools.snapshots.captured_cluster import CapturedCluster
    from instar.tools.snapshots.loading import Loaded

log = logging.getLogger(__name__)
T = TypeVar("T")

_PATIENCE = 30.0
_GRACE = 0.02
"""Stop without waiting: requests that a test left open have no reader any more."""
_MANAGER = "instar-testing"


@dataclass(frozen=True)
class Answer:
    """The server's answer to one request."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def warnings(self) -> list[str]:
        return [value for name, value in self.headers if name.lower() == "warning"]

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        return found[0] if found else None


class ManifestRejected(Exception):
    """The server rejected a manifest; ``answer`` is its Status."""

    def __init__(self, what: str, answer: Answer, why: str = "") -> None:
        super().__init__(f"{what}: {why or _message(answer)}")
        self.answer = answer


class Server:
    """A running server. Use ``kubeconfig`` for clients, or send requests with ``request``."""

    def __init__(self, running: RunningServer, loop: asyncio.AbstractEventLoop) -> None:
        self.running = running
        self.loop = loop

    def __repr__(self) -> str:
        return f"<instar Server {self.url}, kubeconfig {self.kubeconfig}>"

    @property
    def url(self) -> str:
        return self.running.url

    @property
    def token(self) -> str:
        """Return an administrator's token."""
        return self.running.token

    @property
    def ca(self) -> bytes:
        return self.running.ca

    @property
    def kubeconfig(self) -> Path:
        return self.running.kubeconfig

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
        """Send a request. ``body``: bytes and str as given, else as JSON. ``token`` None:
        anonymous."""
        sent = {"Content-Type": content_type, **(headers or {})}
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        if body is not None and not isinstance(body, bytes | str):
            body = orjson.dumps(body)
        connection = self.connection()
        try:
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def connection(self, timeout: float = _PATIENCE) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cadata=self.ca.decode())
        parts = urlsplit(self.url)
        return http.client.HTTPSConnection(
            cast(str, parts.hostname), parts.port, context=context, timeout=timeout
        )

    def install(self, *sources: Source, namespace: str = "default") -> list[dict[str, Any]]:
        """Create or update objects from files, folders or plain objects: CRDs first, then the rest.

        Returns the objects as stored. CRDs are established when this returns.
        """
        manifests = [one for source in sources for one in read_manifests(source)]
        manifests.sort(key=lambda one: one.get("kind") != "CustomResourceDefinition")
        return [self._apply(manifest, namespace) for manifest in manifests]

    def served_at(self, prefix: str) -> set[str]:
        """Return the plural names of the resources below a path such as /apis/GROUP/VERSION."""
        answer = self.request("GET", prefix)
        if answer.status >= 400:
            return set()
        return {resource["name"] for resource in answer.json["resources"]}

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the server's event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(_PATIENCE)

    def _apply(self, manifest: Mapping[str, Any], namespace: str) -> dict[str, Any]:
        metadata = manifest.get("metadata") or {}
        what = f"{manifest.get('kind')} {metadata.get('name')}"
        path = self._path(manifest, metadata.get("namespace") or namespace, what)
        answer = self.request(
            "PATCH",
            f"{path}/{quote(str(metadata.get('name', '')))}?fieldManager={_MANAGER}&force=true",
            manifest,
            content_type="application/apply-patch+yaml",
        )
        if answer.status >= 400:
            raise ManifestRejected(what, answer)
        return cast(dict[str, Any], answer.json)

    def _path(self, manifest: Mapping[str, Any], namespace: str, what: str) -> str:
        """Find the path by discovery, as kubectl does."""
        version = str(manifest.get("apiVersion", ""))
        prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
        answer = self.request("GET", prefix)
        if answer.status == 404:
            why = f"no installed CRD serves a kind at {version}. {INSTALL_IT}"
            raise ManifestRejected(what, answer, why)
        if answer.status >= 400:
            raise ManifestRejected(what, answer)
        for resource in answer.json["resources"]:
            if resource["kind"] == manifest.get("kind") and "/" not in resource["name"]:
                inside = f"/namespaces/{quote(namespace)}" if resource["namespaced"] else ""
                return f"{prefix}{inside}/{resource['name']}"
        raise LookupError(f"{what}: no installed CRD serves this kind at {version}. {INSTALL_IT}")


@contextlib.contextmanager
def server(from_: str | Path | None = None, **settings: Any) -> Iterator[Server]:
    """Run a server until the end of the block: memory store, any free port. Keywords are fields of
    ``instar.server.Settings``. ``from_`` loads a snapshot, a folder of manifests or a dump, without
    controllers that would change it; its problems are logged.
    """
    _keep_quiet()
    captured = {} if from_ is None else _captured(str(from_))
    chosen = Settings(**{"port": 0, "grace_seconds": _GRACE, **captured, **settings})
    with in_thread(chosen) as (running_server, loop):
        yield Server(running_server, loop)


def _captured(source: str) -> dict[str, Any]:
    # Imported here, because most test servers start empty.
    from instar.tools.snapshots.loading import store_filler

    def told(world: CapturedCluster, _: Loaded) -> None:
        for problem in world.problems:
            log.warning("%s: %s", source, problem)

    fill = store_filler(source, told, trust_access=True)
    return {"fill": fill, "collect_garbage": False, "bootstrap_objects": False}


def _keep_quiet() -> None:
    """Silence the access log, unless the test's author has configured it."""
    access = logging.getLogger("instar.access")
    if access.level == logging.NOTSET:
        access.setLevel(logging.WARNING)


@contextlib.contextmanager
def in_thread(settings: Settings) -> Iterator[tuple[RunningServer, asyncio.AbstractEventLoop]]:
    """Run the server in a thread and yield it with its loop. Failures of both threads raise
    here.
    """
    life = _ThreadState(settings)
    thread = threading.Thread(target=life.work, name="instar", daemon=True)
    thread.start()
    try:
        if not life.started.wait(_PATIENCE):
            raise TimeoutError(f"the server did not start within {_PATIENCE:g} s")
        life.check()
        assert life.server is not None
        yield life.server, life.loop
    finally:
        life.end()
        thread.join(_PATIENCE)
    life.check()


class _ThreadState:
    """State shared by the two threads of one server."""

    def __init__(self, settings: Settings) -> None:
        self.started = threading.Event()
        self.server: RunningServer | None = None
        self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self._settings = settings
        self._stop = asyncio.Event()
        self._failure: BaseException | None = None

    def work(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self.started.set()

    def end(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: it ended by itself
            self.loop.call_soon_threadsafe(self._stop.set)

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _serve(self) -> None:
        async with running(self._settings) as self.server:
            self.started.set()
            await self._stop.wait()


def _message(answer: Answer) -> str:
    try:
        return str(answer.json["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status}"
