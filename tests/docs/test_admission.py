"""The tours of docs/admission.md run as written, with a real kubectl."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server import LiveServer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "admission.md"


def test_the_tour_of_policies_runs_as_written(fresh_server: LiveServer, tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("NO KUBECTL on this machine: the tour of policies was not run")
    match = re.search(r"<!-- policies -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
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
    assert "busybox\n" in done.stdout
    assert done.stderr.rstrip().endswith(
        "ValidatingAdmissionPolicy 'replicas.policies.example.com' with binding 'replicas' denied "
        "request: at most 5 replicas"
    )


def test_the_tour_of_webhooks_runs_as_written(fresh_server: LiveServer, tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("NO KUBECTL on this machine: the tour of webhooks was not run")
    match = re.search(r"<!-- webhooks -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert match is not None
    (tmp_path / "data").mkdir()
    shutil.copy(fresh_server.kubeconfig, tmp_path / "data" / "kubeconfig")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    here = Path(sys.executable).parent

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", match.group(1).replace("9443", str(port))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PATH": f"{here}:{os.environ['PATH']}"},
    )

    assert done.returncode == 0, done.stderr
    assert "\n3\n" in done.stdout
    assert "Warning: that is a large box" in done.stderr
    assert "size-is-sane.boxes.hooks.example.com" in done.stderr
    assert "denied the request: spec.size is at most 100" in done.stderr
