"""Each line of the threat model names a test that exists."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_line_of_the_threat_model_has_its_test() -> None:
    page = (ROOT / "docs/how-to/security.md").read_text()
    model = page.partition("## Threat model")[2].partition("\n## ")[0]
    rows = [line for line in model.splitlines() if line.startswith("| ")][2:]
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))

    assert len(rows) > 10
    for row in rows:
        named = [part for part in row.rsplit("|", 2)[1].split("`") if part.startswith("test_")]
        assert named, row
        for name in named:
            assert f"def {name}(" in sources, name
