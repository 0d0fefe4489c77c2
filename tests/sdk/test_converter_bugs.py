"""``instar check`` finds every planted bug at its default options."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from instar.cli.commands import check
from instar.cli.shared.failure import CliFailure
from instar.testing import check_converter
from tests.sdk import bug_kit
from tests.sdk import converter_bugs as converter_bugs
from tests.sdk import fresh_bugs as fresh_bugs
from tests.sdk.bug_kit import BUGS


@pytest.mark.parametrize("name", BUGS)
def test_the_bug_is_found_at_default_options(name: str) -> None:
    crd, converter = BUGS[name]

    report = check_converter(crd, converter, seed=None)

    assert report.broken, name


@pytest.mark.parametrize("name", ["IntegerThroughFloat", "DigitsBecomeNumber", "PairsAsMap"])
def test_a_right_converter_is_not_blamed(name: str) -> None:
    crd = BUGS[name][0]
    versions = crd["spec"]["versions"]
    versions = [{**each, "schema": versions[0]["schema"]} for each in versions]
    alike = {**crd, "spec": {**crd["spec"], "versions": versions}}

    report = check_converter(alike, bug_kit.same, seed=None)

    assert report.exit_code == 0


def _checked(folder: Path, *words: str) -> int:
    crd, _ = BUGS["SpecialNumberMeansNone"]
    (folder / "crd.json").write_text(json.dumps(crd))
    parser = argparse.ArgumentParser()
    check.add_arguments(parser)
    named = ["--crd", str(folder / "crd.json"), "--converter", f"{__name__}:forgets_a_limit"]
    return check.run(parser.parse_args([*named, *words, "--seed", "1", "--examples", "20"]))


def _forget(obj: dict[str, Any]) -> None:
    spec = obj.get("spec") or {}
    if str(spec.get("limit", "")).startswith("7351"):
        del spec["limit"]


forgets_a_limit = bug_kit.converter(_forget, bug_kit.nothing)


def test_real_objects_are_tried_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    real = {"apiVersion": "example.com/v1", "kind": "Job", "spec": {"limit": 735199}}
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "a.json").write_text(json.dumps(real))

    without = _checked(tmp_path)
    given = _checked(tmp_path, "--objects", str(tmp_path / "objects"))

    assert (without, given) == (0, 1)
    assert "lost     spec.limit" in capsys.readouterr().out


def test_files_without_objects_are_reported(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("kind: ConfigMap\n")

    with pytest.raises(CliFailure, match="hold no Job of example"):
        _checked(tmp_path, "--objects", str(tmp_path / "empty.yaml"))
