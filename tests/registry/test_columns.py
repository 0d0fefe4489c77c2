"""Table cells: kubectl's ages, and what each column type makes of each value."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from instar.kube.api.crd import PrinterColumn
from instar.server.registry.resources.columns import TablePrinter, human_duration

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (300, "5m"),
        (330, "5m30s"),
        (2700, "45m"),
        (3 * 3600, "3h"),
        (7 * 3600 + 59 * 60, "7h59m"),
        (47 * 3600, "47h"),
        (3 * 86400 + 4 * 3600, "3d4h"),
        (90 * 86400, "90d"),
        (3 * 365 * 86400 + 20 * 86400, "3y20d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_ages_read_as_in_kubectl(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


@pytest.mark.parametrize(
    ("type_", "value", "cell"),
    [
        ("string", "x", "x"),
        ("string", 3, "3"),
        ("string", True, "true"),
        ("string", 2.7, "2.7"),
        ("string", ["p", "q"], '["p","q"]'),
        ("string", None, "<no value>"),
        ("integer", 3, 3),
        ("integer", 3.9, 3),
        ("integer", "3", None),
        ("number", 2.5, 2.5),
        ("number", "2.5", None),
        ("boolean", True, True),
        ("boolean", "true", None),
        ("date", "2025-12-31T23:59:00Z", "60s"),
        ("date", "2020-01-01", "<invalid>"),
        ("date", "", "<unknown>"),
        ("date", "2026-01-02T00:00:00Z", "<invalid>"),
        ("date", 7, None),
    ],
)
def test_a_cell_by_column_type_and_value(type_: str, value: Any, cell: Any) -> None:
    printer = TablePrinter((PrinterColumn("C", type_, ".v"),))
    assert printer.cells({"metadata": {"name": "n"}, "v": value}, NOW) == ["n", cell]


def test_without_columns_there_is_an_age() -> None:
    printer = TablePrinter(())
    assert [column["name"] for column in printer.definitions] == ["Name", "Age"]


def test_an_unreadable_path_ends_the_columns() -> None:
    printer = TablePrinter(
        (
            PrinterColumn("A", "string", ".a"),
            PrinterColumn("B", "string", ".b["),
            PrinterColumn("C", "string", ".c"),
        )
    )
    assert [column["name"] for column in printer.definitions] == ["Name", "A"]


def test_a_stored_path_without_end_costs_its_own_cell() -> None:
    endless = PrinterColumn("Endless", "string", ".spec" + "[0]" * 40_000)
    printer = TablePrinter([endless, PrinterColumn("Size", "string", ".spec.size")])

    assert printer.cells({"metadata": {"name": "a"}, "spec": {"size": "s"}}, NOW) == [
        "a",
        None,
        "s",
    ]
