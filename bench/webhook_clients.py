"""Compares the caller's CPU time of a webhook call: our own client and aiohttp.

``python -m bench.webhook_clients``: one TLS server in another process, a body of the size of a
review, keep-alive, alternating rounds. It measures CPU per call, because wall time varies on a
shared machine.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import trustme

from instar.wire.webhooks.dialer import Dialer
from instar.wire.webhooks.https import HttpsClient
from instar.wire.webhooks.resolver import ServiceResolver

_BODY = b'{"kind":"ConversionReview","request":{"objects":[' + b'{"spec":{}},' * 120 + b"{}]}}"
_CALLS, _ROUNDS, _AT_ONCE = 2_000, 4, 8
Post = Callable[[str, bytes], Awaitable[object]]


def _serve(folder: str, port: object) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        try:
            while True:
                text = await reader.readuntil(b"\r\n\r\n")
                size = int(text.lower().partition(b"content-length:")[2].split()[0])
                body = await reader.readexactly(size)
                writer.write(head % len(body) + body)
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    async def run() -> None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(f"{folder}/cert.pem")
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
        port.value = server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        await server.serve_forever()

    asyncio.run(run())


async def _no_service(namespace: str, name: str) -> None:
    return None


async def _measure(post: Post, url: str) -> float:
    """Return the microseconds of CPU per call."""

    async def caller() -> None:
        for _ in range(_CALLS // _AT_ONCE):
            await post(url, _BODY)

    began = time.process_time()
    await asyncio.gather(*(caller() for _ in range(_AT_ONCE)))
    return (time.process_time() - began) / _CALLS * 1e6


async def _compare(url: str, tls: ssl.SSLContext) -> None:
    ours = HttpsClient(tls, Dialer(None, ServiceResolver({}, _no_service)), None, 1 << 24)
    connector = aiohttp.TCPConnector(limit=0, ssl=tls)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def theirs(url: str, body: bytes) -> bytes:
            async with session.post(url, data=body) as answer:
                return await answer.read()

        found: dict[str, list[float]] = {"ours": [], "aiohttp": []}
        for _ in range(_ROUNDS):
            found["ours"].append(await _measure(ours.post, url))
            found["aiohttp"].append(await _measure(theirs, url))
    await ours.close()
    for name, values in found.items():
        print(f"{name}: {min(values):.0f} µs of CPU per call (of {len(values)} rounds the best)")


def main() -> None:
    authority = trustme.CA()
    tls = ssl.create_default_context()
    authority.configure_trust(tls)
    with tempfile.TemporaryDirectory() as folder:
        pem = authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem
        pem.write_to_path(str(Path(folder) / "cert.pem"))
        port = multiprocessing.Value("i", 0)
        server = multiprocessing.Process(target=_serve, args=(folder, port), daemon=True)
        server.start()
        while not port.value:
            time.sleep(0.01)
        try:
            asyncio.run(_compare(f"https://127.0.0.1:{port.value}/convert", tls))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
