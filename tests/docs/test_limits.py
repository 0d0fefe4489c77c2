"""docs/reference/limits.md names every limit there is, with its value."""

from __future__ import annotations

from pathlib import Path

import pytest

from instar.base import limits

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "limits.md").read_text()
LIMITS = {
    name: value
    for name, value in vars(limits).items()
    if name.isupper() and name not in ("KIB", "MIB")
}


def shown(value: float) -> str:
    if isinstance(value, float):
        return f"{value:g} s"
    for unit, name in ((limits.MIB, "MiB"), (limits.KIB, "KiB")):
        if value >= unit and value % unit == 0:
            return f"{value // unit} {name}"
    return str(value)


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_documented_with_its_value(name: str) -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}`")]
    assert len(lines) == 1
    assert shown(LIMITS[name]) in lines[0].split("|")[2]
