"""Renders the report of a check as text, JSON or JUnit, and a counterexample as a pytest case.

``instar check``, ``instar.testing`` and the console call it.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import orjson
import yaml

from instar.base.escaping import xml_document
from instar.base.plurals import counted
from instar.tools.sdk.checking.report import CheckReport, LawResult

_COMMON_FIELDS = ("apiVersion", "kind", "metadata")
_MARKS = {"kept": "ok    ", "broken": "BROKEN", "unchecked": "??    "}


def as_text(report: CheckReport) -> str:
    lines = [f"{report.crd}, converted by {report.converter or 'the given converter'}"]
    lines += [_line(outcome) for outcome in report.outcomes]
    for loss in report.losses:
        lines.append(f"declared loss: {loss.version} {loss.path}: {loss.reason}")
    for outcome in report.broken:
        lines += ["", *_explain(outcome)]
    lines += ["", _summary(report)]
    return "\n".join(lines) + "\n"


def _line(outcome: LawResult) -> str:
    direction = f"{outcome.source} → {outcome.target}"
    note = f"  ({outcome.note})" if outcome.note else ""
    mark = _MARKS[outcome.verdict]
    return (
        f"  {mark} {direction:<22} {outcome.law:<14} {outcome.title}: "
        f"{counted(outcome.examples, 'object')}, {outcome.seconds:.1f} s{note}"
    )


def _explain(outcome: LawResult) -> list[str]:
    example = outcome.counterexample
    if example is None:
        return []
    lines = [f"{outcome.source} → {outcome.target}, {outcome.law}: {example.message}"]
    for caption, value in example.steps:
        lines += [f"  {caption}:", *_indented(value, "    ")]
    if example.found:
        lines += ["  that is:", *(f"    {text}" for text in example.found)]
    return lines


def _indented(value: Any, indent: str) -> list[str]:
    return [indent + line for line in to_yaml(value).splitlines()]


def to_yaml(value: Any) -> str:
    """Return YAML with an object's members in the usual order (apiVersion, kind, metadata)."""
    return yaml.safe_dump(_ordered(value), sort_keys=False, allow_unicode=True, width=100)


def _ordered(value: Any) -> Any:
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if isinstance(value, dict) and "apiVersion" in value:
        first = {name: value[name] for name in _COMMON_FIELDS if name in value}
        return {**first, **value}
    return value


def _summary(report: CheckReport) -> str:
    objects = sum(outcome.examples for outcome in report.outcomes)
    seed = f" (seed {report.seed})" if report.seed else ""
    checks = counted(len(report.outcomes), "check")
    if report.broken:
        return f"{len(report.broken)} of {checks} found a counterexample{seed}"
    if report.unchecked:
        return f"{len(report.unchecked)} of {checks} had nothing to go on{seed}"
    return f"no counterexample in {counted(objects, 'trial')}{seed}"


def as_json(report: CheckReport) -> str:
    document = {
        "crd": report.crd,
        "converter": report.converter,
        "seed": report.seed,
        "exitCode": report.exit_code,
        "losses": [
            {"version": loss.version, "path": loss.path, "reason": loss.reason}
            for loss in report.losses
        ],
        "checks": [check_document(outcome) for outcome in report.outcomes],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"


def check_document(outcome: LawResult) -> dict[str, Any]:
    document: dict[str, Any] = {
        "law": outcome.law,
        "title": outcome.title,
        "from": outcome.source,
        "to": outcome.target,
        "verdict": outcome.verdict,
        "objects": outcome.examples,
        "seconds": round(outcome.seconds, 3),
    }
    if outcome.note:
        document["note"] = outcome.note
    example = outcome.counterexample
    if example is not None:
        document["counterexample"] = {
            "message": example.message,
            "inputs": example.inputs,
            "steps": [{"caption": caption, "value": value} for caption, value in example.steps],
            "differences": example.found,
        }
    return document


def as_junit(report: CheckReport) -> str:
    suite = ET.Element(
        "testsuite",
        name=f"instar check {report.crd}",
        tests=str(len(report.outcomes)),
        failures=str(len(report.broken)),
        errors="0",
        skipped=str(len(report.unchecked)),
        time=f"{sum(outcome.seconds for outcome in report.outcomes):.3f}",
    )
    for outcome in report.outcomes:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=f"{report.crd}.{outcome.source}-to-{outcome.target}",
            name=outcome.law,
            time=f"{outcome.seconds:.3f}",
        )
        if outcome.counterexample is not None:
            failure = ET.SubElement(case, "failure", message=outcome.counterexample.message)
            failure.text = "\n".join(_explain(outcome))
        elif outcome.verdict == "unchecked":
            ET.SubElement(case, "skipped", message=outcome.note)
    return xml_document(suite)


def as_pytest(report: CheckReport, crd: str, converter: str) -> str:
    """Return a test module with one test per counterexample, for the repository of the
    converter.
    """
    cases = [_test_case(outcome) for outcome in report.broken]
    return _MODULE.format(crd=crd, converter=converter, cases="\n\n".join(cases))


_MODULE = '''\
"""Counterexamples found by `instar check`; each fails until the converter is mended."""

from pathlib import Path

import yaml

from instar.testing import assert_law

CRD = Path({crd!r})
CONVERTER = {converter!r}


{cases}
'''
_CASE = '''\
def test_{name}() -> None:
    # {message}
    inputs = list(yaml.safe_load_all(r"""
{inputs}"""))

    assert_law({law!r}, CRD, CONVERTER, inputs, source={source!r}, target={target!r})
'''


def _test_case(outcome: LawResult) -> str:
    example = outcome.counterexample
    assert example is not None
    words = f"{outcome.law}_{outcome.source}_to_{outcome.target}"
    dumped = yaml.safe_dump_all(example.inputs, sort_keys=False, allow_unicode=False)
    return _CASE.format(
        name=re.sub(r"\W", "_", words),
        message=example.message.replace("\n", " "),
        inputs=dumped,
        law=outcome.law,
        source=outcome.source,
        target=outcome.target,
    )
