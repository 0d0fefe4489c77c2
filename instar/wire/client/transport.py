"""Protocol between ``Client`` and what sends its requests: HTTP, or an embedded server.

Implemented by ``http.py``, the embedded host of the console and the rehearsal sandbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class ClientReply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionLost(Exception):
    """The connection failed, or broke before the end of the answer; ``str()`` says why."""


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
        """Send a request. Raises ``TimeoutError`` or ``ConnectionLost``; any status is a reply."""
        ...

    async def close(self) -> None: ...
