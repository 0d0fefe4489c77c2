"""A recorded row and ours: what differs, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.recordings.corpus import as_text
from tests.recordings.playing import Row

_SHOWN = 300


def row_differences(recorded: Row, ours: Row) -> list[str]:
    """None when the answers are the same."""
    ours = _without_advice(recorded, ours)
    if as_text(recorded) == as_text(ours):
        return []
    if recorded["of"] != ours["of"]:
        return ["the question has changed since it was recorded: scripts/record"]
    return list(_differences(recorded, ours, "")) or [f"{recorded} for {ours}"]


def _without_advice(recorded: Row, ours: Row) -> Row:
    """What instar says besides upstream's text about a webhook that failed
    (docs/reference/differences.md):
    causes of the reason ``Advice``, and CRD, versions and webhook of a failed conversion."""
    failure: Any = ours.get("failure")
    details = failure.get("details") if isinstance(failure, dict) else None
    if ours["code"] < 500 or not isinstance(details, dict) or "failure" not in recorded:
        return ours
    causes = [one for one in details.get("causes") or () if one.get("reason") != "Advice"]
    if any(one.get("reason") == "CustomResourceDefinition" for one in causes):
        kept = {key: each for key, each in failure.items() if key != "details"}
        return {**ours, "failure": kept}
    return {**ours, "failure": {**failure, "details": {**details, "causes": causes}}}


def _differences(recorded: Any, ours: Any, path: str) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(ours, dict):
        for key in sorted({*recorded, *ours}):
            if key not in ours:
                yield f"{path}.{key}: missing, recorded {_short(recorded[key])}"
            elif key not in recorded:
                yield f"{path}.{key}: not recorded, {_short(ours[key])}"
            else:
                yield from _differences(recorded[key], ours[key], f"{path}.{key}")
    elif isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        for position, (left, right) in enumerate(zip(recorded, ours, strict=True)):
            yield from _differences(left, right, f"{path}[{position}]")
    elif as_text(recorded) != as_text(ours):
        yield f"{path}: {_short(ours)}\n      recorded {_short(recorded)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < _SHOWN else f"{text[:_SHOWN]}…"
