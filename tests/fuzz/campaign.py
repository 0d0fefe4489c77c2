"""A run of the fuzzer: several connections, a probe beside them, and a look at the server now and
then. What is found is made small on a server of its own, and kept."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.case import Case, Found
from tests.fuzz.making import Maker
from tests.fuzz.material import Material
from tests.fuzz.shrinking import fewest, smallest
from tests.fuzz.wire import Connection, Outcome
from tests.fuzz.world import SEE_LOG, World, trouble_of

Arguments = Callable[[Path], Sequence[str]]
"""Of a server, by its folder."""
LAG_SECONDS = 1.0
_ROUND = 20_000
"""Requests between two times that everything is put back."""
_REMEMBERED = 3000
_SHRINK_SECONDS = 40.0
_GROWTH = 150 << 20
"""Bytes that a server may be larger than at the end of the second round."""
_WEIGHINGS = 3
"""At the ends of so many rounds in a row: kept pages and events come and go."""
_LIVEZ = Case(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")


@dataclass
class Tally:
    sent: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    worst_lag: float = 0.0
    memory: list[int] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    """Seen once and not again on a quiet server."""


class Campaign:
    def __init__(
        self,
        folder: Path,
        material: Material,
        maker: Maker,
        *,
        connections: int,
        keep: Path,
        patience: float = LAG_SECONDS,
        arguments: Arguments = lambda _: (),
        mode: str = "memory",
        seed: int = 0,
    ) -> None:
        self.tally = Tally()
        self._folder, self._material, self._maker = folder, material, maker
        self._patience = patience
        self._connections, self._keep, self._arguments = connections, keep, arguments
        self._mode, self._seed = mode, seed
        self._recent: deque[Case] = deque(maxlen=_REMEMBERED)
        self._known: set[str] = set()
        self._numbers = itertools.count()
        self._suspicion: tuple[str, Case | None] | None = None
        self._open: list[Connection] = []

    async def run(self, seconds: float, requests: int) -> None:
        world = self._world()
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline and self.tally.sent < requests:
                count = min(_ROUND, requests - self.tally.sent)
                await self._round(world, count, deadline)
                if self._suspicion is not None:
                    await self._explained(*self._suspicion)
                    self._suspicion = None
                if world.alive:
                    await asyncio.to_thread(world.restore)
                    world.complaint()
                    self._weighed(world)
                    await self._ailing(world)
                else:
                    world.stop()
                    world = self._world()
                    self.tally.memory.clear()
                self._told()
        finally:
            world.stop()

    def _world(self) -> World:
        folder = self._folder / f"world{next(self._numbers)}"
        return World(folder, self._material, *self._arguments(folder))

    async def _round(self, world: World, count: int, deadline: float) -> None:
        until = self.tally.sent + count
        self._open = []
        tasks = [
            asyncio.create_task(self._attack(world, until, deadline))
            for _ in range(self._connections)
        ]
        probe = asyncio.create_task(self._probe(world))
        await asyncio.gather(*tasks)
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)
        for connection in self._open:
            connection.close()
        if not world.alive:
            self._suspect(f"death: the server ended with {world.victim.process.poll()}", None)

    def _connection(self, world: World) -> Connection:
        victim = world.victim
        made = Connection(victim.address, victim.context, world.known)
        self._open.append(made)
        return made

    async def _attack(self, world: World, until: int, deadline: float) -> None:
        connection = self._connection(world)
        tally = self.tally
        while tally.sent < until and self._suspicion is None and time.monotonic() < deadline:
            case = self._maker.case()
            self._recent.append(case)
            tally.sent += case.answers or 1
            try:
                outcome = await connection.send(case)
            except (OSError, TimeoutError):
                connection.close()
                if not world.alive:
                    return
                continue
            tally.statuses.update(reply.status for reply in outcome.replies)
            trouble = trouble_of(case, outcome)
            if trouble:
                self._suspect(world.complaint() if SEE_LOG in trouble else trouble, case)

    async def _probe(self, world: World) -> None:
        connection = self._connection(world)
        while self._suspicion is None and world.alive:
            began = time.monotonic()
            try:
                await connection.send(_LIVEZ)
            except (OSError, TimeoutError):
                connection.close()
            lag = time.monotonic() - began
            self.tally.worst_lag = max(self.tally.worst_lag, lag)
            if lag > self._patience:
                self._suspect(f"lag: /livez took {lag:.1f} s", None)
            complaint = world.complaint()
            if complaint:
                self._suspect(complaint, None)
            await asyncio.sleep(0.05)

    def _suspect(self, trouble: str, case: Case | None) -> None:
        if trouble and signature(trouble) not in self._known and self._suspicion is None:
            self._suspicion = trouble, case

    async def _explained(self, trouble: str, case: Case | None) -> None:
        """Again, on a server of its own, until it is small."""
        self._known.add(signature(trouble))
        print(f"suspicion: {trouble[:300]}", flush=True)
        trial = _Trial(self._world, signature(trouble))
        recent = list(self._recent)
        try:
            tries = [[case] if case else [], recent[-60:]]
            if not trouble.startswith("lag"):  # who made it wait was being answered just then
                tries += [recent[-600:], recent]
            for cases in tries:
                if cases and await trial.hurts(cases):
                    deadline = time.monotonic() + _SHRINK_SECONDS
                    cases = await fewest(cases, trial.hurts, deadline)
                    cases = await smallest(cases, trial.hurts, deadline + _SHRINK_SECONDS / 2)
                    self._keep_found(Found(trouble, tuple(cases), self._mode, self._seed))
                    return
        finally:
            trial.end()
        self.tally.unexplained.append(trouble)
        print(f"not seen again: {trouble[:300]}", flush=True)

    def _keep_found(self, found: Found) -> None:
        self.tally.found.append(found)
        path = found.kept(self._keep)
        print(f"FOUND {found.trouble[:300]}\n  kept in {path}", flush=True)
        for case in found.cases[:20]:
            print("  " + repr(case.data[:2000]), flush=True)

    async def _ailing(self, world: World) -> None:
        """A part that ended silently shows when the round is over; the round is what did it."""
        trouble = await asyncio.to_thread(world.ailment)
        if trouble and signature(trouble) not in self._known:
            self._known.add(signature(trouble))
            self._keep_found(Found(trouble, tuple(self._recent), self._mode, self._seed))

    def _weighed(self, world: World) -> None:
        memory = self.tally.memory
        memory.append(world.victim.memory)
        least = min(memory[-_WEIGHINGS:])
        if len(memory) > _WEIGHINGS + 1 and least - memory[1] > _GROWTH:
            trouble = f"growth: from {memory[1] >> 20} to {least >> 20} MiB"
            if signature(trouble) not in self._known:
                self._known.add(signature(trouble))
                self.tally.found.append(Found(trouble, (), self._mode, self._seed))
                print(f"FOUND {trouble}", flush=True)

    def _told(self) -> None:
        tally = self.tally
        memory = f"{tally.memory[-1] >> 20} MiB" if tally.memory else "a new server"
        print(
            f"{time.strftime('%H:%M:%S')} {tally.sent} requests, "
            f"worst lag {tally.worst_lag:.2f} s, {memory}, {len(tally.found)} found",
            flush=True,
        )


class _Trial:
    """Servers to try cases on: the same one as long as it lives and is not confused."""

    def __init__(self, make: object, wanted: str) -> None:
        self._make, self._wanted = make, wanted
        self._world: World | None = None

    async def hurts(self, cases: Sequence[Case]) -> bool:
        fresh = self._world is None or len(cases) > 1 or not self._world.alive
        if fresh:
            self.end()
            assert callable(self._make)
            self._world = await asyncio.to_thread(self._make)
        assert self._world is not None
        return self._wanted in await told(self._world, cases, quick=self._wanted.startswith("500"))

    def end(self) -> None:
        if self._world is not None:
            self._world.stop()
        self._world = None


async def told(world: World, cases: Sequence[Case], *, quick: bool = False) -> set[str]:
    """Signatures of all that goes wrong while the cases are sent one after the other; ``quick``
    does not wait for the log."""
    victim = world.victim
    connection = Connection(victim.address, victim.context, world.known)
    probe = Connection(victim.address, victim.context, world.known)
    found: set[str] = set()
    world.complaint()
    for case in cases:
        slow = asyncio.create_task(_lag(probe))
        try:
            outcome = await connection.send(case)
        except (OSError, TimeoutError):
            connection.close()
            outcome = Outcome([], closed=True, silent=False)
        if await slow > LAG_SECONDS:
            found.add("lag")
        trouble = trouble_of(case, outcome)
        if trouble and SEE_LOG not in trouble:
            found.add(signature(trouble))
        if not world.alive:
            found.add("death")
            break
    connection.close()
    probe.close()
    if not quick:
        await asyncio.sleep(0.05)
    complaint = world.complaint()
    return found | {signature(complaint)} if complaint else found


async def _lag(probe: Connection) -> float:
    await asyncio.sleep(0.002)
    began = time.monotonic()
    try:
        await probe.send(_LIVEZ)
    except (OSError, TimeoutError):
        probe.close()
    return time.monotonic() - began


def signature(trouble: str) -> str:
    """Two troubles of one signature are one: what names and numbers say is left out."""
    kind, _, rest = trouble.partition(": ")
    if kind in ("lag", "death", "silent", "growth"):
        return kind
    if kind == "held":
        return f"held {rest.rpartition('(in ')[2]}"
    return kind + "".join(char for char in rest if char.isalpha())[:160]
