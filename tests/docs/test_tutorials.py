"""The tutorials, from their first line: an empty virtual environment, our wheel, their commands.

Their files are written, their commands run in one shell, and all output is compared.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import DOCS, FENCE, empty_environment, walk

TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_works_from_its_first_line(page: Path, dist: Path, tmp_path: Path) -> None:
    assert walk(page, tmp_path, empty_environment(tmp_path, dist)) >= 8
    assert not list(tmp_path.rglob("instar.pid")), "the tutorial left a server running"


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_shows_nothing_that_is_not_run(page: Path) -> None:
    languages = {language for language, _ in FENCE.findall(page.read_text())}

    assert {each for each in languages if " title=" not in each} <= {"console"}


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_uses_no_fixed_port_and_waits_for_nothing_by_itself(page: Path) -> None:
    text = page.read_text()

    assert "127.0.0.1:6443 --" not in text
    assert "; do sleep" not in text
