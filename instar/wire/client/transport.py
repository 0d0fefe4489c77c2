"""Protocol between ``Client`` and the sender of its requests: HTTP, or an embedded server.

Implemented by ``http.py``, the embedded host of the console and the rehearsal sandbox.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class ClientReply(NamedTuple):
    """Status, headers and body of a response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionLost(Exception):
    """The connection failed, or broke before the end of the answer; ``str()`` is the cause."""


class Sender(Protocol):
    """Sends the requests of a ``Client``."""

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


class StreamedReply(Protocol):
    """A response that is being read."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield chunks as they arrive. Raises ``ConnectionLost``."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class StreamingSender(Protocol):
    """A sender whose responses can be read while they arrive, for watches."""

    async def open(
        self,
        method: str,
        url: str,
        *,
        headers: Sequence[tuple[str, str]],
        body: bytes | None = None,
        server_name: str | None = None,
    ) -> StreamedReply: ...
