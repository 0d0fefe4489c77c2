"""``instar serve --exit-with-parent``: no server is left when a test run is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from instar.base.parent_watch import wait_for_orphaning

_STARTER = """
import os, subprocess, sys
words = [sys.executable, "-m", "instar", "serve", "--exit-with-parent", "--listen=127.0.0.1:0"]
words += ["--storage=memory:", "--console=off", "--kubeconfig=" + sys.argv[1]]
server = subprocess.Popen(words, stdout=subprocess.PIPE)
assert b"is ready" in server.stdout.readline()
os.kill(os.getpid(), 9)
"""


def test_another_parent_ends_the_wait() -> None:
    parents = iter([7, 7, 1])

    asyncio.run(wait_for_orphaning(7, lambda: next(parents), every=0))

    assert list(parents) == []


def test_a_parent_that_is_gone_before_the_server_listens_ends_it_too() -> None:
    asyncio.run(wait_for_orphaning(7, lambda: 1))


def test_a_server_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """The server has the other end of the pipe: its end is the server's."""
    starter = subprocess.Popen(
        [sys.executable, "-c", _STARTER, str(tmp_path / "kubeconfig")], stderr=subprocess.PIPE
    )
    _, told = starter.communicate(timeout=60)

    assert starter.returncode == -9, told.decode()
    assert b"Traceback" not in told
