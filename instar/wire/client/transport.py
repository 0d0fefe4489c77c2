"""What a client needs of whatever carries its requests: over a network, or to a server in the same
process. Knows no HTTP library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class ClientReply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionLost(Exception):
    """No connection, or none until the end of the answer; ``str()`` says why."""


class Sender(Protocol):
    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | Sequence[tuple[str, str]],
        body: bytes | None = None,
        query: Mapping[str, str] | None = None,
        server_name: str | None = None,
    ) -> ClientReply:
        """Raises ``TimeoutError`` or ``ConnectionLost``; any answer at all is a reply."""
        ...

    async def close(self) -> None: ...
