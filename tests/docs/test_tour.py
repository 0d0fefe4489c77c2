"""The README's tour runs as written, with a real kubectl."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.server import LiveServer

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_readmes_tour_runs_as_written(fresh_server: LiveServer, tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("NO KUBECTL on this machine: the README's tour was not run")
    help_text = subprocess.run([kubectl, "patch", "--help"], capture_output=True, text=True)
    if "--subresource" not in help_text.stdout:
        pytest.skip("this kubectl is too old for --subresource: the README's tour was not run")
    match = re.search(r"<!-- tour -->\n```sh\n(.*?)```", README.read_text(), re.DOTALL)
    assert match is not None
    (tmp_path / "data").mkdir()
    shutil.copy(fresh_server.kubeconfig, tmp_path / "data" / "kubeconfig")

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", match.group(1)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "tour.example.com/v1\n" in done.stdout
    assert '["v1beta1","v1"]' in done.stdout
    assert "is deprecated; use tour.example.com/v1 CronTab" in done.stderr
