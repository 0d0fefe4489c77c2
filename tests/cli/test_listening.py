"""An address that cannot be listened on is told by its name."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_unknown_listen_host_is_named(workers: str) -> None:
    command = (sys.executable, "-m", "instar", "serve", "--storage", "memory:")
    wanted = ("--listen", "nowhere.invalid:1", "--workers", workers)
    ended = subprocess.run((*command, *wanted), capture_output=True, text=True, timeout=60)

    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith(
        "instar serve: cannot listen on nowhere.invalid:1: "
    )
