"""One value in a column of a type."""

from __future__ import annotations

from datetime import datetime

from instar.kube.api.crd import PrinterColumn
from instar.kube.api.encoding.json_text import encode
from instar.server.registry.resources.columns import TablePrinter
from tests.oracle.cases import Case, Outcome, assert_agreement

SOME_TIME = "2026-01-01T00:00:00Z"


def judge(case: Case) -> Outcome:
    printer = TablePrinter([PrinterColumn("C", case.ask["columnType"], ".v")])
    now = datetime.fromisoformat(case.ask.get("now", SOME_TIME))
    _, cell = printer.cells({"v": case.ask["value"]}, now)
    # On the wire a float without a fraction is written as an integer.
    equal = encode([cell]) == encode([case.answer["cell"]])
    return Outcome(equal, equal, cell)


def test_cells_as_upstream() -> None:
    assert_agreement("table-cells", judge)
