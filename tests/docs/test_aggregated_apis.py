"""The script of docs/how-to/aggregated-apis.md runs as written."""

from __future__ import annotations

from pathlib import Path

from tests.support.pages import DOCS, run_script, script

PAGE = DOCS / "how-to" / "aggregated-apis.md"


def test_one_instar_behind_another_runs_as_written(tmp_path: Path) -> None:
    done = run_script(script(PAGE, "two servers"), tmp_path, "one instar behind another")

    assert "apiservice.apiregistration.k8s.io/v1.shop.example.com condition met\n" in done.stdout
    assert done.stdout.count("first") == 3, "created, and shown by both servers"
