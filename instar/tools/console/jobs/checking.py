"""Runs ``instar check`` in a job process: generates objects, and sends them over the pipe to the
console process, which has the cluster convert them.

Called by ``worker.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from instar.base.json_values import Object
from instar.tools.console.jobs.protocol import JobLine
from instar.tools.sdk.checking.case import Uncheckable, case_of
from instar.tools.sdk.checking.definition import parse_crd
from instar.tools.sdk.checking.laws import LAWS
from instar.tools.sdk.checking.render import as_json, check_document
from instar.tools.sdk.checking.search import check
from instar.tools.sdk.errors import ConversionError


class PipeResponder:
    """A ``Responder`` that sends conversions over the job's pipe."""

    def __init__(self, line: JobLine) -> None:
        self._line = line

    def convert(self, objects: Sequence[Object], api_version: str) -> Sequence[Any]:
        answer = self._line.ask({"objects": list(objects), "to": api_version.rpartition("/")[2]})
        if "failed" not in answer:
            converted: list[Any] = answer["objects"]
            return converted
        if answer["unreachable"]:
            raise Uncheckable(answer["failed"])
        raise ConversionError(answer["failed"])


def run_check(work: Object, line: JobLine) -> Any:
    """Run the laws and report each result. Raises ``Uncheckable``."""
    case = case_of(parse_crd(work["crd"]), PipeResponder(line), versions=work["versions"])
    wanted = set(work["laws"])
    unknown = wanted - {law.name for law in LAWS}
    if unknown:
        raise Uncheckable(f"there is no law {', '.join(sorted(unknown))}")
    report = check(
        case,
        converter=work["by"],
        laws=[law for law in LAWS if not wanted or law.name in wanted],
        examples=work["examples"],
        seed=work["seed"],
        progress=lambda outcome: line.note(check_document(outcome)),
    )
    return orjson.loads(as_json(report))
