"""docs/how-to/history.md: its tour runs as written, with a real kubectl."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server import live_server

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "history.md"


def test_the_tour_through_the_past_runs_as_written(tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("NO KUBECTL on this machine: the tour of docs/how-to/history.md was not run")
    match = re.search(r"<!-- tour -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert match is not None
    with live_server(bootstrap_objects=True) as server:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", match.group(1)],
            cwd=tmp_path,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "KUBECONFIG": str(server.kubeconfig),
                "HOME": str(tmp_path),
            },
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    assert done.returncode == 0, done.stderr
    assert "    -  watts: 40\n    +  watts: 60\n" in done.stdout
    assert "1 object restored\n" in done.stdout
    assert done.stdout.endswith("60")
