"""Severities, suppressions with an end, and baselines."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from instar.review import Options, Severity, review
from instar.tools.reviewer.config import (
    Config,
    ConfigError,
    decide,
    parse,
    read_baseline,
    section,
    write_baseline,
)
from instar.tools.reviewer.sources import load_config
from tests.reviewer.widget import changed, drop, widget

TODAY = date(2026, 6, 1)
SUPPRESS = {
    "rule": "field-removed",
    "path": "spec.no*",
    "reason": "never used",
    "owner": "team-a",
    "expires": "2026-12-31",
}


def test_suppression_hides_and_says_why() -> None:
    report = review(widget(), changed(drop("spec", "note")), witnesses=False)

    decided = decide(report, parse({"suppress": [SUPPRESS]}), (), TODAY)

    assert decided.exit_code() == 0
    assert [item.suppressed for item in decided.crds[0].suppressed] == ["never used (team-a)"] * 2


def test_expired_suppression_fails_and_hides_nothing() -> None:
    report = review(widget(), changed(drop("spec", "note")), witnesses=False)
    config = parse({"suppress": [{**SUPPRESS, "expires": "2026-05-31"}]})

    decided = decide(report, config, (), TODAY)

    rules = {item.rule for item in decided.findings}
    assert {"field-removed", "suppression-expired"} <= rules
    assert decided.exit_code() == 1


@pytest.mark.parametrize("missing", ["reason", "owner", "expires", "rule"])
def test_suppression_without_its_parts_is_refused(missing: str) -> None:
    raw = {name: value for name, value in SUPPRESS.items() if name != missing}

    with pytest.raises(ConfigError, match=missing):
        parse({"suppress": [raw]})


@pytest.mark.parametrize(
    "raw",
    [
        {"severity": {"no-such-rule": "error"}},
        {"severity": {"field-removed": "loud"}},
        {"fail-on": "panic"},
        {"supress": []},
        {"suppress": [{**SUPPRESS, "expires": "soon"}]},
        {"suppress": [{**SUPPRESS, "rule": "no-such-*"}]},
    ],
)
def test_mistyped_configuration_is_refused(raw: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        parse(raw)


def test_severity_can_be_raised_lowered_and_turned_off() -> None:
    for severity, count in ((Severity.INFO, 2), (Severity.OFF, 0)):
        options = Options(severities={"field-removed": severity})

        report = review(widget(), changed(drop("spec", "note")), options=options)

        assert [item.severity for item in report.findings] == [severity] * count


def test_a_baseline_hides_its_findings_and_nothing_else() -> None:
    known = review(widget(), changed(drop("spec", "note")), witnesses=False)
    baseline = read_baseline(write_baseline(known))
    more = review(widget(), changed(drop("spec", "range")), witnesses=False)

    assert decide(known, Config(), baseline, TODAY).findings == ()
    assert decide(more, Config(), baseline, TODAY).findings == more.findings


def test_fingerprint_survives_other_words_and_lines() -> None:
    first = review(widget(), changed(drop("spec", "note")), witnesses=False)
    second = review(widget(), changed(drop("spec", "note")))

    assert [item.fingerprint for item in first] == [item.fingerprint for item in second]


def test_broken_baseline_is_refused() -> None:
    with pytest.raises(ConfigError):
        read_baseline("[]")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("instar.toml", '[review]\nfail-on = "none"\n'),
        ("pyproject.toml", '[tool.instar.review]\nfail-on = "none"\n'),
        (".instar.yaml", "review:\n  fail-on: none\n"),
    ],
)
def test_configuration_is_found_above_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")

    config = load_config(None)

    assert config.fail_on is None
    assert config.file == str(tmp_path / name)


def test_a_file_without_a_review_section_is_ignored() -> None:
    assert section("pyproject.toml", {"project": {}}) is None
