"""Renders a report as JUnit XML: one suite per CRD, one case per finding; errors are failures.

``render/__init__.py`` calls it for ``--output junit``, with a ``Report``.
"""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from instar.base.escaping import xml_document
from instar.tools.reviewer.render.shared import as_yaml, location, place, witness_lines
from instar.tools.reviewer.report import CrdReview, Finding, Report, Severity


def to_junit(report: Report) -> str:
    root = Xml.Element("testsuites", name="instar review")
    for crd in report.crds:
        _suite(root, crd)
    if report.problems:
        suite = Xml.SubElement(
            root,
            "testsuite",
            name="input",
            tests=str(len(report.problems)),
            errors=str(len(report.problems)),
        )
        for problem in report.problems:
            case = Xml.SubElement(
                suite, "testcase", name=problem.file or "input", classname="input"
            )
            Xml.SubElement(case, "error", message=str(problem))
    return xml_document(root)


def _suite(root: Xml.Element, crd: CrdReview) -> None:
    errors = sum(item.severity is Severity.ERROR for item in crd.findings)
    suite = Xml.SubElement(
        root,
        "testsuite",
        name=crd.name,
        tests=str(max(len(crd.findings) + len(crd.suppressed), 1)),
        failures=str(errors),
        skipped=str(len(crd.suppressed)),
    )
    for item in crd.findings:
        case = _case(suite, item)
        if item.severity is Severity.ERROR:
            failure = Xml.SubElement(case, "failure", type=item.rule, message=item.message)
            failure.text = _body(item)
        else:
            Xml.SubElement(case, "system-out").text = f"{item.severity}: {item.message}"
    for item in crd.suppressed:
        Xml.SubElement(_case(suite, item), "skipped", message=item.suppressed)
    if not crd.findings and not crd.suppressed:
        Xml.SubElement(suite, "testcase", name="nothing to report", classname=crd.name)


def _case(suite: Xml.Element, item: Finding) -> Xml.Element:
    name = " ".join(filter(None, (item.rule, place(item), item.key)))
    case = Xml.SubElement(suite, "testcase", name=name, classname=item.crd)
    if item.file:
        case.set("file", item.file)
        case.set("line", str(item.line))
    return case


def _body(item: Finding) -> str:
    parts = [location(item), item.details]
    if item.witness is not None:
        parts += [as_yaml(item.witness.object), *witness_lines(item.witness)]
    return "\n".join(filter(None, parts))
