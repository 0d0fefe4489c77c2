"""Serves an ASGI application over TLS with uvicorn: reloads certificates, drains before it
stops.

``instar webhook`` calls it; public as ``instar.sdk.serving``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from instar.base.fast_dataclass import dataclass
from instar.tools.sdk.asgi import ConversionApp

_log = logging.getLogger(__name__)
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    cert: Path
    key: Path
    client_ca: Path | None = None
    """Only clients with a certificate of this authority may connect."""

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.load_into(context)
        if self.client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def load_into(self, context: ssl.SSLContext) -> None:
        """Load the files into a context; new connections use them."""
        try:
            context.load_cert_chain(self.cert, self.key)
        except OSError as error:
            raise _unusable(error, self.cert, self.key) from error
        if self.client_ca is not None:
            try:
                context.load_verify_locations(self.client_ca)
            except OSError as error:
                raise _unusable(error, self.client_ca) from error

    def fingerprint(self) -> tuple[object, ...]:
        """Return a value that changes when a file is rewritten or a mounted Secret is updated."""
        files = (self.cert, self.key, *([self.client_ca] if self.client_ca else []))
        marks = []
        for file in files:
            stat = file.stat()
            marks.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
        return tuple(marks)


def _unusable(error: OSError, *files: Path) -> OSError:
    """Return an error that names the file, because errors of OpenSSL do not."""
    for file in files:
        try:
            file.open("rb").close()
        except OSError as found:
            return OSError(f"{file}: {found.strerror}")
    told = getattr(error, "reason", None) or error.strerror or error
    return OSError(f"{' and '.join(map(str, files))}: not usable as PEM: {told}")


def parse_listen(text: str) -> tuple[str, int]:
    """Parse ``:9443``, ``127.0.0.1:9443`` or ``[::1]:9443``; no host means all interfaces."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text!r} is not an address like :9443 or 127.0.0.1:9443")
    return host.strip("[]"), int(port)


def listen(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        sock = socket.create_server(
            ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024
        )
    else:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.create_server((host, port), family=family, backlog=1024)
    # asyncio sets this on sockets it makes itself, not on ours; without it every answer waits
    # 40 ms for the client's delayed acknowledgement. Accepted sockets inherit it.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


async def serve(
    app: ConversionApp,
    sock: socket.socket,
    tls: TlsFiles | None,
    *,
    stop: asyncio.Event,
    drain: float = 0,
    reload_every: float = 5,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Run until ``stop``; then ``/readyz`` fails for ``drain`` seconds, then requests finish."""

    class ReloadingServer(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # the caller owns the signals, through ``stop``

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started()

    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        log_level="warning",
        lifespan="on",
        server_header=False,
        timeout_keep_alive=120,
        timeout_graceful_shutdown=25,
    )
    config.load()
    context = tls.context() if tls else None
    config.ssl = context
    server = ReloadingServer(config)

    def exit_now() -> None:
        server.should_exit = True

    tasks = [asyncio.create_task(_stop_gently(exit_now, app, stop, drain))]
    if tls is not None and context is not None:
        tasks.append(asyncio.create_task(reload_certificates(tls, context, every=reload_every)))
    try:
        await server.serve(sockets=[sock])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _stop_gently(
    exit_now: Callable[[], None], app: ConversionApp, stop: asyncio.Event, drain: float
) -> None:
    await stop.wait()
    app.draining = True
    if drain > 0:
        await asyncio.sleep(drain)
    exit_now()


async def reload_certificates(tls: TlsFiles, context: ssl.SSLContext, *, every: float) -> None:
    """Poll the files; files that are only partly written are tried again at the next poll."""
    loaded = tls.fingerprint()
    while True:
        await asyncio.sleep(every)
        try:
            found = tls.fingerprint()
            if found == loaded:
                continue
            tls.load_into(context)
        except (OSError, ssl.SSLError) as error:
            _log.warning("the certificate files changed but cannot be used yet: %s", error)
        else:
            loaded = found
            _log.info("certificates reloaded")


def stop_on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop.set)
