"""A client without a socket: bytes go into a connection of the server and come out of it, in this
process and in this event loop. What is counted here is ours alone: no TLS, no kernel, no client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from instar.server.app import EVERY_ANSWER
from instar.server.http.http1 import Connections
from instar.server.lifecycle.lifetime import RunningServer

_LENGTH = b"content-length: "


class Wire(asyncio.Transport):
    """One client that keeps its connection."""

    def __init__(self, connections: Connections, token: str) -> None:
        super().__init__()
        self.writes = 0
        """How often the server handed bytes to the system."""
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
        """The whole answer to a request as it goes over the wire, its head included."""
        self.parts.clear()
        self._seen.clear()
        self._protocol.data_received(request)
        await asyncio.sleep(0)  # each request in a turn of its own
        await self._seen.wait()
        return b"".join(self.parts)

    async def get(self, method: str, path: str, body: bytes = b"", media: str = "") -> bytes:
        """The body of an answer, which is no refusal."""
        asked = self.request(method, path, body, media or "application/json")
        head, _, answer = (await self.ask(asked)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 20"), head + answer
        return answer

    async def watch(self, path: str) -> None:
        """From now on its events come, and are counted by ``writes``."""
        self._seen.clear()
        self._protocol.data_received(self.request("GET", path))
        await self._seen.wait()

    async def event(self) -> None:
        """Until something has come since the last."""
        await self._seen.wait()
        self._seen.clear()
        self.parts.clear()

    # --- asyncio -------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        self.writes += 1
        if not self.parts:
            self._missing = _whole(data)
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
    """Clients of an administrator's, on connections of their own."""
    connections = Connections(server.machinery.app, None, EVERY_ANSWER)
    return [Wire(connections, server.token) for _ in range(count)]


def _whole(first: bytes) -> int:
    """How long an answer is, by what came of it first; 0 where only its end will tell."""
    end = first.find(b"\r\n\r\n") + 4
    at = first.find(_LENGTH, 0, end)
    return 0 if at < 0 else end + int(first[at + len(_LENGTH) : first.find(b"\r\n", at)])
