"""The guide is true: its files are written, its commands run, its output compared, in order."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.storage.etcd_server import free_ports

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "version-lifecycle.md"
_BLOCK = re.compile(r"^```(console|yaml title=(\S+))\n(.*?)^```$", re.M | re.S)
_END = "--- the command has ended: "


class Step(NamedTuple):
    """A file to write, or a command with the output it should have."""

    file: str
    text: str
    expected: str = ""

    @property
    def refused(self) -> bool:
        return self.text.endswith("# refused")


def _steps(guide: str) -> Iterator[Step]:
    for kind, file, body in _BLOCK.findall(guide):
        if kind != "console":
            yield Step(file, body)
            continue
        command = ""
        expected: list[str] = []
        for line in [*body.splitlines(), "$ "]:
            if line.startswith("$ "):
                if command:
                    yield Step("", command, "\n".join(expected))
                command, expected = line[2:], []
            else:
                expected.append(line)


class Shell:
    """One bash from the first command to the last, as a reader would have it."""

    def __init__(self, folder: Path) -> None:
        home = str(folder / "home")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._process = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env={**os.environ, "PATH": path, "HOME": home, "XDG_STATE_HOME": home},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\necho '{_END}'$?\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line.startswith(_END):
                return int(line.removeprefix(_END)), "".join(lines)
            lines.append(line)
        raise AssertionError(f"the shell has ended: {''.join(lines)}")

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    running = Shell(tmp_path)
    yield running
    running.close()


def _pattern(expected: str) -> re.Pattern[str]:
    """Runs of blanks may be longer, ``…`` is anything, whole lines of it too."""
    parts = (re.escape(part).replace(r"\ ", " ") for part in expected.split("…"))
    return re.compile(".*?".join(re.sub(" +", r"\\s+", part) for part in parts), re.S)


def test_every_command_of_the_guide_works_as_it_says(shell: Shell, tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("NOT TESTED: the guide needs kubectl, and there is none on this machine")
    ports = dict(zip(("6443", "9443"), map(str, free_ports(2)), strict=True))
    steps = list(_steps(GUIDE.read_text()))
    assert len(steps) > 50

    for step in steps:
        if step.file:
            (tmp_path / step.file).write_text(step.text)
            continue
        command = re.sub("6443|9443", lambda found: ports[found[0]], step.text)
        code, output = shell.run(command)
        assert (code != 0) == step.refused, f"$ {step.text}\n{output}\n{_logs(tmp_path)}"
        found = _pattern(step.expected).match(output.strip())
        assert found, f"$ {step.text}\n{output}\nexpected:\n{step.expected}\n{_logs(tmp_path)}"


def _logs(folder: Path) -> str:
    return "".join(f"== {log.name}\n{log.read_text()}" for log in sorted(folder.glob("*.log")))
