"""Sentences count by ``plurals.counted``, so that no sentence speaks of 1 objects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from instar.base.plurals import counted
from tests.support.sources import parsed

ROOT = Path(__file__).resolve().parents[2] / "instar"
NOUNS = [
    "objects",
    "findings",
    "warnings",
    "errors",
    "notes",
    "steps",
    "CRDs",
    "cases",
    "problems",
    "suites",
    "files",
    "documents",
    "records",
    "values",
    "checks",
    "trials",
    "namespaces",
    "kinds",
    "changes",
    "resources",
    "rows",
    "lines",
]
ELSEWHERE = {
    "wire/conversion/contract.py": "upstream's sentence",
    "kube/openapi/builtin.py": "upstream's sentence, and no number",
    "kube/openapi/models.py": "upstream's sentence, and no number",
    "server/registry/controllers/migrations.py": "upstream's sentence",
    "kube/api/encoding/manifests.py": "never said of one",
}


@pytest.mark.parametrize(
    ("number", "told"),
    [(0, "0 objects"), (1, "1 object"), (2, "2 objects"), ("~1", "~1 objects"), ("1", "1 object")],
)
def test_one_object_is_not_plural(number: int | str, told: str) -> None:
    assert counted(number, "object") == told


def test_no_sentence_puts_a_plural_behind_a_number_by_itself() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in sorted(ROOT.rglob("*.py"))
        if str(file.relative_to(ROOT)) not in ELSEWHERE
        for line in _plurals(parsed(file))
    ]

    assert found == [], "count with instar.base.plurals.counted"


def _plurals(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, behind in zip(node.values, node.values[1:], strict=False):
            text = behind.value if isinstance(behind, ast.Constant) else ""
            word = str(text).partition(" ")[2].partition(" ")[0].rstrip(".,;:)")
            counts = isinstance(value, ast.FormattedValue) and not _is_bound(value.value)
            if counts and str(text)[:1] == " " and word in NOUNS:
                yield node.lineno


def _is_bound(value: ast.expr) -> bool:
    """A constant, which is never 1."""
    return isinstance(value, ast.Name) and value.id.isupper()
