"""Suites are tests of pytest, too, wherever instar is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.suites.test_suites import CRD, case, widget


def test_a_case_is_a_test_with_its_place_and_its_failure(tmp_path: Path) -> None:
    (tmp_path / "crd.yaml").write_text(CRD)
    (tmp_path / "widget.suite.yaml").write_text(
        "crdName: widgets.example.com\ntests:\n  onCreate:\n"
        + case(name="good", initial=widget())
        + case(name="bad", initial=widget("spec: {size: 1}"))
    )

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert "widget.suite.yaml::onCreate: good PASSED" in done.stdout
    assert "widget.suite.yaml:9: onCreate: bad" in done.stdout
    assert "should be greater than or equal to 5" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
