"""The tutorials: their files are written, their commands run, their output compared, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import DOCS, FENCE, walk

TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_works_as_it_says(page: Path, tmp_path: Path) -> None:
    assert walk(page, tmp_path) >= 6


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_shows_nothing_that_is_not_run(page: Path) -> None:
    languages = {language for language, _ in FENCE.findall(page.read_text())}

    assert {each for each in languages if " title=" not in each} <= {"console", "{toctree}"}
