"""The README, from its first line: an empty virtual environment, a clone, its commands."""

from __future__ import annotations

from pathlib import Path

from tests.support.pages import README, ROOT, empty_environment, run_script, script

PROMISED = "./scripts/serve", "./scripts/test"


def test_the_readme_is_short_and_its_first_screen_has_the_two_commands() -> None:
    lines = README.read_text().splitlines()

    assert len(lines) < 150
    for command in PROMISED:
        assert any(line.startswith(f"{command} ") for line in lines[:25]), command


def test_the_readme_runs_from_its_first_line(clone: Path, dist: Path, tmp_path: Path) -> None:
    (clone / "examples" / "testing" / "test_readme.py").write_text(
        script(README, "pytest", "python")
    )
    pytest = "pytest examples/testing/test_readme.py\n"
    text = script(README, "install") + pytest + script(README, "ci") + script(README, "tour")

    done = run_script(text, clone, "README.md", around=empty_environment(tmp_path, dist))

    assert "[100%]" in done.stdout
    assert "no counterexample" in done.stdout
    assert "NO-GO: 1 reason" in done.stdout
    assert 'example.com/v2 {"color":"red","size":7}' in done.stdout
    assert "1 object restored" in done.stdout
    assert "refused" not in done.stderr
    assert not (clone / "instar.pid").exists()


def test_the_picture_of_the_review_shows_what_the_review_finds() -> None:
    drawn = (ROOT / "docs" / "pictures" / "session.svg").read_text()

    for rule in ("field-removed", "maximum-tightened"):
        assert rule in drawn
