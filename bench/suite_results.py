"""Parses the results of Go test binaries and renders a table that compares several servers. Pure.

``bench/suites.py`` reads the files and prints the table.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

_ENDED = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+) ")
_BEGUN = re.compile(r"^=== RUN\s+(\S+)")
_STATES = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
_GINKGO_BEGINS = "Running Suite:"
_NOT_RUN = frozenset({"skipped", "pending"})


class Spec(NamedTuple):
    name: str
    state: str
    """``passed``, ``skipped``, ``pending``, or how it failed."""
    told: str = ""
    """The failure's message."""


class Usage(NamedTuple):
    """Resources of one suite run; ``cpu`` and ``peak_mb`` are those of the servers it started."""

    seconds: float
    cpu: float
    peak_mb: float


class Run(NamedTuple):
    """Result of one suite on one server."""

    specs: Sequence[Spec]
    usage: Usage
    exit_code: int

    @property
    def passed(self) -> int:
        return sum(spec.state == "passed" for spec in self.specs)

    @property
    def ran(self) -> int:
        return sum(spec.state not in _NOT_RUN for spec in self.specs)


def ginkgo_specs(report: str) -> list[Spec]:
    """Parse a report of ``--json-report``; set-up and tear-down nodes are included only if they
    failed.
    """
    found = []
    for suite in json.loads(report) or []:
        for each in suite.get("SpecReports") or []:
            spec = _ginkgo_spec(each)
            if each["LeafNodeType"] == "It" or spec.state not in {"passed", *_NOT_RUN}:
                found.append(spec)
    return found


def _ginkgo_spec(report: Mapping[str, Any]) -> Spec:
    words = [*(report.get("ContainerHierarchyTexts") or []), report["LeafNodeText"]]
    if report["LeafNodeType"] != "It":
        words.append(f"[{report['LeafNodeType']}]")
    told = (report.get("Failure") or {}).get("Message", "")
    return Spec(" ".join(filter(None, words)), report["State"], told)


def go_tests(output: str) -> list[Spec]:
    """Parse the output of ``-test.v``, without the test function that runs Ginkgo's specs."""
    found: dict[str, str] = {}
    begun, runners = "", set()
    for line in output.splitlines():
        if match := _BEGUN.match(line):
            begun = match[1]
        elif line.startswith(_GINKGO_BEGINS):
            runners.add(begun)
        elif match := _ENDED.match(line):
            found[match[2]] = _STATES[match[1]]
    return [Spec(name, state) for name, state in found.items() if name not in runners]


def differences(first: Run, second: Run) -> list[str]:
    """Return a line for each spec whose result differs. Several specs may have the same name."""
    ours, theirs = (
        Counter((spec.name, spec.state) for spec in run.specs) for run in (first, second)
    )
    told = {(spec.name, spec.state): spec.told for run in (first, second) for spec in run.specs}
    only_first, only_second = ours - theirs, theirs - ours
    lines = []
    for name in sorted({name for name, _ in (*only_first, *only_second)}):
        states = [
            ", ".join(sorted(state for each, state in side if each == name)) or "absent"
            for side in (only_first, only_second)
        ]
        said = next(
            (told[key] for key in (*only_second, *only_first) if key[0] == name and told[key]), ""
        )
        lines.append(f"{name}: {states[0]} / {states[1]}{_first_line(said)}")
    return lines


def _first_line(text: str) -> str:
    words = " ".join(text.split())
    return f": {words[:300]}" if words else ""


def table(suites: Mapping[str, Mapping[str, Run]], servers: Sequence[str]) -> str:
    """Return a Markdown table: a row per suite, with the figures of each server."""
    beside = " / ".join(servers)
    heads = ["suite", "specs", *(f"pass on {name}" for name in servers)]
    heads += [f"seconds, {beside}", f"CPU s of the servers, {beside}", f"peak MB, {beside}"]
    rows = [heads, ["---"] * len(heads)]
    rows += [_row(name, [runs[server] for server in servers]) for name, runs in suites.items()]
    if len(suites) > 1:
        rows.append(_row("all", [_sum(runs[name] for runs in suites.values()) for name in servers]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(name: str, runs: Sequence[Run]) -> list[str]:
    return [
        name,
        f"{max(run.ran for run in runs):,}",
        *(f"{run.passed:,}" for run in runs),
        " / ".join(f"{run.usage.seconds:.1f}" for run in runs),
        " / ".join(f"{run.usage.cpu:.1f}" for run in runs),
        " / ".join(f"{run.usage.peak_mb:.0f}" for run in runs),
    ]


def _sum(runs: Iterable[Run]) -> Run:
    all_runs = list(runs)
    usage = Usage(
        sum(run.usage.seconds for run in all_runs),
        sum(run.usage.cpu for run in all_runs),
        max(run.usage.peak_mb for run in all_runs),
    )
    specs = [spec for run in all_runs for spec in run.specs]
    return Run(specs, usage, max(run.exit_code for run in all_runs))
