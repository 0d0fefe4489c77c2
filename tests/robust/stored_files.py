"""Store files made or harmed while no server has them open."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.robust.conftest import CRDS, GROUP, THINGS, thing, thing_crd
from tests.robust.victim import Victim

PREFIX = f"{GROUP}/things/default/"


def prepared(folder: Path, *names: str) -> Path:
    """A file with the CRD of things in it, and things of these names."""
    path = folder / "s.db"
    victim = Victim(folder, "--storage", f"sqlite:{path}")
    assert victim.request("POST", CRDS, thing_crd()).status == 201
    for name in names:
        assert victim.request("POST", THINGS, thing(name, replicas=1)).status == 201
    assert victim.stop() == 0
    return path


def multiplied(path: Path, name: str, count: int) -> None:
    """So many copies of a thing, every tenth with the same label."""
    with closing(sqlite3.connect(path)) as connection:
        (value,) = connection.execute(
            "SELECT value FROM log WHERE key = ?", (PREFIX + name,)
        ).fetchone()
        (last,) = connection.execute("SELECT max(revision) FROM log").fetchone()
        old = b'"name":"%s"' % name.encode()
        connection.executemany(
            "INSERT INTO log VALUES (?, ?, ?)",
            (
                (
                    last + 1 + at,
                    f"{PREFIX}n{at:06}",
                    value.replace(old, b'"labels":{"a":"%d"},"name":"n%06d"' % (at % 10, at)),
                )
                for at in range(count)
            ),
        )
        connection.commit()


def damaged(path: Path, name: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "UPDATE log SET value = ? WHERE key = ?", (b"\x00\xff" * 50, PREFIX + name)
        )
        connection.commit()
