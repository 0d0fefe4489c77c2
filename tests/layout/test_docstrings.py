"""Module docstrings name other files: each of them exists, so that a reader can open it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.sources import parsed

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "instar"
NAMED = re.compile(
    r"`+((?:\w+/)*\w+\.py|(?:instar|base|kube|wire|server|registry|tools|cli)/[\w/]+)`+"
)
"""A Python file, or a folder below a group, between back quotes."""


def test_every_file_that_a_module_docstring_names_exists() -> None:
    missing = [
        f"{file.relative_to(ROOT)}: {named}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for named in _named(file)
        if not _exists(file, named)
    ]

    assert missing == []


def _named(file: Path) -> Iterator[str]:
    text = ast.get_docstring(parsed(file)) or ""
    for match in NAMED.finditer(text):
        yield match[1]


def _exists(file: Path, named: str) -> bool:
    """Return whether the name fits: from the repository, the package, or a folder around it."""
    folders = [ROOT, PACKAGE, *file.parents]
    return any((folder / named).exists() for folder in folders if folder.is_relative_to(ROOT))
