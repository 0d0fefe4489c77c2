"""Servers to be disturbed, each with the ways in which that can be done: on a file, on a file with
workers, on etcd and on PostgreSQL with replicas, with and without workers."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import random
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.replicas import faults, postgres_faults
from tests.replicas.postgres_faults import PostgresDeployment, deployed_on_postgres
from tests.replicas.processes import Deployment, Replica, deployed, prepare_pki
from tests.soak.load import Load

_JUMPS = ("+0", "+3600", "-3600", "+86400", "-86400", "+30", "-30", "+604800")
"""Within the life of the certificates: a server that is started later renews them."""
_PLACES = ("/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/faketime", "/usr/local/lib/faketime")
_WORKERS = 2
Disturb = Callable[[Load], Awaitable[None]]


@dataclass
class Soaked:
    replicas: Sequence[Replica]
    disturbances: dict[str, Disturb]
    done: dict[str, int] = field(default_factory=dict)

    async def disturb(self, load: Load, chance: random.Random, count: int) -> None:
        """So many of them, one after the other, with some work before and after each."""
        for name in chance.choices(list(self.disturbances), k=count):
            await load.more_acknowledged(60)
            await self.disturbances[name](load)
            self.done[name] = self.done.get(name, 0) + 1
        await load.more_acknowledged(60)


class Clock:
    """The time that servers believe in, where libfaketime is installed."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._file = Path(folder, "time")
        self._file.write_text("+0")
        self._chance = chance
        self.library = _libfaketime()

    @property
    def environment(self) -> Mapping[str, str]:
        if self.library is None:
            return {}
        return {
            "LD_PRELOAD": self.library,
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    async def jump(self, load: Load) -> None:
        self._file.write_text(self._chance.choice(_JUMPS))

    @property
    def disturbances(self) -> dict[str, Disturb]:
        return {} if self.library is None else {"clock jump": self.jump}


def _libfaketime() -> str | None:
    places = [Path(place) for place in _PLACES]
    wheel = importlib.util.find_spec("libfaketime")
    if wheel is not None and wheel.submodule_search_locations:
        root = Path(wheel.submodule_search_locations[0])
        places.append(root / "vendor" / "libfaketime" / "src")
    for place in places:
        found = place / "libfaketime.so.1"
        if found.exists():
            return str(found)
    return None


@contextlib.contextmanager
def on_file(folder: Path, chance: random.Random) -> Iterator[Soaked]:
    clock = Clock(folder, chance)
    with _single(folder, clock) as replica:
        yield Soaked([replica], {**_of_a_process(replica), **clock.disturbances})


@contextlib.contextmanager
def with_workers(folder: Path, chance: random.Random) -> Iterator[Soaked]:
    clock = Clock(folder, chance)
    with _single(folder, clock, "--workers", str(_WORKERS)) as replica:
        ways = {**_of_a_process(replica), **_of_workers([replica], chance)}
        yield Soaked([replica], {**ways, **clock.disturbances})


@contextlib.contextmanager
def on_etcd(folder: Path, chance: random.Random, serve: tuple[str, ...] = ()) -> Iterator[Soaked]:
    clock = Clock(folder, chance)
    with deployed(
        folder, members=3, replicas=2, serve=serve, environment=clock.environment
    ) as deployment:
        ways = {fault.__name__.replace("_", " "): _of(fault, deployment) for fault in faults.ALL}
        yield Soaked(deployment.replicas, {**ways, **clock.disturbances})


@contextlib.contextmanager
def on_etcd_with_workers(folder: Path, chance: random.Random) -> Iterator[Soaked]:
    with on_etcd(folder, chance, ("--workers", str(_WORKERS))) as soaked:
        ways = {**soaked.disturbances, **_of_workers(soaked.replicas, chance)}
        yield Soaked(soaked.replicas, ways)


@contextlib.contextmanager
def on_postgres(
    folder: Path, chance: random.Random, replicas: int = 2, serve: tuple[str, ...] = ()
) -> Iterator[Soaked]:
    clock = Clock(folder, chance)
    with deployed_on_postgres(
        folder, replicas=replicas, serve=serve, environment=clock.environment
    ) as deployment:
        ways: dict[str, Disturb] = {
            fault.__name__.replace("_", " "): _on(fault, deployment)
            for fault in postgres_faults.ALL
        }
        ways["a replica frozen for 1.5 s"] = _of_a_process(deployment.replicas[0])[
            "frozen for 1.5 s"
        ]
        yield Soaked(deployment.replicas, {**ways, **clock.disturbances})


@contextlib.contextmanager
def on_postgres_by_three(folder: Path, chance: random.Random) -> Iterator[Soaked]:
    with on_postgres(folder, chance, replicas=3) as soaked:
        yield soaked


@contextlib.contextmanager
def on_postgres_with_workers(folder: Path, chance: random.Random) -> Iterator[Soaked]:
    with on_postgres(folder, chance, serve=("--workers", str(_WORKERS))) as soaked:
        ways = {**soaked.disturbances, **_of_workers(soaked.replicas, chance)}
        yield Soaked(soaked.replicas, ways)


ENGINES: dict[str, Callable[[Path, random.Random], contextlib.AbstractContextManager[Soaked]]] = {
    "sqlite": on_file,
    "workers": with_workers,
    "etcd": on_etcd,
    "etcd-workers": on_etcd_with_workers,
    "postgres": on_postgres,
    "postgres-three": on_postgres_by_three,
    "postgres-workers": on_postgres_with_workers,
}


def _on(fault: postgres_faults.Fault, deployment: PostgresDeployment) -> Disturb:
    return lambda load: fault(deployment, load)


def _of(fault: faults.Fault, deployment: Deployment) -> Disturb:
    return lambda load: fault(deployment, load)


@contextlib.contextmanager
def _single(folder: Path, clock: Clock, *extra: str) -> Iterator[Replica]:
    prepare_pki(folder)
    storage = f"sqlite:{folder}/s.db"
    replica = Replica(folder, "r0", storage, extra, clock.environment)
    replica.start()
    try:
        replica.until_ready()
        yield replica
    finally:
        replica.kill()


def _children(replica: Replica) -> list[int]:
    assert replica.process is not None
    pid = replica.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _of_workers(replicas: Sequence[Replica], chance: random.Random) -> dict[str, Disturb]:
    async def worker_killed(load: Load) -> None:
        workers = [pid for replica in replicas for pid in _children(replica)]
        if workers:  # else they are being started
            os.kill(chance.choice(workers), signal.SIGKILL)
        await load.more_acknowledged(30)

    return {"kill -9 of a worker": worker_killed}


def _of_a_process(replica: Replica) -> dict[str, Disturb]:
    async def killed(load: Load) -> None:
        replica.kill()
        replica.start()
        await asyncio.to_thread(replica.until_ready)

    async def stopped(load: Load) -> None:
        await asyncio.to_thread(replica.stop)
        replica.start()
        await asyncio.to_thread(replica.until_ready)

    async def frozen(load: Load) -> None:
        replica.signal(signal.SIGSTOP)
        await asyncio.sleep(1.5)
        replica.signal(signal.SIGCONT)

    return {"kill -9": killed, "stop and start": stopped, "frozen for 1.5 s": frozen}


def temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="instar-soak-")
