"""The committed table: what each operation may cost, and why it costs that much.

``python -m tests.counts`` measures and compares; ``--accept`` writes what was measured, which is
how a change that costs something is made knowingly. Reasons are written by people and stay.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any, NamedTuple

TABLE = Path(__file__).with_name("table.json")
ACCEPT = ".venv/bin/python -m tests.counts --accept"
_MORE = 0.05
_ABOUT = frozenset(("calls", "calls into C", "kept blocks"))
"""Large numbers: a few more are nobody's concern. All others are exact."""
OF_PYTHON = frozenset(("calls", "calls into C", "kept blocks"))
"""What another Python counts otherwise."""
_NOT_COUNTED = frozenset(("why", "packages"))

Row = dict[str, Any]


class Change(NamedTuple):
    row: str
    what: str
    recorded: int
    found: int
    packages: str = ""

    def __str__(self) -> str:
        where = f" ({self.packages})" if self.packages else ""
        return f"{self.row}: {self.what} {self.recorded} → {self.found}{where}"


def load() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(TABLE.read_text())
    return table


def this_python() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def limit(what: str, recorded: int) -> int:
    return recorded + max(1, int(recorded * _MORE)) if what in _ABOUT else recorded


def counted(row: Row) -> dict[str, int]:
    return {what: value for what, value in row.items() if what not in _NOT_COUNTED}


def grown(name: str, recorded: Row, found: Row) -> list[Change]:
    return [
        Change(name, what, value, found[what], moved(recorded, found) if "calls" in what else "")
        for what, value in counted(recorded).items()
        if found[what] > limit(what, value)
    ]


def shrunk(name: str, recorded: Row, found: Row) -> list[Change]:
    """By as much as would be told if it were more."""
    return [
        Change(name, what, value, found[what])
        for what, value in counted(recorded).items()
        if limit(what, found[what]) < value
    ]


def moved(recorded: Row, found: Row) -> str:
    """The packages that call more than they did."""
    before, after = recorded.get("packages", {}), found.get("packages", {})
    more = {package: after[package] - before.get(package, 0) for package in after}
    largest = sorted(
        (package for package in more if more[package] > 0), key=lambda package: -more[package]
    )
    return ", ".join(
        f"{package} {before.get(package, 0)} → {after[package]}" for package in largest[:4]
    )


def accept(found: dict[str, Row]) -> None:
    old = load()["rows"] if TABLE.exists() else {}
    rows = {
        name: {**row, "why": old.get(name, {}).get("why", "?")}
        for name, row in {**old, **found}.items()
    }
    document = {"python": this_python(), "rows": rows}
    TABLE.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
