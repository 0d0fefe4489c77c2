"""One port, several processes: each gets its share of the connections, and none is lost."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop

from instar.server.http import connection_balancer as module
from instar.server.http.connection_balancer import BalancingPort, WorkerPort


class Telling(asyncio.Protocol):
    """Says who serves, whatever it is asked."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._process.open.add(self._transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._process.name)

    def connection_lost(self, error: Exception | None) -> None:
        self._process.open.discard(self._transport)
        self._process.parted()


class Process:
    """One of those that serve, as ``Maker``; all are in this one."""

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.open: set[asyncio.Transport] = set()
        self.parted: Callable[[], None] = lambda: None

    def __call__(self) -> Telling:
        return Telling(self)


class Company:
    """A first process and those that have joined it."""

    def __init__(self, folder: Path, taking: BalancingPort) -> None:
        self.taking = taking
        self._folder = folder
        self._guests: list[WorkerPort] = []
        self._clients: list[asyncio.StreamWriter] = []

    @classmethod
    async def of(cls, folder: Path) -> Company:
        return cls(folder, await BalancingPort.open(Process(b"first"), "127.0.0.1", 0, folder))

    async def join(self, name: bytes) -> WorkerPort:
        guest, known = WorkerPort(Process(name), self.taking.port, self._folder), self.seats()
        await guest.start_serving()
        await until(lambda: self.seats() > known)
        self._guests.append(guest)
        return guest

    def seats(self) -> int:
        return len(self.taking._seats)

    def counted(self) -> int:
        return sum(seat.taken for seat in self.taking._seats)

    async def connect(self) -> tuple[bytes, asyncio.StreamWriter]:
        """Who serves a new connection, and its end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.taking.port)
        self._clients.append(writer)
        writer.write(b"?")
        return await asyncio.wait_for(reader.read(100), 30), writer

    async def close(self) -> None:
        self.taking.close()
        for guest in self._guests:
            guest.close()
        for writer in self._clients:
            writer.close()
            await writer.wait_closed()


async def until(look: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if look():
            return
        await asyncio.sleep(0.001)
    raise TimeoutError


def played(folder: Path, scenario: Callable[[Company], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        company = await Company.of(folder)
        try:
            await scenario(company)
        finally:
            await company.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(play())


def test_every_process_gets_as_many_connections(tmp_path: Path) -> None:
    async def scenario(company: Company) -> None:
        await company.join(b"second")
        await company.join(b"third")

        shares = Counter([(await company.connect())[0] for _ in range(9)])

        assert shares == {b"first": 3, b"second": 3, b"third": 3}

    played(tmp_path, scenario)


def test_the_process_with_the_fewest_open_connections_gets_the_next(tmp_path: Path) -> None:
    async def scenario(company: Company) -> None:
        await company.join(b"second")
        served = [await company.connect() for _ in range(6)]
        for name, writer in served:
            if name == b"second":
                writer.close()
        await until(lambda: company.counted() == 3)

        assert {(await company.connect())[0] for _ in range(3)} == {b"second"}

    played(tmp_path, scenario)


def test_a_process_that_joins_later_gets_connections_until_it_has_as_many(tmp_path: Path) -> None:
    async def scenario(company: Company) -> None:
        assert {(await company.connect())[0] for _ in range(4)} == {b"first"}

        await company.join(b"second")

        assert {(await company.connect())[0] for _ in range(4)} == {b"second"}

    played(tmp_path, scenario)


def test_a_process_that_ended_gets_no_connections(tmp_path: Path) -> None:
    async def scenario(company: Company) -> None:
        second = await company.join(b"second")
        await company.join(b"third")
        second.close()
        await until(lambda: company.seats() == 2)

        assert {(await company.connect())[0] for _ in range(4)} == {b"first", b"third"}

    played(tmp_path, scenario)


@pytest.mark.parametrize("why", [errno.EAGAIN, errno.ETOOMANYREFS])
def test_a_process_that_accepts_nothing_is_skipped_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: int
) -> None:
    def full(*given: object) -> None:
        raise OSError(why, "full")

    async def scenario(company: Company) -> None:
        await company.join(b"second")
        with monkeypatch.context() as patch:
            patch.setattr(socket, "send_fds", full)
            assert {(await company.connect())[0] for _ in range(3)} == {b"first"}

        assert {(await company.connect())[0] for _ in range(3)} == {b"second"}

    played(tmp_path, scenario)


def test_a_stalled_process_gets_no_connections_until_it_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(company: Company) -> None:
        await company.connect()
        second = await company.join(b"second")
        assert second._line is not None
        asyncio.get_running_loop().remove_reader(second._line)
        given = asyncio.create_task(company.connect())
        await until(lambda: company.counted() == 2)
        with monkeypatch.context() as patch:
            patch.setattr(module, "_STUCK_SECONDS", -1)

            assert {(await company.connect())[0] for _ in range(5)} == {b"first"}
        asyncio.get_running_loop().add_reader(second._line, second._take)
        assert (await given)[0] == b"second"
        assert {(await company.connect())[0] for _ in range(3)} == {b"second"}

    played(tmp_path, scenario)


def test_when_files_are_scarce_connections_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted, refusals = module._accept, [errno.EMFILE, errno.ENFILE]

    def scarce(door: socket.socket) -> socket.socket | None:
        if refusals:
            raise OSError(refusals.pop(), "scarce")
        return accepted(door)

    async def scenario(company: Company) -> None:
        monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.01)
        monkeypatch.setattr(module, "_accept", scarce)

        assert (await company.connect())[0] == b"first"
        assert not refusals

    played(tmp_path, scenario)


def test_a_process_that_has_no_room_for_a_connection_takes_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, refusals = os.dup, [errno.EMFILE, errno.ENFILE]

    def scarce(file: int) -> int:
        if refusals:
            raise OSError(refusals.pop(), "scarce")
        return copied(file)

    async def scenario(company: Company) -> None:
        await company.connect()
        await company.join(b"second")
        monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.01)
        monkeypatch.setattr(os, "dup", scarce)

        assert (await company.connect())[0] == b"second"
        assert not refusals

    played(tmp_path, scenario)


def test_a_connection_that_is_lost_on_its_way_to_a_process_is_not_the_last_it_gets(
    tmp_path: Path,
) -> None:
    async def scenario(company: Company) -> None:
        await company.join(b"second")
        (worker,) = company.taking._workers
        worker.seat.taken += 1
        worker._line.send(b"+")  # the kernel takes the file out of it where there is no room
        await until(lambda: worker.seat.taken == 0)

        assert {(await company.connect())[0] for _ in range(2)} == {b"first", b"second"}

    played(tmp_path, scenario)


def test_a_family_of_addresses_that_the_kernel_does_not_know_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Old(socket.socket):
        def __init__(self, family: int = -1, *rest: Any, **options: Any) -> None:
            if family == socket.AF_INET6:
                raise OSError(errno.EAFNOSUPPORT, "unknown")
            super().__init__(family, *rest, **options)

    async def found(*_: Any, **__: Any) -> list[Any]:
        stream = socket.SOCK_STREAM
        return [
            (socket.AF_INET6, stream, 0, "", ("::1", 0, 0, 0)),
            (socket.AF_INET, stream, 0, "", ("127.0.0.1", 0)),
        ]

    async def scenario() -> list[int]:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", found)
        monkeypatch.setattr(socket, "socket", Old)
        doors = await module._bind_sockets("localhost", 0)
        for door in doors:
            door.close()
        return [door.family for door in doors]

    assert asyncio.run(scenario()) == [socket.AF_INET]
