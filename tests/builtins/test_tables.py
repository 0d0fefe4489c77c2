"""Tables of built-in kinds: each recorded object shows the recorded cells, and whole answers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from instar.kube.facts.resources import ResourceFacts, resources
from instar.server.registry.kinds.printing.printer import printer_for
from tests.builtins.comparing import differences
from tests.builtins.replay import RECORDINGS, recorded, recorders_server, send
from tests.support.builtins import needs_builtins

pytestmark = needs_builtins

_BIRTH = "2026-11-15T12:00:00Z"
"""What ``<time>`` stands for: ages that were recorded as 2y319d begin on the first of 2024."""
_LATER = "apiservice"
"""Its object was read a moment after its cells, and has a condition by then."""


def _rows() -> list[dict[str, Any]]:
    if not RECORDINGS.is_dir():
        return [{"id": "missing"}]
    return [
        row
        for row in recorded("tables")
        if not row["id"].startswith("table.") and row["id"] != _LATER
    ]


def _facts(row: dict[str, Any]) -> ResourceFacts:
    parts = row["path"].partition("?")[0].strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    version = parts[1] if parts[0] == "api" else parts[2]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    [found] = [
        one
        for one in resources()
        if (one.group, one.version, one.plural) == (group, version, rest[0])
    ]
    return found


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item) for item in value]
    if isinstance(value, str):
        return value.replace("<time>", _BIRTH).replace("<microtime>", _BIRTH)
    return value


def _now(cells: list[Any]) -> datetime:
    """So long after the birth as the recorded age says."""
    ages = [cell for cell in cells if isinstance(cell, str) and re.fullmatch(r"\d+s", cell)]
    return datetime.fromisoformat(_BIRTH) + timedelta(seconds=int(ages[0][:-1]) if ages else 0)


@pytest.mark.parametrize("row", _rows(), ids=lambda row: str(row["id"]))
def test_the_cells_are_the_recorded_ones(row: dict[str, Any]) -> None:
    printer = printer_for(_facts(row))
    obj, expected = _filled(row["object"]), _filled(row["cells"])

    cells = printer.cells(obj, _now(row["cells"]).astimezone(UTC))

    assert cells == expected
    assert [
        column["name"] + ("*" if column["priority"] else "") for column in printer.definitions
    ] == row["columns"]
    assert printer.conditions(obj) == row.get("conditions", [[]])[0]


def _comparable(value: Any) -> Any:
    """Without the words of columns, ages, and where a page goes on."""
    if isinstance(value, dict):
        kept = {key: _comparable(item) for key, item in value.items() if key != "description"}
        return {**kept, "continue": "<somewhere>"} if "continue" in kept else kept
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if isinstance(value, str) and re.fullmatch(r"\d+s", value):
        return "<age>"
    return value


def test_whole_tables_are_answered_as_recorded() -> None:
    rows = [row for row in recorded("tables") if row["id"].startswith("table.")]
    full = {"metadata": {"name": "c"}, "data": {"a": "b", "c": "d"}, "binaryData": {"e": "eA=="}}
    bodies = {"table.create": {"metadata": {"name": "viatable"}}}
    found: dict[str, list[str]] = {}

    with recorders_server(bootstrap_objects=False) as server:
        for body in (full, {"metadata": {"name": "empty"}}):
            server.request("POST", "/api/v1/namespaces/tab/configmaps", body)
        for row in rows:
            answer = send(server, {**row, "body": bodies.get(row["id"])})
            shown = replace(answer, body=json.dumps(_comparable(answer.json)).encode())
            found[row["id"]] = differences({**row, "answer": _comparable(row["answer"])}, shown)

    assert found == {row["id"]: [] for row in rows}
