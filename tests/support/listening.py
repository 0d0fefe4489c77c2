"""Stops asyncio servers of tests without losing a connection accepted at that moment."""

from __future__ import annotations

import asyncio


async def stop_listening(server: asyncio.Server) -> None:
    """Close the server after asyncio has reported every connection that it accepted.

    asyncio makes the transport of a connection one loop turn after it accepted the connection. In
    Python 3.11 that fails if the server was closed in between, and the socket is left open until
    it is garbage, which pytest reports as an error.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    for _ in range(3):  # the task that makes the transport, its protocol, the protocol's callback
        await asyncio.sleep(0)
    server.close()
