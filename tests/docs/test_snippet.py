"""The README's Python runs as written, in a process that knows nothing else of instar."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
AROUND = """
import ast, asyncio, sys

async def run():
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(sys.stdin.read(), "README.md", "exec", flags=flags)
    await eval(code, {"use": lambda path: print(path.read_text())})

asyncio.run(run())
"""


def test_the_readmes_python_runs_as_written() -> None:
    match = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert match is not None

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", AROUND],
        input=match.group(1),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert '"server": "https://127.0.0.1:' in done.stdout
