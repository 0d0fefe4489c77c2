"""One place decides what happens where ``../shared`` is missing."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
DECIDES = TESTS / "support" / "shared.py"


def test_only_one_module_has_the_path_of_the_shared_folder() -> None:
    named = [
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("*.py")
        if path not in (DECIDES, Path(__file__)) and '/ "shared"' in path.read_text()
    ]

    assert named == []
