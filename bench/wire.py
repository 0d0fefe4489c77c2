"""In-memory client: passes bytes to a connection of the server and receives its output, in the same
process and event loop.

``bench/operations.py`` uses it to count the cost of the server alone, without TLS, sockets or an
HTTP client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from instar.server.app import EVERY_ANSWER
from instar.server.http.protocols import Connections
from instar.server.lifecycle.lifetime import RunningServer

_LENGTH = b"content-length: "


class Wire(asyncio.Transport):
    """A client with one keep-alive connection; it is the transport of the server's protocol."""

    def __init__(self, connections: Connections, token: str) -> None:
        super().__init__()
        self.writes = 0
        """Number of writes to the transport."""
        self.parts: list[bytes] = []
        self._missing = 0
        self._seen = asyncio.Event()
        self._token = token
        self._protocol = connections()
        self._protocol.connection_made(self)

    def request(
        self, method: str, path: str, body: bytes = b"", media: str = "application/json"
    ) -> bytes:
        return (
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._token}\r\n"
            f"User-Agent: bench\r\nAccept: application/json\r\nContent-Type: {media}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode() + body

    async def ask(self, request: bytes) -> bytes:
        """Send a request; return the whole response as on the wire, including its head."""
        self.parts.clear()
        self._seen.clear()
        self._protocol.data_received(request)
        await asyncio.sleep(0)  # handle each request in a separate loop iteration
        await self._seen.wait()
        return b"".join(self.parts)

    async def get(self, method: str, path: str, body: bytes = b"", media: str = "") -> bytes:
        """Send a request; return the body of the successful response."""
        asked = self.request(method, path, body, media or "application/json")
        head, _, answer = (await self.ask(asked)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 20"), head + answer
        return answer

    async def watch(self, path: str) -> None:
        """Start a watch; its events are counted in ``writes``."""
        self._seen.clear()
        self._protocol.data_received(self.request("GET", path))
        await self._seen.wait()

    async def event(self) -> None:
        """Wait until an event arrives after the previous one."""
        await self._seen.wait()
        self._seen.clear()
        self.parts.clear()

    # --- asyncio -------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        self.writes += 1
        if not self.parts:
            self._missing = _response_length(data)
        self.parts.append(data)
        self._missing -= len(data)
        if self._missing <= 0:
            self._seen.set()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        return

    def pause_reading(self) -> None:
        return

    def resume_reading(self) -> None:
        return

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        raise AssertionError("the server hung up")

    close = abort


def wires(server: RunningServer, count: int) -> list[Wire]:
    """Return clients with the administrator's token, each with its own connection."""
    connections = Connections(server.machinery.app, None, EVERY_ANSWER)
    return [Wire(connections, server.token) for _ in range(count)]


def _response_length(first: bytes) -> int:
    """Return the length of a response from its first chunk; 0 without Content-Length."""
    end = first.find(b"\r\n\r\n") + 4
    at = first.find(_LENGTH, 0, end)
    return 0 if at < 0 else end + int(first[at + len(_LENGTH) : first.find(b"\r\n", at)])
