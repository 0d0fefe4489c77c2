"""The recorded answers as text: ``answers/TOPIC.jsonl``, a line for each scenario and request.

A body that an earlier request of the scenario got already is written as ``"same": STEP``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.recordings.playing import Row

ANSWERS = Path(__file__).parent / "answers"


def written(rows: Mapping[str, Iterable[Row]]) -> str:
    """Scenario → its rows, as the text of a file."""
    lines = []
    for scenario, played in rows.items():
        lines.append(_line({"scenario": scenario}))
        lines += [_line(row) for row in _shared(played)]
    return "".join(f"{line}\n" for line in lines)


def recorded(topic: str, answers: Path = ANSWERS) -> dict[str, list[Row]]:
    """Scenario → its rows."""
    found: dict[str, list[Row]] = {}
    bodies: dict[str, Any] = {}
    rows: list[Row] = []
    for line in (answers / f"{topic}.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "scenario" in row:
            rows, bodies = found.setdefault(row["scenario"], []), {}
            continue
        if "same" in row:
            row["body"] = bodies[row.pop("same")]
        elif "body" in row:
            bodies[row["step"]] = row["body"]
        rows.append(row)
    return found


def _shared(rows: Iterable[Row]) -> Iterable[Row]:
    seen: dict[str, str] = {}
    for row in rows:
        if "body" not in row:
            yield row
            continue
        text = as_text(row["body"])
        if text in seen:
            yield {**{key: each for key, each in row.items() if key != "body"}, "same": seen[text]}
        else:
            seen[text] = row["step"]
            yield row


def as_text(value: Any) -> str:
    """Equal values have equal texts; 1 and 1.0 are different."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _line(row: Row) -> str:
    """The question's keys first, then the answer's, each in a fixed order."""
    first: Row = {key: row[key] for key in ("scenario", "step", "ask", "of", "code") if key in row}
    rest: Row = {key: row[key] for key in sorted(row) if key not in first}
    parts = [f"{json.dumps(key)}:{as_text(row[key])}" for key in (*first, *rest)]
    return "{" + ",".join(parts) + "}"
