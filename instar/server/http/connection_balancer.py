"""Connection balancer: shares the connections of one port evenly between processes.

``lifecycle/http_port.py`` opens the port with it. If the kernel distributed them, each connection
would go to the process that its address hashes to, and a single process might get most of a few
dozen long-lived connections. With this module the first process accepts all connections and passes
each socket to the process that has the fewest; that process does TLS and HTTP. A process that has
ended gets no more connections.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Protocol

from instar.base.supervision import report_failure

log = logging.getLogger(__name__)
SOCKET = "port.sock"
_BACKLOG = 1024
_AT_ONCE = 64
"""Connections accepted in one turn of the event loop."""
_SCARCE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_SECONDS = 1.0
_NEWS = 4096
_GIVEN, _TAKEN, _ENDED = b"*", b"+", b"-"
"""Messages on the line to a worker: here is a connection; it was taken; it has ended."""
_STUCK_SECONDS = 1.0
"""A worker that has not taken earlier connections for so long gets no more."""


class ProtocolFactory(Protocol):
    """Makes the protocol of a connection, and calls ``parted`` when one has ended."""

    parted: Callable[[], None]

    def __call__(self) -> asyncio.BaseProtocol: ...


class ListeningPort(Protocol):
    """A port that is listened on, by this process or by the first of several."""

    port: int

    async def start_serving(self) -> None: ...

    def close(self) -> None: ...


class SingleProcessPort:
    """The port of a single process: the event loop accepts its connections."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self.port = int(server.sockets[0].getsockname()[1])

    @classmethod
    async def open(cls, make: ProtocolFactory, host: str, port: int) -> SingleProcessPort:
        loop = asyncio.get_running_loop()
        return cls(await loop.create_server(make, host, port, backlog=_BACKLOG))

    async def start_serving(self) -> None:
        """Do nothing: the port serves as soon as it is open."""

    def close(self) -> None:
        self._server.close()


class _LocalConnections:
    """Serves accepted sockets in this process."""

    def __init__(self, make: ProtocolFactory, parted: Callable[[], None]) -> None:
        self._make = make
        make.parted = self._parted = parted
        self._joining: set[asyncio.Task[None]] = set()

    def give(self, taken: socket.socket) -> bool:
        task = asyncio.get_running_loop().create_task(self._join(taken))
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)
        return True

    async def _join(self, taken: socket.socket) -> None:
        try:
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(self._make, taken)
        except OSError as error:  # the client has hung up already
            log.debug("a connection could not be served: %s", error)
            taken.close()
            self._parted()
        except Exception as error:
            report_failure("reception", error)
            taken.close()
            self._parted()


class BalancingPort:
    """The port in the first of several processes: accepts connections and distributes them."""

    def __init__(
        self, doors: list[socket.socket], meeting: socket.socket, make: ProtocolFactory
    ) -> None:
        self._doors = doors
        self._meeting = meeting
        self._path = Path(meeting.getsockname())
        self.port = int(doors[0].getsockname()[1])
        own = _ServingProcess(lambda taken: here.give(taken))
        here = _LocalConnections(make, own.parted)
        self._own = own
        self._seats = {own}
        self._workers: set[_WorkerConnection] = set()
        self._turns = count(1)

    @classmethod
    async def open(cls, make: ProtocolFactory, host: str, port: int, folder: Path) -> BalancingPort:
        """Bind the port and the socket for workers. Raises ``OSError``."""
        doors, meeting = await _bind_sockets(host, port), socket.socket(socket.AF_UNIX)
        try:
            meeting.bind(str(folder / SOCKET))
            for each in (*doors, meeting):
                each.setblocking(False)
                each.listen(_BACKLOG)
        except OSError:
            for each in (*doors, meeting):
                each.close()
            raise
        made = cls(doors, meeting, make)
        made._open()
        return made

    async def start_serving(self) -> None:
        """Do nothing: the port serves as soon as it is open, and answers health checks
        meanwhile."""

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        for each in (*self._doors, self._meeting):
            loop.remove_reader(each)
            each.close()
        for worker in tuple(self._workers):
            worker.close()
        self._path.unlink(missing_ok=True)

    def _open(self) -> None:
        _read(self._meeting, self._meet)
        for door in self._doors:
            _read(door, partial(self._take, door))

    def _meet(self) -> None:
        line = _accept(self._meeting)
        if line is not None:
            worker = _WorkerConnection(line, self._left)
            self._workers.add(worker)
            self._seats.add(worker.seat)

    def _left(self, worker: _WorkerConnection) -> None:
        self._workers.discard(worker)
        self._seats.discard(worker.seat)

    def _take(self, door: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            taken = _accept(door)
            if taken is None:
                return
            self._pass_socket(taken)

    def _pass_socket(self, taken: socket.socket) -> None:
        """Pass the socket to the process with the fewest connections; round-robin among equals."""
        for seat in sorted(self._seats, key=lambda seat: (seat.taken, seat.turn)):
            if seat.give(taken):
                seat.taken += 1
                seat.turn = next(self._turns)
                return


class _ServingProcess:
    """A process that serves, and how many connections it has."""

    def __init__(self, give: Callable[[socket.socket], bool]) -> None:
        self.give = give
        self.taken = 0
        """Number of its connections."""
        self.turn = 0

    def parted(self) -> None:
        self.taken -= 1


class _WorkerConnection:
    """Connection to a worker process: sends it sockets, and receives messages about them."""

    def __init__(self, line: socket.socket, left: Callable[[_WorkerConnection], None]) -> None:
        self._line = line
        self._left = left
        self.seat = _ServingProcess(self._give)
        self._on_their_way = 0
        self._sign = 0.0
        """When the worker last took a socket that was sent to it, or had taken all of them."""
        asyncio.get_running_loop().add_reader(line, self._receive_counts)

    def close(self) -> None:
        if self._line.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._line)
            self._line.close()
        self._left(self)

    def _give(self, taken: socket.socket) -> bool:
        now = asyncio.get_running_loop().time()
        if not self._on_their_way:
            self._sign = now
        elif now - self._sign > _STUCK_SECONDS:
            return False
        try:
            socket.send_fds(self._line, [_GIVEN], [taken.fileno()])
        except ConnectionError:
            self.close()
            return False
        except OSError:  # its line is full: it does not take what was sent before
            return False
        taken.close()
        self._on_their_way += 1
        return True

    def _receive_counts(self) -> None:
        try:
            news = self._line.recv(_NEWS)
        except BlockingIOError:
            return
        except OSError:
            news = b""
        self.seat.taken -= news.count(_ENDED)
        if _TAKEN in news:
            self._on_their_way -= news.count(_TAKEN)
            self._sign = asyncio.get_running_loop().time()
        if not news:
            self.close()


class WorkerPort:
    """The port in a worker: serves the sockets the first process sends, once it is ready."""

    def __init__(self, make: ProtocolFactory, port: int, folder: Path) -> None:
        self.port = port
        self._path = folder / SOCKET
        self._line: socket.socket | None = None
        self._here = _LocalConnections(make, self._parted)
        self._news = b""

    async def start_serving(self) -> None:
        """Raises ``OSError`` where no first process distributes connections."""
        line = socket.socket(socket.AF_UNIX)
        line.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_connect(line, str(self._path))
        except BaseException:
            line.close()
            raise
        self._line = line
        _read(line, self._take)

    def close(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            asyncio.get_running_loop().remove_reader(line)
            line.close()

    def _take(self) -> None:
        """Receive a socket. Raises ``OSError`` while there is no free file descriptor: a socket
        received then would be lost, one that is not received yet waits."""
        assert self._line is not None
        os.close(os.dup(self._line.fileno()))
        try:
            sign, files, _, _ = socket.recv_fds(self._line, 1, 1)
        except BlockingIOError:
            return
        except OSError:
            sign, files = b"", []
        if not sign:
            self.close()
            return
        self._queue_message(_TAKEN)
        if not files:  # the kernel dropped the socket
            self._parted()
        for file in files:
            os.set_inheritable(file, False)
            taken = socket.socket(fileno=file)
            taken.setblocking(False)
            self._here.give(taken)

    def _parted(self) -> None:
        self._queue_message(_ENDED)

    def _queue_message(self, word: bytes) -> None:
        """Send the messages of one turn of the event loop together."""
        if not self._news:
            asyncio.get_running_loop().call_soon(self._send_messages)
        self._news += word

    def _send_messages(self) -> None:
        if self._line is None:
            return
        try:
            self._news = self._news[self._line.send(self._news) :]
        except OSError as error:
            log.debug("the first process does not read which connections have ended: %s", error)
        if self._news:
            asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._send_messages)


def _read(door: socket.socket, take: Callable[[], None]) -> None:
    """Call ``take`` when the socket is readable, with a pause after file descriptors ran out."""

    def taking() -> None:
        try:
            take()
        except OSError as error:
            if error.errno not in _SCARCE:
                raise
            log.error("cannot accept connections, pausing for a second: %s", error)
            loop.remove_reader(door)
            loop.call_later(_PAUSE_SECONDS, again)

    def again() -> None:
        if door.fileno() >= 0:
            loop.add_reader(door, taking)

    loop = asyncio.get_running_loop()
    loop.add_reader(door, taking)


def _accept(door: socket.socket) -> socket.socket | None:
    try:
        taken, _ = door.accept()
    except (BlockingIOError, InterruptedError, ConnectionAbortedError):
        return None
    taken.setblocking(False)
    return taken


async def _bind_sockets(host: str, port: int) -> list[socket.socket]:
    """Bind a socket to each address of the host, as the event loop does. Raises ``OSError``."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    doors: list[socket.socket] = []
    refused = OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            try:
                door = socket.socket(family, kind, protocol)
            except OSError as error:  # a kernel without this family
                refused = error
                continue
            doors.append(door)
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            door.bind(address)
    except OSError:
        for door in doors:
            door.close()
        raise
    if not doors:
        raise refused
    return doors
