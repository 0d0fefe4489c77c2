"""What ``scripts/fuzz`` found once is sent again: it must not hurt any more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.__main__ import FOUND
from tests.fuzz.campaign import told
from tests.fuzz.case import read
from tests.fuzz.material import gathered
from tests.fuzz.world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("found"), gathered())
    yield world
    world.stop()


@pytest.mark.parametrize("path", sorted(FOUND.glob("*.json")), ids=lambda path: path.stem)
def test_inputs_found_by_the_fuzzer_are_handled(world: World, path: Path) -> None:
    found = read(path)
    assert asyncio.run(told(world, found.cases)) == set(), found.trouble
