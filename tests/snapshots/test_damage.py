"""Whatever is done to a file: one line says that it cannot be read, or what is missing."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import pytest

from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.sources import open_captured_cluster
from tests.snapshots.worlds import widget, write_snapshot

COUNT = 20


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "s.tar.gz"
    widgets = [widget(f"w{number}", size=number) for number in range(COUNT)]
    return write_snapshot(path, widgets).read_bytes()


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("packed", [True, False])
def test_no_damage_goes_unnoticed(tmp_path: Path, whole: bytes, seed: int, packed: bool) -> None:
    chance = Random(seed)
    data = bytearray(whole if packed else gzip.decompress(whole))
    for _ in range(chance.choice([1, 2, 5])):
        _damage(data, chance)
    path = tmp_path / "s.tar.gz"
    path.write_bytes(data)

    try:
        world = open_captured_cluster(str(path))
    except SnapshotError:
        return  # noticed, and said in one line
    with world:
        found = len(list(world.objects("widgets.example.com")))
        everything = [*world.crds(), *world.other_objects(), *world.unknown(), *world.audit()]
        assert world.usage() == []
        assert everything or world.problems
        assert found == COUNT or world.problems


def _damage(data: bytearray, chance: Random) -> None:
    at = chance.randrange(len(data))
    match chance.randrange(4):
        case 0:
            data[at] = chance.randrange(256)
        case 1:
            del data[at : at + chance.randrange(1, 600)]
        case 2:
            data[at:at] = chance.randbytes(chance.randrange(1, 50))
        case _:
            data[at : at + 12] = b"7" * 12
    data += b"" if data else b"x"
