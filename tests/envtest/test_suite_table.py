"""``scripts/suites``: reports of Go suites, what they have in common, and what a run takes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.process_tree import run_watched
from bench.suite_results import Run, Spec, Usage, differences, ginkgo_specs, go_tests, table
from bench.suites import main

USAGE = Usage(2.0, 1.0, 80.0)


def run(**states: str) -> Run:
    specs = [Spec(name.replace("_", " "), state) for name, state in states.items()]
    return Run(specs, USAGE, 0)


def _report(*specs: tuple[str, str, str]) -> str:
    reports: list[dict[str, Any]] = [
        {
            "ContainerHierarchyTexts": ["client"],
            "LeafNodeText": text,
            "LeafNodeType": kind,
            "State": state,
            **({"Failure": {"Message": "it broke"}} if state == "failed" else {}),
        }
        for kind, text, state in specs
    ]
    return json.dumps([{"SpecReports": reports}])


def test_specs_are_read_and_of_set_up_only_failures() -> None:
    report = _report(
        ("It", "gets", "passed"),
        ("It", "lists", "failed"),
        ("BeforeSuite", "", "passed"),
        ("AfterSuite", "", "failed"),
    )

    assert ginkgo_specs(report) == [
        Spec("client gets", "passed", ""),
        Spec("client lists", "failed", "it broke"),
        Spec("client [AfterSuite]", "failed", "it broke"),
    ]


def test_go_tests_are_read_without_the_one_that_runs_the_specs() -> None:
    output = """
=== RUN   TestSource
Running Suite: Source - /somewhere
--- PASS: TestSource (4.06s)
=== RUN   TestScope
=== RUN   TestScope/empty
--- FAIL: TestScope (0.10s)
    --- SKIP: TestScope/empty (0.00s)
"""

    assert go_tests(output) == [
        Spec("TestScope", "failed"),
        Spec("TestScope/empty", "skipped"),
    ]


def test_a_spec_that_ends_otherwise_or_is_missing_is_reported() -> None:
    first = run(creates="passed", lists="passed", watches="skipped")
    second = run(creates="passed", lists="failed")

    assert differences(first, second) == ["lists: passed / failed", "watches: skipped / absent"]


def test_specs_of_one_name_are_counted_each() -> None:
    first = Run([Spec("same", "passed"), Spec("same", "passed")], USAGE, 0)
    second = Run([Spec("same", "passed"), Spec("same", "failed", "no\n  luck")], USAGE, 1)

    assert differences(first, second) == ["same: passed / failed: no luck"]
    assert differences(first, first) == []


def test_the_table_has_a_row_for_each_suite_and_their_sum() -> None:
    runs = {"real": run(a="passed", b="failed", c="pending"), "instar": run(a="passed", b="passed")}

    lines = table({"one": runs, "two": runs}, ["real", "instar"]).splitlines()

    assert lines[2] == "| one | 2 | 1 | 2 | 2.0 / 2.0 | 1.0 / 1.0 | 80 / 80 |"
    assert lines[4] == "| all | 4 | 2 | 4 | 4.0 / 4.0 | 2.0 / 2.0 | 80 / 80 |"


_WORKS = """
import subprocess, sys
child = "x = bytearray(50 << 20)\\nfor _ in range(3000000): pass\\ninput()"
server = subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE)
import time
time.sleep(1)
server.communicate(b"\\n")
sys.exit(3)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_processor_time_of_a_suites_processes_is_counted(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        found = run_watched([sys.executable, "-c", _WORKS], tmp_path, dict(os.environ), log)

    assert found.exit_code == 3
    assert found.peak_mb > 50
    assert found.cpu > 0


_SUITE = """#!{python}
import json, os, sys
if "-h" in sys.argv:
    sys.exit("  -ginkgo.json-report string")
report = next(word for word in sys.argv if word.startswith("-ginkgo.json-report="))
state = "passed" if os.environ["KUBEBUILDER_ASSETS"].endswith("good") else "failed"
spec = {{"LeafNodeType": "It", "LeafNodeText": "works", "State": state}}
with open(report.partition("=")[2], "w") as file:
    json.dump([{{"SpecReports": [spec]}}], file)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_each_suite_runs_on_each_folder_of_assets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    binary = tmp_path / "pkg" / "client.test"
    binary.parent.mkdir()
    binary.write_text(_SUITE.format(python=sys.executable))
    binary.chmod(0o755)
    assets = [f"--assets=real={tmp_path}/good", f"--assets=instar={tmp_path}/bad"]

    code = main([str(tmp_path), *assets, f"--output={tmp_path}/out"])

    printed = capsys.readouterr().out.splitlines()
    assert code == 1
    assert printed[2].startswith("| client | 1 | 1 | 0 |")
    assert printed[-1] == "client, real / instar: works: passed / failed"


def test_no_suite_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "no *.test in" in capsys.readouterr().err
