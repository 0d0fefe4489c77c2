"""A server's process ends when its store is closed, whatever its threads still do."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

_LEAVES = """
import atexit, threading
from instar.cli.serving.process_exit import leave

threading.Thread(target=threading.Event().wait).start()
atexit.register(print, "registered with atexit")
print("last words")
leave(3)
"""
_HANGS = """
import concurrent.futures, threading

_pool = concurrent.futures.ThreadPoolExecutor()
_pool.submit(threading.Event().wait)


def convert(objects, version):
    return objects
"""


def test_leaving_runs_atexit_and_joins_no_thread() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _LEAVES], capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 3
    assert ended.stdout.splitlines() == ["last words", "registered with atexit"]


def test_a_thread_that_never_ends_does_not_hold_the_server(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(_HANGS)
    with subprocess.Popen(
        [
            *(sys.executable, "-c", "import hanging, instar.cli.main as m; m.main()"),
            *("serve", "--listen=127.0.0.1:0", "--storage=memory:"),
            f"--kubeconfig={tmp_path}/kubeconfig",
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("instar is ready")
        server.send_signal(signal.SIGTERM)

        code = server.wait(60)

    assert code == 0
