"""Stand-in for the etcd binary: answers health checks, and ends on a signal.

Started by envtest suites. The API server keeps everything in memory. This module imports only the
standard library, because a suite waits for this process first.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import sys
from collections.abc import Sequence
from urllib.parse import urlsplit

from instar.base.parent_watch import wait_for_orphaning
from instar.tools.envtest.flags import (
    ETCD,
    EXIT_WITH_PARENT,
    Flags,
    UnknownFlag,
    help_text,
    parse_flags,
)

VERSION = "3.6.0"
ANSWER = b'{"health":"true","reason":"instar"}'
"""By this answer the API server recognises the stand-in."""
_PAGES = {
    b"/health": ANSWER,
    b"/version": b'{"etcdserver":"3.6.0","etcdcluster":"3.6.0"}',
}
_LONGEST_LINE = 4096


_WITHOUT_MEANING = frozenset(
    {
        *("data-dir", "wal-dir", "name", "unsafe-no-fsync", "listen-client-urls", EXIT_WITH_PARENT),
        *("listen-peer-urls", "advertise-client-urls", "initial-advertise-peer-urls"),
        *("initial-cluster", "initial-cluster-state", "initial-cluster-token"),
        *("cert-file", "key-file", "trusted-ca-file", "client-cert-auth"),
    }
)
"""Flags that are honoured, or that say where and how a store of its own would keep its data."""


def main(argv: Sequence[str] | None = None) -> int:
    try:
        given = sys.argv[1:] if argv is None else argv
        flags = parse_flags(given, ETCD, shorthands=False)
    except UnknownFlag as error:
        print(f"flag provided but not defined: {error}", file=sys.stderr)
        return 2
    if "help" in flags or "h" in flags:
        print(help_text("etcd", ETCD, without=[EXIT_WITH_PARENT]))
        return 0
    if "version" in flags:
        print(f"etcd Version: {VERSION}")
        return 0
    ignored = sorted(flags.keys() - _WITHOUT_MEANING)
    if ignored:
        told = " ".join(f"--{name}" for name in ignored)
        print(f"instar: accepted without effect: {told}", file=sys.stderr)
    listed = flags.get("listen-client-urls", ["http://127.0.0.1:2379"])
    urls = [url for value in listed for url in value.split(",")]
    try:
        parent = os.getppid() if flags.get(EXIT_WITH_PARENT) == ["true"] else None
        return asyncio.run(_serve(urls, _tls(flags), parent))
    except OSError as error:
        print(f"etcd: {error}", file=sys.stderr)
        return 1


def _tls(flags: Flags) -> ssl.SSLContext | None:
    """Return the TLS context for https URLs; None without a certificate."""
    if "cert-file" not in flags or "key-file" not in flags:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(flags["cert-file"][-1], flags["key-file"][-1])
    if "trusted-ca-file" in flags:
        context.load_verify_locations(flags["trusted-ca-file"][-1])
    if flags.get("client-cert-auth", ["false"])[-1] == "true":
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def _serve(urls: Sequence[str], tls: ssl.SSLContext | None, parent: int | None) -> int:
    """Serve until a signal arrives or the parent process ends."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    for url in urls:
        parts = urlsplit(url)
        context = tls if parts.scheme == "https" else None
        await asyncio.start_server(
            _answer, parts.hostname, parts.port or 2379, limit=_LONGEST_LINE, ssl=context
        )
    if parent is not None:
        watching = loop.create_task(wait_for_orphaning(parent, os.getppid))
        watching.add_done_callback(lambda _: ended.set())
    await ended.wait()
    return 0


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request and close the connection, which is enough for suites."""
    with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError):
        words = (await reader.readline()).split()
        while (await reader.readline()).strip():
            pass
        body = _PAGES.get(words[1] if len(words) > 1 else b"")
        code = b"200 OK" if body is not None else b"404 Not Found"
        writer.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
            b"Connection: close\r\n\r\n%b" % (code, len(body or b""), body or b"")
        )
        await writer.drain()
    writer.close()


if __name__ == "__main__":
    sys.exit(main())
