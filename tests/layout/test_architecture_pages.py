"""The pages about the code name every package of ``instar``, and no file that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "explanation"
NAMED = re.compile(r"`([\w/]+(?:\.py|/))`")
FILES = {
    path.relative_to(ROOT).as_posix()
    for folder in ("instar", "tests", "bench")
    for path in (ROOT / folder).rglob("*.py")
}


@pytest.mark.parametrize("page", ["architecture.md", "code-tour.md"])
def test_every_file_and_folder_that_is_named_exists(page: str) -> None:
    named = set(NAMED.findall((PAGES / page).read_text()))

    missing = {name for name in named if not any(_is_in(file, name) for file in FILES)}

    assert named, "the page names no file: has its form changed?"
    assert missing == set()


def _is_in(file: str, name: str) -> bool:
    return f"/{file}".endswith(f"/{name}") or (name.endswith("/") and f"/{name}" in f"/{file}")


def test_every_package_has_a_row() -> None:
    rows = [
        line.split("|")[1]
        for line in (PAGES / "architecture.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    told = " ".join(rows)
    groups = ("kube", "wire", "server", "tools", "cli")
    packages = {
        f"{group}/{folder.name}"
        for group in groups
        for folder in (ROOT / "instar" / group).iterdir()
        if (folder / "__init__.py").exists()
    }

    assert {name for name in packages if not _has_row(name, told)} == set()


def _has_row(package: str, rows: str) -> bool:
    """A row may name further packages of a group by their last names."""
    return f"`{package}" in rows or f"`{package.split('/')[1]}`" in rows
