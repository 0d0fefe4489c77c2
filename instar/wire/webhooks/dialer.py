"""TCP dialer: connects to a host, or to the backend of a Service.

Used by ``connecting.py``, which adds TLS.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import NamedTuple

from instar.wire.webhooks import dial_errors
from instar.wire.webhooks.resolver import HostPort, Resolver, Unresolved

HEAD_START = 0.3
"""Seconds before the next address of the same name is tried in parallel, as in Go."""
AddressInfo = tuple[
    int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
]
"""What ``getaddrinfo`` returns."""


class Dialled(NamedTuple):
    """An open TCP connection and the address it goes to."""

    socket: socket.socket
    address: str
    """As Go prints it."""


class NotConnected(Exception):
    """No connection could be made; ``explained`` is the cause in Go's words."""

    def __init__(self, explained: dial_errors.Explained) -> None:
        super().__init__(explained.text)
        self.explained = explained


class Dialer:
    """Dials a host, or the backend of the one Service it was created for."""

    def __init__(self, service: tuple[str, str, int] | None, resolver: Resolver) -> None:
        self._service = service
        self._resolver = resolver

    async def dial(self, host: str, port: int) -> Dialled:
        """Open a TCP connection. Raises ``NotConnected``."""
        target = HostPort(host, port)
        if self._service is not None:
            try:
                target = await self._resolver.resolve(*self._service)
            except Unresolved as error:
                raise NotConnected(dial_errors.Explained(str(error), error.advice)) from error
        if not 0 <= target.port < 65536:
            raise NotConnected(dial_errors.invalid_port(target.port))
        try:
            found = await _addresses(target)
        except (socket.gaierror, UnicodeError) as error:
            raise NotConnected(self._lookup_failure(target)) from error
        return await _first_to_connect(found)

    def _lookup_failure(self, target: HostPort) -> dial_errors.Explained:
        if self._service is None:
            return dial_errors.lookup_failure(target.host)
        namespace, name, _ = self._service
        if target.host != f"{name}.{namespace}.svc":
            return dial_errors.Explained(
                f"dial tcp: lookup {target.host}: no such host",
                f'the service "{name}" points to {target.host}, which has no address here',
            )
        return dial_errors.Explained(
            f'service "{name}" not found',
            f"no --service mapping and no Service object gives an address for {namespace}/{name}, "
            f"and DNS does not know {target.host}",
        )


def address_text(host: object, port: object) -> str:
    """Format host and port as Go prints them."""
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


async def _addresses(target: HostPort) -> Sequence[AddressInfo]:
    try:
        return socket.getaddrinfo(*target, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        loop = asyncio.get_running_loop()
        return await loop.getaddrinfo(*target, type=socket.SOCK_STREAM)


async def _first_to_connect(addresses: Sequence[AddressInfo]) -> Dialled:
    """Try the addresses in order, starting the next one when one neither connects nor fails."""
    if len(addresses) == 1:
        return await _connect(addresses[0])
    waiting = list(addresses)
    running: set[asyncio.Task[Dialled]] = set()
    failures: list[BaseException] = []
    try:
        while waiting or running:
            if waiting:
                running.add(asyncio.create_task(_connect(waiting.pop(0))))
            done, running = await asyncio.wait(
                running,
                timeout=HEAD_START if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            failures += [failure for task in done if (failure := task.exception())]
            made = [task for task in done if task.exception() is None]
            if made:
                running.update(made[1:])
                return made[0].result()
        raise failures[0]
    finally:
        for task in running:
            task.cancel()
            task.add_done_callback(_close_result)


def _close_result(task: asyncio.Task[Dialled]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().socket.close()


async def _connect(info: AddressInfo) -> Dialled:
    family, kind, protocol, _, address = info
    text = address_text(*address[:2])
    try:
        made = socket.socket(family, kind, protocol)
        try:
            made.setblocking(False)
            await asyncio.get_running_loop().sock_connect(made, address)
        except BaseException:
            made.close()
            raise
    except OSError as error:
        raise NotConnected(dial_errors.connect_failure(text, error)) from error
    return Dialled(made, text)
