"""What a client needs of whoever carries its requests: bytes there, bytes back.

Over HTTP that is ``http.py``; a server in the same process can be asked without any connection.
Knows no Kubernetes and no library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class Lost(Exception):
    """No connection, or none until the end of the answer; ``str()`` says why."""


class Transport(Protocol):
    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | Sequence[tuple[str, str]],
        body: bytes | None = None,
        query: Mapping[str, str] | None = None,
        server_name: str | None = None,
    ) -> Reply:
        """Raises ``TimeoutError`` or ``Lost``; any answer at all is a reply."""
        ...

    async def close(self) -> None: ...
