"""Renders a rehearsal as JUnit XML: a suite per CRD, a case per step and client.

``render/__init__.py`` calls it for ``--output junit``; ``model.py`` defines the results.
"""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from instar.base.escaping import xml_document
from instar.tools.rehearsal.go_no_go import GoNoGo
from instar.tools.rehearsal.model import ClientStanding, CrdRehearsal, Rehearsal, StepOutcome
from instar.tools.rehearsal.render.shared import damages, example, exchange, step_standing

_UNJUDGED_STANDINGS = (ClientStanding.UNKNOWN,)


def to_junit(rehearsal: Rehearsal, decision: GoNoGo) -> str:
    root = Xml.Element("testsuites", name="instar rehearse")
    for crd in rehearsal.crds:
        _suite(root, crd)
    told = [reason for reason in decision.reasons if reason.word in ("problem", "fault")]
    told += [reason for reason in decision.reasons if reason.word == "unknown"]
    if told:
        number = str(len(told))
        suite = Xml.SubElement(root, "testsuite", name="input", tests=number, errors=number)
        for reason in told:
            case = Xml.SubElement(suite, "testcase", name=reason.word, classname="input")
            Xml.SubElement(case, "error", message=reason.text)
    return xml_document(root)


def _suite(root: Xml.Element, crd: CrdRehearsal) -> None:
    suite = Xml.SubElement(root, "testsuite", name=crd.name)
    for number, step in enumerate(crd.steps, 1):
        classname = f"{crd.name}.{number}"
        _step(suite, step, classname)
        for name, verdict in sorted(step.clients.items()):
            case = Xml.SubElement(suite, "testcase", name=name, classname=classname)
            body = "\n".join([*verdict.reasons, *map(exchange, verdict.evidence), *verdict.basis])
            _add_result(case, verdict.standing, "; ".join(verdict.reasons), body)
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))


def _step(suite: Xml.Element, step: StepOutcome, classname: str) -> None:
    case = Xml.SubElement(
        suite, "testcase", name=step.title, classname=classname, time=f"{step.seconds:.3f}"
    )
    told = damages(step)
    if step.refused:
        told.insert(0, f"refused: {step.refused}")
    if step.migration is not None:
        told += step.migration.trouble
    told += [f"unknown: {number}: {why}" for why, number in step.unknown.items()]
    body = "\n".join(map(example, step.damages.examples))
    clients = ClientStanding.UNAFFECTED
    standing = step_standing(step)
    if not told:
        standing = clients
    _add_result(case, standing, "; ".join(told), body)


def _add_result(case: Xml.Element, standing: ClientStanding, message: str, body: str) -> None:
    if standing is ClientStanding.BROKEN:
        Xml.SubElement(case, "failure", type="broken", message=message).text = body
    elif standing in _UNJUDGED_STANDINGS:
        Xml.SubElement(case, "error", type="unknown", message=message).text = body
    elif standing is ClientStanding.WARNED:
        Xml.SubElement(case, "system-out").text = f"{message}\n{body}"
