"""Renders validation results as text, JSON, GitHub annotations, GitLab issues, JUnit or SARIF.

Called by ``instar validate``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from xml.etree import ElementTree as Xml

from instar.base.escaping import sarif_text, xml_document
from instar.tools.reviewer.render.github import annotation
from instar.tools.reviewer.render.gitlab import issue
from instar.tools.validator.report import ValidatedObject, ValidationLevel, Verdicts

_NAME = "instar validate"
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF_LEVELS = {
    ValidationLevel.ERROR: "error",
    ValidationLevel.WARNING: "warning",
    ValidationLevel.UNKNOWN: "note",
}
_SEVERITIES = {
    ValidationLevel.ERROR: "critical",
    ValidationLevel.WARNING: "minor",
    ValidationLevel.UNKNOWN: "info",
}
_COMMANDS = {
    ValidationLevel.ERROR: "error",
    ValidationLevel.WARNING: "warning",
    ValidationLevel.UNKNOWN: "notice",
}


def to_text(verdicts: Verdicts) -> str:
    lines = [str(finding) for finding in verdicts.findings]
    counts = [(f"{verdicts.count(None)} valid", True)]
    for level, word in (
        (ValidationLevel.ERROR, "refused"),
        (ValidationLevel.WARNING, "with warnings"),
        (ValidationLevel.UNKNOWN, "of unknown kinds"),
    ):
        number = verdicts.count(level)
        counts.append((f"{number} {word}", bool(number)))
    number = len(verdicts.judged)
    told = ", ".join(text for text, shown in counts if shown)
    return "\n".join([*lines, f"{number} object{'s' * (number != 1)}: {told}"]) + "\n"


def to_json(verdicts: Verdicts) -> str:
    document = {
        "objects": len(verdicts.judged),
        "valid": verdicts.count(None),
        **{level.value: verdicts.count(level) for level in ValidationLevel},
        "findings": [
            {
                "level": finding.level.value,
                "file": finding.file,
                "line": finding.line,
                "object": finding.subject,
                "field": finding.field,
                "message": finding.message,
            }
            for finding in verdicts.findings
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def to_github(verdicts: Verdicts) -> str:
    lines = [
        annotation(
            _COMMANDS[finding.level],
            title=_NAME,
            text=": ".join(filter(None, (finding.subject, finding.field, finding.message))),
            file=finding.file,
            line=finding.line,
        )
        for finding in verdicts.findings
    ]
    return "\n".join(lines) + "\n" if lines else ""


def to_junit(verdicts: Verdicts) -> str:
    """One suite per file, one case per object."""
    root = Xml.Element("testsuites", name=_NAME)
    suites: dict[str, list[ValidatedObject]] = {}
    for each in verdicts.judged:
        suites.setdefault(each.file, []).append(each)
    for problem in verdicts.problems:
        suites.setdefault(problem.file, []).append(
            ValidatedObject(problem.subject or "input", problem.file, problem.line, [problem])
        )
    for file, cases in suites.items():
        failures = sum(each.level is ValidationLevel.ERROR for each in cases)
        suite = Xml.SubElement(
            root, "testsuite", name=file, tests=str(len(cases)), failures=str(failures)
        )
        for each in cases:
            _case(suite, each)
    return xml_document(root)


def _case(suite: Xml.Element, each: ValidatedObject) -> None:
    case = Xml.SubElement(
        suite,
        "testcase",
        name=each.subject or f"line {each.line}",
        classname=each.file,
        file=each.file,
        line=str(each.line),
    )
    told = "\n".join(map(str, each.findings))
    if each.level is ValidationLevel.ERROR:
        first = next(one for one in each.findings if one.level is ValidationLevel.ERROR)
        Xml.SubElement(case, "failure", message=first.message).text = told
    elif each.level is ValidationLevel.UNKNOWN:
        Xml.SubElement(case, "skipped", message=each.findings[0].message)
    elif told:
        Xml.SubElement(case, "system-out").text = told


def to_sarif(verdicts: Verdicts) -> str:
    results = [
        {
            "ruleId": finding.level.value,
            "level": _SARIF_LEVELS[finding.level],
            "message": {
                "text": sarif_text(
                    ": ".join(filter(None, (finding.subject, finding.field, finding.message)))
                )
            },
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": finding.file.replace("\\", "/")},
                        "region": {"startLine": max(finding.line, 1)},
                    }
                }
            ],
        }
        for finding in verdicts.findings
    ]
    run = {"tool": {"driver": {"name": _NAME}}, "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def to_gitlab(verdicts: Verdicts) -> str:
    """GitLab's Code Quality artifact."""
    items = []
    for finding in verdicts.findings:
        text = ": ".join(filter(None, (finding.subject, finding.field, finding.message)))
        seen = f"{finding.file} {finding.subject} {finding.field} {finding.message}"
        items.append(
            issue(
                text=text,
                rule=f"instar-validate-{finding.level.value}",
                fingerprint=hashlib.sha256(seen.encode("utf-8", "replace")).hexdigest()[:32],
                severity=_SEVERITIES[finding.level],
                file=finding.file,
                line=finding.line,
            )
        )
    return json.dumps(items, indent=2, ensure_ascii=False) + "\n"


FORMS: dict[str, Callable[[Verdicts], str]] = {
    "text": to_text,
    "json": to_json,
    "sarif": to_sarif,
    "junit": to_junit,
    "github": to_github,
    "gitlab": to_gitlab,
}
