"""The guide of a version's life works as it says, up and down again."""

from __future__ import annotations

from pathlib import Path

from tests.support.pages import DOCS, walk


def test_the_guide_of_a_versions_life_works_as_it_says(tmp_path: Path) -> None:
    assert walk(DOCS / "guides" / "version-lifecycle.md", tmp_path) > 50
