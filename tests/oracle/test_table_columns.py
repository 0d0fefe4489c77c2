"""A printer column's path on an object."""

from __future__ import annotations

from datetime import UTC, datetime

from instar.kube.api.crd import PrinterColumn
from instar.kube.api.encoding.json_text import encode
from instar.server.registry.resources.columns import TablePrinter
from tests.oracle.cases import Case, Outcome, assert_agreement

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def judge(case: Case) -> Outcome:
    """A path upstream cannot read costs the column, and those after it."""
    printer = TablePrinter([PrinterColumn("C", case.ask["type"], case.ask["jsonPath"])])
    cells = printer.cells(case.ask["object"], NOW)[1:]
    refused = "pathError" in case.answer
    if refused or not cells:
        return Outcome(refused == (not cells), refused == (not cells), cells)
    equal = encode(cells) == encode([case.answer["cell"]])
    return Outcome(equal, equal, cells[0])


def test_columns_as_upstream() -> None:
    assert_agreement("table-columns", judge)
