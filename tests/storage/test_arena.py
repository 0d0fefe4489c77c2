"""Values shared between processes: what is kept reads back as it was put, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from instar.storage import arena as module
from instar.storage.arena import Arena, ArenaView, make_files
from instar.storage.values import Gone


class Sharing(RuleBasedStateMachine):
    """One writes, another reads; segments are small, so that values move all the time."""

    places = Bundle("places")

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(module, "SEGMENT", 4096)
        self.patch.setattr(module, "LARGEST", 2048)
        self.patch.setattr(module, "_OFFSET", (1 << 24) - 1)
        self.patch.setattr(module, "_SLOTS", 128)
        self.patch.setattr(module, "_CHUNK", 4096)
        self.patch.setattr(module, "MOVED_AT_ONCE", 3)
        files = make_files()
        self.arena, self.view = Arena(files), ArenaView(files)
        for file in files:
            os.close(file)
        self.kept: dict[int, tuple[bytes, int]] = {}
        self.forgotten: set[int] = set()

    @rule(target=places, size=st.integers(1, 2048), letter=st.binary(min_size=1, max_size=1))
    def put(self, size: int, letter: bytes) -> int:
        place = self.arena.put(letter * size, size // 2)
        assert place is not None
        assert place not in self.kept
        assert place not in self.forgotten
        self.kept[place] = letter * size, size // 2
        return place

    @rule(place=consumes(places))
    def forget(self, place: int) -> None:
        self.arena.forget(place)
        del self.kept[place]
        self.forgotten.add(place)

    @rule()
    def tidy(self) -> None:
        self.arena.tidy()

    @rule(place=places)
    def forget_twice_is_once(self, place: int) -> None:
        for gone in self.forgotten:
            self.arena.forget(gone)
        assert self.view.read(place) == self.kept[place][0]

    @invariant()
    def what_is_kept_reads_back(self) -> None:
        for place, (value, cut) in self.kept.items():
            assert self.view.read(place) == value
            assert (self.view.cut(place), self.view.length(place)) == (cut, len(value))
        assert self.arena.live == sum(len(value) for value, _ in self.kept.values())

    @invariant()
    def what_is_forgotten_reads_as_nothing(self) -> None:
        for place in self.forgotten:
            with pytest.raises(Gone):
                self.view.read(place)

    @invariant()
    def waste_is_bounded_when_all_is_tidy(self) -> None:
        while self.arena.tidy():
            self.what_is_kept_reads_back()
        assert self.arena.used <= self.arena.live * 1.5 + 2 * 4096

    def teardown(self) -> None:
        self.view.close()
        self.arena.close()
        self.patch.undo()


TestSharing = Sharing.TestCase
TestSharing.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


@pytest.fixture
def arena() -> Arena:
    files = make_files()
    made = Arena(files)
    for file in files:
        os.close(file)
    return made


def test_a_value_too_large_finds_no_room(arena: Arena) -> None:
    assert arena.put(bytes(module.LARGEST + 1)) is None
    assert arena.put(bytes(module.LARGEST)) is not None


def test_a_read_that_a_move_overtakes_starts_over(arena: Arena) -> None:
    """The bytes it has copied may be another's by then."""
    view = ArenaView(arena.files)
    place = arena.put(b"mine")
    assert place is not None
    view.read(place)

    class Overtaken:
        def __getitem__(self, part: slice) -> bytes:
            view._segments[0] = before
            for slot in range(1):
                arena._filling = None
                arena._move(slot, arena._known[0])
            return b"else"

    before, view._segments[0] = view._segments[0], Overtaken()  # type: ignore[call-overload]

    assert view.read(place) == b"mine"


def test_memory_of_values_that_are_gone_goes_back_to_the_system(arena: Arena) -> None:
    places = [arena.put(bytes([at % 251]) * 100_000) for at in range(1000)]
    full = os.fstat(arena.files.segments).st_blocks * 512

    for at, place in enumerate(places):
        if at % 10 and place is not None:
            arena.forget(place)
    while arena.tidy():
        pass

    assert full >= 100_000_000
    assert os.fstat(arena.files.segments).st_blocks * 512 < arena.live * 1.5 + 2 * module.SEGMENT


def test_another_process_reads_what_this_one_writes(arena: Arena) -> None:
    place = arena.put(b"hello")
    program = (
        "import sys; from instar.storage.arena import ArenaView, Files;"
        "table, segments, place = map(int, sys.argv[1:]);"
        "print(ArenaView(Files(table, segments)).read(place).decode())"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arena.files), str(place)],
        pass_fds=arena.files,
        capture_output=True,
        check=True,
    )

    assert done.stdout == b"hello\n"
