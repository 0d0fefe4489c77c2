"""Renders a test run as text, JSON, JUnit or GitHub annotations.

Called by ``instar test``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from xml.etree import ElementTree as Xml

from instar.base.escaping import xml_document
from instar.tools.reviewer.render.github import annotation
from instar.tools.suites.coverage import Coverage
from instar.tools.suites.running import Result
from instar.tools.suites.session import Run

_MAX_SHOWN_ITEMS = 40
"""Further items without coverage are only counted."""


def to_text(run: Run) -> str:
    lines = list(run.problems)
    lines += dict.fromkeys(note for result in run.results for note in result.suite.notes)
    for result in run.results:
        if not result.passed:
            case = result.case
            lines.append(f"{result.suite.file}:{case.line}: FAILED {case.act}: {case.name}")
            lines += [f"    {text}" for text in result.failures]
    for name, coverage in run.coverage.items():
        lines += _coverage_lines(name, coverage)
    passed = len(run.results) - run.failed
    seconds = sum(result.seconds for result in run.results)
    failed = f", {run.failed} failed" if run.failed else ""
    lines.append(f"{passed} passed{failed} in {seconds:.2f} s")
    return "\n".join(lines) + "\n"


def _coverage_lines(name: str, coverage: Coverage) -> list[str]:
    missing = coverage.missing
    done = len(coverage.items) - len(missing)
    lines = [f"{name}: {done} of {len(coverage.items)} exercised ({coverage.percent:.0f} %)"]
    if missing:
        lines.append("  not exercised:")
    lines += [f"    {item}" for item in missing[:_MAX_SHOWN_ITEMS]]
    if len(missing) > _MAX_SHOWN_ITEMS:
        lines.append(f"    and {len(missing) - _MAX_SHOWN_ITEMS} more (-o json lists all)")
    return lines


def to_json(run: Run) -> str:
    document = {
        "problems": run.problems,
        "cases": [
            {
                "file": result.suite.file,
                "line": result.case.line,
                "suite": result.suite.name,
                "case": result.case.name,
                "act": result.case.act.value,
                "passed": result.passed,
                "failures": result.failures,
                "seconds": round(result.seconds, 6),
            }
            for result in run.results
        ],
        "coverage": {
            name: {
                "percent": round(coverage.percent, 1),
                "missing": [item._asdict() for item in coverage.missing],
            }
            for name, coverage in run.coverage.items()
        },
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def to_junit(run: Run) -> str:
    root = Xml.Element("testsuites", name="instar test")
    suites: dict[str, list[Result]] = {}
    for result in run.results:
        suites.setdefault(result.suite.file, []).append(result)
    for file, results in suites.items():
        suite = Xml.SubElement(
            root,
            "testsuite",
            name=results[0].suite.name,
            tests=str(len(results)),
            failures=str(sum(not result.passed for result in results)),
            time=f"{sum(result.seconds for result in results):.3f}",
        )
        for result in results:
            case = Xml.SubElement(
                suite,
                "testcase",
                name=result.case.name,
                classname=f"{file}:{result.case.act}",
                file=file,
                line=str(result.case.line),
                time=f"{result.seconds:.4f}",
            )
            if not result.passed:
                told = "\n".join(result.failures)
                Xml.SubElement(case, "failure", message=result.failures[0]).text = told
    if run.problems:
        suite = Xml.SubElement(root, "testsuite", name="input", errors=str(len(run.problems)))
        for problem in run.problems:
            case = Xml.SubElement(suite, "testcase", name="input", classname="input")
            Xml.SubElement(case, "error", message=problem)
    return xml_document(root)


def to_github(run: Run) -> str:
    title = "instar test"
    lines = [annotation("error", title=title, text=problem) for problem in run.problems]
    for result in run.results:
        if not result.passed:
            text = f"{result.case.name}: " + "\n".join(result.failures)
            file, line = result.suite.file, result.case.line
            lines.append(annotation("error", title=title, text=text, file=file, line=line))
    return "\n".join(lines) + "\n" if lines else ""


FORMS: dict[str, Callable[[Run], str]] = {
    "text": to_text,
    "json": to_json,
    "junit": to_junit,
    "github": to_github,
}
