"""Values shared between processes: what is kept reads back as it was put, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from instar.wire.storage.value_reader import ValueGone
from instar.wire.storage.workers import arena as module
from instar.wire.storage.workers import arena_reclaim
from instar.wire.storage.workers.arena import Arena, ArenaView, make_file
from instar.wire.storage.workers.arena_reclaim import Move, Reclaimer

SMALL = 4096
KEYS = [f"k{number}" for number in range(12)]


class Borrower:
    """A worker as the protocol sees it: it reads its stream whenever it likes."""

    def __init__(self, file: int, state: dict[str, tuple[int, int]], fences: int) -> None:
        self.view = ArenaView(file)
        self.view.fence = fences
        self.known = state
        self.stream: deque[int | Move | tuple[str, int, int | None]] = deque()
        self.passed = 0

    def step(self) -> None:
        told = self.stream.popleft()
        if isinstance(told, int):
            self.view.fence = self.passed = told
        elif isinstance(told, Move):
            if self.known.get(told.key, (0, 0))[0] == told.revision:
                self.known[told.key] = told.revision, told.place
        else:
            key, revision, place = told
            self.known.pop(key, None)
            if place is not None:
                self.known[key] = revision, place

    def read(self, key: str) -> bytes:
        return self.view.read(self.known[key][1], self.view.fence)


class Sharing(RuleBasedStateMachine):
    """One writes, others read and lag behind; segments are small, so that values move often."""

    @initialize()
    def begin(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(module, "SEGMENT", SMALL)
        self.patch.setattr(module, "LARGEST", SMALL // 2)
        self.patch.setattr(arena_reclaim, "MOVED_AT_ONCE", 3)
        self.file = make_file()
        self.loans = Reclaimer(Arena(self.file))
        self.revision = 0
        self.current: dict[str, tuple[int, int]] = {}
        self.written: dict[int, bytes] = {}
        self.borrowers: list[Borrower] = []
        self.loading: list[Borrower] = []
        self.reading: list[tuple[int, int]] = []

    # -- as ``LocationMap`` ------------------------------------------------------------------------

    def move(self, key: str, place: int) -> Move | None:
        revision, here = self.current.get(key, (0, -1))
        if here != place:
            return None
        elsewhere = self.loans.put(key, self.loans.arena.read(place, self.loans.arena.fence))
        assert elsewhere is not None
        self.loans.drop(place)
        self.current[key] = revision, elsewhere
        return Move(key, revision, elsewhere)

    # -- what happens --------------------------------------------------------------------------

    @rule(
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=8),
        size=st.integers(0, SMALL // 2),
    )
    def write(self, keys: list[str], size: int) -> None:
        for key in keys:
            self._write(key, size)

    def _write(self, key: str, size: int) -> None:
        self.revision += 1
        value = (b"%d " % self.revision * size)[:size]
        place = self.loans.put(key, value)
        assert place is not None
        self._drop(key)
        self.current[key] = self.revision, place
        self.written[self.revision] = value
        self._tell((key, self.revision, place))

    @rule(key=st.sampled_from(KEYS))
    def lose_but_read_on(self, key: str) -> None:
        """The owner has loaded anew while a request of its own still reads."""
        if key in self.current:
            self.reading.append(self.current.pop(key))
            self.revision += 1
            self._tell((key, self.revision, None))

    @rule()
    def read_to_the_end(self) -> None:
        if self.reading:
            self.loans.drop(self.reading.pop()[1])

    @rule(key=st.sampled_from(KEYS))
    def delete(self, key: str) -> None:
        self.revision += 1
        if key in self.current:
            self._drop(key)
            del self.current[key]
            self._tell((key, self.revision, None))

    def _drop(self, key: str) -> None:
        if key in self.current:
            self.loans.drop(self.current[key][1])

    def _tell(self, told: int | Move | tuple[str, int, int | None]) -> None:
        for borrower in (*self.borrowers, *self.loading):
            borrower.stream.append(told)

    @rule()
    def load(self) -> None:
        """A worker asks for the state; until it listens it takes nothing."""
        if len(self.loading) + len(self.borrowers) < 3:
            state = dict(self.current)
            self.loading.append(Borrower(self.file, state, self.loans.fences))

    @rule()
    def listen(self) -> None:
        if self.loading:
            borrower = self.loading.pop()
            borrower.stream.append(self.loans.fences)
            self.borrowers.append(borrower)

    @rule(at=st.integers(0, 2))
    def die(self, at: int) -> None:
        if at < len(self.borrowers):
            del self.borrowers[at]

    @rule(at=st.integers(0, 2), steps=st.integers(1, 20))
    def go_on(self, at: int, steps: int) -> None:
        if at < len(self.borrowers):
            borrower = self.borrowers[at]
            for _ in range(min(steps, len(borrower.stream))):
                borrower.step()

    @rule()
    def settle(self) -> None:
        self.loans.settle(one.passed for one in (*self.borrowers, *self.loading))

    @rule(steps=st.integers(1, 8))
    def leave(self, steps: int) -> None:
        for _ in range(steps):
            if self.loading:
                return
            fences = self.loans.fences
            moves, more = self.loans.leave(self)
            for move in moves:
                self._tell(move)
            if self.loans.fences > fences:
                self._tell(self.loans.fences)
            if not more:
                return

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def everybody_reads_what_was_written(self) -> None:
        for borrower in (*self.borrowers, *self.loading):
            for key, (revision, _) in borrower.known.items():
                assert borrower.read(key) == self.written[revision]
        arena = self.loans.arena
        for revision, place in (*self.current.values(), *self.reading):
            assert arena.read(place, arena.fence) == self.written[revision]

    @invariant()
    def waste_is_bounded_when_all_have_gone_on(self) -> None:
        if self.loading or self.reading or any(one.stream for one in self.borrowers):
            return
        for _ in range(60):
            self.settle()
            self.leave(50)
            for borrower in self.borrowers:
                while borrower.stream:
                    borrower.step()
        assert self.loans.arena.used <= self.loans.arena.live * 1.5 + 2 * SMALL

    def teardown(self) -> None:
        self.loans.arena.close()
        os.close(self.file)
        self.patch.undo()


TestSharing = Sharing.TestCase
TestSharing.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


@pytest.fixture
def arena() -> Iterator[Arena]:
    file = make_file()
    made = Arena(file)
    yield made
    made.close()
    os.close(file)


def test_a_value_too_large_finds_no_room(arena: Arena) -> None:
    assert arena.put(b"k", bytes(module.LARGEST + 1)) is None
    assert arena.put(b"k", bytes(module.LARGEST)) is not None


def test_an_unconfirmed_worker_reads_an_error_instead_of_foreign_bytes(arena: Arena) -> None:
    view, loans = ArenaView(arena.file), Reclaimer(arena)
    place = loans.put("k", b"mine")
    assert place is not None
    assert view.read(place, view.fence) == b"mine"

    loans.drop(place)
    loans.settle([])
    arena._filling = None
    while loans.leave(arena_reclaim.EmptyLocationMap())[1]:
        pass
    loans.settle([])
    loans.put("k", b"else")

    with pytest.raises(ValueGone):
        view.read(place, view.fence)
    with pytest.raises(ValueGone):
        view.read_many([place], view.fence)


def test_memory_of_values_that_are_gone_goes_back_to_the_system(arena: Arena) -> None:
    loans = Reclaimer(arena)
    places = {f"k{at}": loans.put(f"k{at}", bytes([at % 251]) * 100_000) for at in range(1000)}
    full = os.fstat(arena.file).st_blocks * 512

    class Kept(arena_reclaim.EmptyLocationMap):
        def move(self, key: str, place: int) -> Move | None:
            if places.get(key) != place:
                return None
            places[key] = loans.put(key, arena.read(place, arena.fence))
            loans.drop(place)
            return Move(key, 1, place)

    for at in range(1000):
        if at % 10:
            place = places.pop(f"k{at}")
            assert place is not None
            loans.drop(place)
    loans.settle([])
    while loans.leave(Kept())[1]:
        pass
    loans.settle([])

    assert full >= 100_000_000
    assert os.fstat(arena.file).st_blocks * 512 < arena.live * 1.5 + 2 * module.SEGMENT


def test_another_process_reads_what_this_one_writes(arena: Arena) -> None:
    place = arena.put(b"k", b"hello")
    program = (
        "import sys; from instar.wire.storage.workers.arena import ArenaView;"
        "file, place = map(int, sys.argv[1:]);"
        "print(ArenaView(file).read(place, 0).decode())"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(arena.file), str(place)],
        pass_fds=(arena.file,),
        capture_output=True,
        check=True,
    )

    assert done.stdout == b"hello\n"
