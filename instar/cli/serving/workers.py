"""``instar serve --workers N``: several server processes behind one port, sharing one store.

Called by ``cli/commands/serve.py``. The first process owns the store and shares it
(``wire/storage/workers``); each worker is a whole server. Workers import their code while the first
process reads its store, then receive their settings through standard input. The first process
accepts all connections and distributes them to the workers that are ready. A worker that dies is
replaced; when the first process ends, all workers end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import orjson

from instar.base.supervision import SupervisedTask, Supervision, rest, resting
from instar.server.files.temp_folder import temporary_folder
from instar.server.lifecycle.lifetime import RunningServer, running
from instar.server.lifecycle.metrics_merge import merge_worker_metrics
from instar.server.settings import Settings
from instar.wire.storage.store import Local, unwrapped_store
from instar.wire.storage.workers.arena import Arena, make_file
from instar.wire.storage.workers.arena_reclaim import Reclaimer
from instar.wire.storage.workers.store_server import SharedMemoryStore, StoreServer

log = logging.getLogger(__name__)
_RESTART_SECONDS = 1.0
_GRACE_SECONDS = 10.0
_PIECE = 64 << 10


@contextlib.asynccontextmanager
async def with_workers(
    settings: Settings, args: argparse.Namespace
) -> AsyncIterator[RunningServer]:
    """Run a server in this process and ``args.workers`` - 1 workers; ready when this server is."""
    with temporary_folder("workers-") as folder:
        loans = _arena(settings)
        alone = replace(
            settings,
            cert_dir=settings.cert_dir or folder / "pki",
            shared_port=folder,
            loans=loans,
        )
        files = () if loans is None else (loans.arena.file,)
        workers = [Worker(_command(args, folder), files) for _ in range(1, args.workers)]
        try:
            await asyncio.gather(*(worker.spawn() for worker in workers))
            async with (
                running(alone) as server,
                _shared_store(server, folder, loans),
                merge_worker_metrics(
                    server.machinery.metrics, folder, server.machinery.supervision
                ),
            ):
                orders, supervision = _worker_settings(alone, server), server.machinery.supervision
                try:
                    started = (worker.start(orders, supervision) for worker in workers)
                    await asyncio.gather(*started)
                    yield server
                finally:  # before what the workers depend on
                    await asyncio.gather(*(worker.stop() for worker in workers))
        finally:
            await asyncio.gather(*(worker.stop() for worker in workers))


@contextlib.asynccontextmanager
async def _shared_store(
    server: RunningServer, folder: Path, loans: Reclaimer | None
) -> AsyncIterator[None]:
    backend = server.machinery.backend
    store = unwrapped_store(backend.store)  # each worker has the encryption keys itself
    books = backend.worker_feed
    if books is None and not isinstance(store, Local):
        yield  # workers connect to a cluster by themselves
        return
    lent = None if loans is None or books is None else SharedMemoryStore(loans, books)
    lender = StoreServer(store, folder, lent, server.machinery.supervision)
    await lender.start()
    try:
        yield
    finally:
        await lender.close()


def _arena(settings: Settings) -> Reclaimer | None:
    """Return the shared-memory arena; None with encryption, because then each worker decrypts."""
    if settings.encryption is not None or settings.values != "memory":
        return None
    return Reclaimer(Arena(make_file()))


def _command(args: argparse.Namespace, folder: Path) -> list[str]:
    """Return the command line of a worker."""
    own = ("--workers", "1", "--worker-of", str(folder))
    return [sys.executable, "-m", "instar", "serve", *args.arguments, *own]


def _worker_settings(settings: Settings, server: RunningServer) -> bytes:
    """Return the settings resolved by this process, for the workers."""
    port = urlsplit(server.url).port
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return orjson.dumps([f"{host}:{port}", str(settings.cert_dir)]) + b"\n"


def receive_settings(args: argparse.Namespace, file: int) -> bool:
    """In a worker: wait for the settings; return False if the first process ends before."""
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(file, _PIECE)
        if not piece:
            return False
        line += piece
    args.listen, folder = orjson.loads(line)
    args.cert_dir = Path(folder)
    return True


class Worker:
    """One worker process, restarted until ``stop``."""

    def __init__(self, command: Sequence[str], files: Sequence[int] = ()) -> None:
        """``files`` are inherited under the same descriptor numbers."""
        self._command = command
        self._files = tuple(files)
        self._worker_settings = b""
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: SupervisedTask | None = None

    async def start(self, orders: bytes = b"", supervision: Supervision | None = None) -> None:
        """Start the process; it serves when it is ready."""
        self._worker_settings = orders
        process = self._process or await self.spawn()
        self._send_settings(process)
        self._keeper = (supervision or Supervision()).keep("worker", self._keep)

    async def stop(self) -> None:
        if self._keeper is not None:
            await self._keeper.stop()
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()

    def _send_settings(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        process.stdin.write(self._worker_settings)

    async def spawn(self) -> asyncio.subprocess.Process:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,  # ends with this process, and so does the worker
            stdout=asyncio.subprocess.PIPE,
            pass_fds=self._files,
            start_new_session=True,  # a terminal's interrupt goes to the first process only
        )
        return self._process

    async def _keep(self) -> None:
        while True:
            process = self._process or await self._another()
            reading = asyncio.get_running_loop().create_task(_forward_output(process))
            try:
                with resting():
                    code = await process.wait()
            finally:
                reading.cancel()
            log.warning("worker %d ended with %d; starting another", process.pid, code)
            self._process = None

    async def _another(self) -> asyncio.subprocess.Process:
        while True:
            await rest(_RESTART_SECONDS)
            try:
                process = await self.spawn()
                self._send_settings(process)
                return process
            except OSError as error:
                log.error("a worker cannot be started, trying again: %s", error)


async def _forward_output(process: asyncio.subprocess.Process) -> None:
    """Forward the worker's output: a converter may print, and a full pipe would block it."""
    assert process.stdout is not None
    await process.stdout.readline()  # the line that says it is ready
    while text := await process.stdout.read(_PIECE):
        with contextlib.suppress(OSError):  # the reader of our own output is gone
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()
