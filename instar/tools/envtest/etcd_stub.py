"""Stand-in for the etcd binary: reports that it is healthy, and ends on a signal.

Started by envtest suites. The API server keeps everything in memory. Imports only the standard
library, because a suite waits for this process first.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence
from urllib.parse import urlsplit

from instar.tools.envtest.flags import ETCD, UnknownFlag, help_text, parse_flags

VERSION = "3.6.0"
ANSWER = b'{"health":"true","reason":"instar"}'
"""By this answer the API server recognises the stand-in."""
_PAGES = {
    b"/health": ANSWER,
    b"/version": b'{"etcdserver":"3.6.0","etcdcluster":"3.6.0"}',
}
_LONGEST_LINE = 4096


def main(argv: Sequence[str] | None = None) -> int:
    try:
        flags = parse_flags(sys.argv[1:] if argv is None else argv, ETCD)
    except UnknownFlag as error:
        print(f"flag provided but not defined: {error}", file=sys.stderr)
        return 2
    if "help" in flags or "h" in flags:
        print(help_text("etcd", ETCD))
        return 0
    if "version" in flags:
        print(f"etcd Version: {VERSION}")
        return 0
    listed = flags.get("listen-client-urls", ["http://127.0.0.1:2379"])
    urls = [url for value in listed for url in value.split(",")]
    try:
        return asyncio.run(_serve(urls))
    except OSError as error:
        print(f"etcd: {error}", file=sys.stderr)
        return 1


async def _serve(urls: Sequence[str]) -> int:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    for url in urls:
        parts = urlsplit(url)
        await asyncio.start_server(_answer, parts.hostname, parts.port or 2379, limit=_LONGEST_LINE)
    await ended.wait()
    return 0


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request per connection, which is all that suites send."""
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
