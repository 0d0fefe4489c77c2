"""Progress journal of a capture, stored in its working folder, so that an interrupted run can be
resumed.

``taking.py`` writes it. A part is recorded after its bytes are on the disk, so the journal never
lists a part that is not on the disk.
"""

from __future__ import annotations

import os
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import orjson

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.manifest import Row, read_row

_FILE = "journal.json"


@dataclass(frozen=True)
class CaptureProgress:
    """Progress of one part."""

    part: str
    packed: int
    versions: Object
    token: str
    revision: str
    consistent: bool
    missing: int

    def document(self) -> Object:
        return dict(self.__dict__)


@dataclass(frozen=True)
class CaptureJournal:
    """Which parts of a capture are complete."""

    origin: str
    started: str
    asked: Object
    done: tuple[Row, ...] = ()
    standing: CaptureProgress | None = None
    problems: tuple[str, ...] = field(default=())

    def row(self, part: str) -> Row | None:
        return next((row for row in self.done if row.name == part), None)

    def finished(self, row: Row) -> CaptureJournal:
        others = tuple(each for each in self.done if each.name != row.name)
        standing = self.standing
        if standing is not None and standing.part == row.name:
            standing = None
        return replace(self, done=(*others, row), standing=standing)

    def write(self, folder: Path) -> None:
        document = {
            "origin": self.origin,
            "started": self.started,
            "asked": self.asked,
            "done": [row.document() for row in self.done],
            "standing": None if self.standing is None else self.standing.document(),
            "problems": list(self.problems),
        }
        beside = folder / f"{_FILE}.new"
        beside.write_bytes(orjson.dumps(document))
        os.replace(beside, folder / _FILE)


def read_journal(folder: Path) -> CaptureJournal:
    """Read the journal. Raises ``SnapshotError``: without a journal the folder cannot be used."""
    path = folder / _FILE
    try:
        document: Any = orjson.loads(path.read_bytes())
        standing = document["standing"]
        return CaptureJournal(
            origin=document["origin"],
            started=document["started"],
            asked=document["asked"],
            done=tuple(read_row(each) for each in document["done"]),
            standing=None if standing is None else CaptureProgress(**standing),
            problems=tuple(document["problems"]),
        )
    except OSError as error:
        raise SnapshotError(f"{path}: {error.strerror}: nothing to go on from") from None
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise SnapshotError(f"{path}: not readable: {error}") from None
