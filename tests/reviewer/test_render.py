"""The forms of a report: each is what its readers expect, whatever the texts hold."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from instar.kube.schema.compiled import compile_schema
from instar.review import Finding, Report, Severity, review
from instar.tools.reviewer.render import MACHINE
from instar.tools.reviewer.render.json import as_dict, json_schema
from instar.tools.reviewer.render.text import to_text
from instar.tools.reviewer.report import CrdReview, Damage, Problem, StoredObject
from tests.reviewer.golden import cases, review_folder
from tests.reviewer.widget import changed, drop, put, widget

NASTY = "a|b <script>`x` %0A\n*y* ::error:: ]]> \x01"


@pytest.fixture(scope="module")
def report() -> Report:
    crd = changed(drop("spec", "note"))
    put("spec", "replicas", default=2)(crd)
    put("spec", "size", enum=["small", "large", "huge"])(crd)
    found = review(widget(), crd)
    nasty = Finding(
        rule="rule-added",
        severity=Severity.ERROR,
        crd="widgets.example.com",
        version="v1",
        path="spec.a",
        message=NASTY,
        details=NASTY,
        file="crd, x.yaml",
        line=3,
    )
    hidden = replace(nasty, key="hidden", suppressed="known")
    stored = StoredObject("default/a", "v1", Damage.PRUNED, ("spec.note is dropped",))
    [crd_review] = found.crds
    whole = replace(
        crd_review,
        findings=(*crd_review.findings, nasty),
        suppressed=(hidden,),
        stored=(stored,),
        stored_count=2,
    )
    return Report(
        crds=(whole, CrdReview(name="clean.example.com")),
        only_old=("gone.example.com",),
        only_new=("new.example.com",),
        problems=(Problem("broken", "x.yaml", 7),),
    )


def test_json_fits_its_published_schema(report: Report) -> None:
    schema = compile_schema(json_schema())

    assert schema.validate(json.loads(MACHINE["json"](report))) == []


@pytest.mark.parametrize("name", cases())
def test_json_of_every_golden_folder_fits_the_schema(name: str) -> None:
    document = json.loads(json.dumps(as_dict(review_folder(name))))

    assert compile_schema(json_schema()).validate(document) == []


def test_sarif_has_rules_results_places_and_suppressions(report: Report) -> None:
    [run] = json.loads(MACHINE["sarif"](report))["runs"]

    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in run["results"]} <= rules
    assert {result["level"] for result in run["results"]} <= {"error", "warning", "note"}
    last = run["results"][-1]
    assert last["suppressions"][0]["justification"] == "known"
    assert last["locations"][0]["physicalLocation"]["region"]["startLine"] == 3
    assert run["invocations"][0]["executionSuccessful"] is False


def test_github_annotations_are_one_line_each_and_escaped(report: Report) -> None:
    lines = MACHINE["github"](report).splitlines()

    assert len(lines) == len(report.findings) + 1
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines)
    assert "::error file=crd%2C x.yaml,line=3,title=rule-added::" in lines[-2]
    assert lines[-1] == "::error file=x.yaml,line=7,title=instar review::broken"


def test_gitlab_entries_have_a_place_and_a_fingerprint_each(report: Report) -> None:
    entries = json.loads(MACHINE["gitlab"](report))

    assert len(entries) == len(report.findings) + len(report.problems)
    assert {entry["severity"] for entry in entries} <= {"critical", "minor", "info", "blocker"}
    assert all(entry["location"]["path"] for entry in entries)
    assert all(entry["location"]["lines"]["begin"] >= 1 for entry in entries)
    assert entries[-2]["location"] == {"path": "crd, x.yaml", "lines": {"begin": 3}}


def test_junit_is_xml_whose_failures_are_the_errors(report: Report) -> None:
    root = ElementTree.fromstring(MACHINE["junit"](report))

    failures = root.findall(".//failure")
    assert len(failures) == report.count(Severity.ERROR)
    assert len(root.findall(".//skipped")) == 1
    assert len(root.findall(".//error")) == 1


def test_html_is_self_contained_and_escaped(report: Report) -> None:
    page = MACHINE["html"](report)

    assert "<script" not in page
    assert "http" not in page.replace("https://json", "")
    assert "&lt;script&gt;" in page


def test_markdown_tables_are_not_broken_by_texts(report: Report) -> None:
    rows = [line for line in MACHINE["markdown"](report).splitlines() if line.startswith("| 🔴")]

    assert rows
    assert all(row.replace("\\|", "").count("|") == 7 for row in rows)


def test_text_is_short_and_details_are_on_demand(report: Report) -> None:
    short, long = to_text(report), to_text(report, details=True)

    assert "\x1b[" not in short
    assert "witness:" not in short
    assert "witness:" in long
    assert "old: it is accepted" in long
    assert len(short.splitlines()) < len(long.splitlines()) / 2


def test_findings_common_to_versions_are_one_line() -> None:
    text = to_text(review(widget(), changed(drop("spec", "note"))))

    assert text.count("field-removed") == 1
    assert "v1,v1beta1 spec.note" in text


def test_text_can_be_coloured(report: Report) -> None:
    assert "\x1b[31" in to_text(report, colour=True)
