"""The Python of docs/how-to/pytest.md runs as written, in its own process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import DOCS, ROOT, script

TESTING = DOCS / "how-to" / "pytest.md"
CRDS = ROOT / "examples" / "testing" / "crds.yaml"
AROUND = """
import ast, asyncio, sys

async def run():
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(sys.stdin.read(), "README.md", "exec", flags=flags)
    waiting = eval(code, {"use": lambda path: print(path.read_text())})
    if waiting is not None:
        await waiting

asyncio.run(run())
"""


def _run(*words: str, folder: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", ["block", "async"])
def test_a_server_without_pytest_runs_as_written(tmp_path: Path, name: str) -> None:
    shutil.copy(CRDS, tmp_path)
    done = _run("-W", "error", "-c", AROUND, folder=tmp_path, given=script(TESTING, name, "python"))

    assert done.returncode == 0, done.stderr
    assert '"server": "https://127.0.0.1:' in done.stdout


def test_the_suite_of_the_docs_runs_as_written(tmp_path: Path) -> None:
    shutil.copy(CRDS, tmp_path)
    (tmp_path / "test_docs.py").write_text(script(TESTING, "suite", "python"))
    done = _run("-m", "pytest", "-p", "no:cacheprovider", folder=tmp_path)

    assert done.returncode == 0, done.stdout
