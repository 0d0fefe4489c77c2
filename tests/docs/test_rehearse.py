"""The tour of a rehearsal: its files are written, its commands run, their output compared."""

from __future__ import annotations

from pathlib import Path

from tests.support.pages import DOCS, walk


def test_the_tour_of_a_rehearsal_works_as_it_says(tmp_path: Path) -> None:
    assert walk(DOCS / "how-to" / "rehearse.md", tmp_path) == 8
