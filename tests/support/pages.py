"""Pages for people, run as they are written.

Two forms. A *script* is a fence behind a comment that names it (``<!-- tour -->``), run as a whole.
A *walk* is a page: fences with a title are files to write, ``console`` fences are commands with the
output they have, in one shell from the first to the last.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.storage.etcd_server import free_ports
from tests.support.server import LiveServer

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PATIENCE = 600
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"\w+ title=(\S+)")
_EXITS = re.compile(r"# exits with (\d+)$")
_END = "--- the command has ended: "


def script(page: Path, name: str, language: str = "sh") -> str:
    """The fence behind ``<!-- name -->``."""
    found = re.search(rf"<!-- {name} -->\n```{language}\n(.*?)```", page.read_text(), re.DOTALL)
    assert found is not None, f"{page.name} has no {language} of the name {name}"
    return found[1]


def run_script(
    text: str,
    folder: Path,
    tried: str,
    server: LiveServer | None = None,
    around: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """With a server, in a folder where ``scripts/serve`` has put its kubeconfig. Skips, and says
    what was not tried, on a machine without kubectl."""
    need_kubectl(tried)
    if server is not None:
        (folder / "data").mkdir()
        shutil.copy(server.kubeconfig, folder / "data" / "kubeconfig")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", _expecting(text)],
        cwd=folder,
        env=around or environment(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def _expecting(text: str) -> str:
    """Let bash go on after the failures that a script announces, and after no others."""
    checked = r"code=0; \1 || code=$?; test $code = \2"
    return re.sub(r"^(\S.*?) +#.*\bexits with (\d+)$", checked, text, flags=re.MULTILINE)


def need_kubectl(tried: str) -> str:
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip(f"NO KUBECTL on this machine: {tried} was not run")
    return found


def environment(folder: Path) -> dict[str, str]:
    """With our own ``instar`` first, and a home that nobody else uses."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    home = str(folder / "home")
    own = {"PATH": path, "HOME": home, "XDG_STATE_HOME": home}
    git = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "me", "GIT_COMMITTER_NAME": "me"}
    mail = {"GIT_AUTHOR_EMAIL": "me@example.com", "GIT_COMMITTER_EMAIL": "me@example.com"}
    return {**os.environ, **own, **git, **mail}


def empty_environment(folder: Path, dist: Path) -> dict[str, str]:
    """A machine without instar: the system's Python, and pip that finds our wheel in ``dist``."""
    own = str(Path(sys.executable).parent)
    path = [each for each in os.environ["PATH"].split(os.pathsep) if each != own]
    base = str(Path(sys.base_prefix) / "bin")
    kept = {name: value for name, value in environment(folder).items() if name != "VIRTUAL_ENV"}
    pip = {
        "PIP_FIND_LINKS": str(dist),
        "PIP_CACHE_DIR": str(Path(os.environ.get("HOME", "/tmp")) / ".cache" / "pip"),
        "PIP_NO_COMPILE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }
    return {**kept, **pip, "PATH": os.pathsep.join([base, *path])}


class Step(NamedTuple):
    """A file to write, or a command with the output it should have."""

    file: str
    text: str
    expected: str = ""
    elsewhere: bool = False
    """Whether this is what the same command says on a kube-apiserver."""

    @property
    def code(self) -> int:
        """The exit code that the page announces: ``# exits with 1``."""
        announced = _EXITS.search(self.text)
        return int(announced[1]) if announced else 0

    @property
    def only_on_instar(self) -> bool:
        """Whether the page says that no other server does this."""
        return self.text.endswith("# on instar")


def steps(text: str) -> Iterator[Step]:
    for language, body in FENCE.findall(text):
        title = _TITLE.fullmatch(language)
        if title is not None:
            yield Step(title[1], body)
        elif language == "console":
            yield from _commands(body)
        elif language == "console kube-apiserver":
            yield from (step._replace(elsewhere=True) for step in _commands(body))


def _commands(body: str) -> Iterator[Step]:
    command = ""
    expected: list[str] = []
    for line in [*body.splitlines(), "$ "]:
        if line.startswith("$ "):
            if command:
                yield Step("", command, "\n".join(expected))
            command, expected = line[2:], []
        elif command.endswith("\\"):
            command = f"{command}\n{line}"
        else:
            expected.append(line)


def walk(page: Path, folder: Path, around: dict[str, str] | None = None) -> int:
    """Run all steps of a page and return how many there were. Its port 9443 becomes a free one.
    ``around`` is the environment of the shell; by default one with this repository's instar."""
    need_kubectl(page.name)
    walked = list(walked_steps(page, folder, around=around))
    wrong = [told for told in walked if told]
    assert not wrong, wrong[0]
    return len(walked)


def walked_steps(
    page: Path,
    folder: Path,
    kubeconfig: Path | None = None,
    around: dict[str, str] | None = None,
) -> Iterator[str]:
    """Do each step, and yield what is wrong with it. With a kubeconfig of another cluster the
    steps that the page marks as instar's own are left out, and where the page shows what a
    kube-apiserver says, that counts."""
    written = list(steps(page.read_text()))
    replaced = _replaced(written)
    known = dict(zip(("6443", "9443"), map(str, free_ports(2)), strict=True))
    with _shell(folder, around or environment(folder)) as shell:
        if kubeconfig is not None:
            shell.run(f"export KUBECONFIG={kubeconfig.absolute()}")
        for number, step in enumerate(written):
            if step.file:
                file = folder / step.file
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(step.text)
                yield ""
                continue
            own = step.only_on_instar or number in replaced
            if step.elsewhere if kubeconfig is None else own:
                continue
            command = re.sub("6443|9443", lambda found: known[found[0]], step.text)
            code, output = shell.run(command)
            fits = code == step.code and _pattern(step.expected).fullmatch(output.strip())
            told = f"$ {step.text}\n{output}\nexpected:\n{step.expected}\n{_logs(folder)}"
            yield "" if fits else told


def _replaced(written: list[Step]) -> set[int]:
    """The steps whose output on a kube-apiserver the page shows further down."""
    found, latest = set(), dict[str, int]()
    for number, step in enumerate(written):
        if step.elsewhere:
            found.add(latest[step.text])
        elif not step.file:
            latest[step.text] = number
    return found


def _pattern(expected: str) -> re.Pattern[str]:
    """Runs of blanks may be longer, ``…`` is anything, whole lines of it too."""
    parts = (re.escape(part).replace(r"\ ", " ") for part in expected.split("…"))
    return re.compile(".*?".join(re.sub(" +", r"\\s+", part) for part in parts), re.DOTALL)


def _logs(folder: Path) -> str:
    return "".join(f"== {log.name}\n{log.read_text()}" for log in sorted(folder.glob("*.log")))


class _Shell:
    """One bash from the first command to the last, as a reader would have it."""

    def __init__(self, folder: Path, around: dict[str, str]) -> None:
        (folder / "home").mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env=around,
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
        patience = threading.Timer(PATIENCE, self._kill)
        patience.start()
        try:
            for line in self._process.stdout:
                if line.startswith(_END):
                    return int(line.removeprefix(_END)), "".join(lines)
                lines.append(line)
        finally:
            patience.cancel()
        raise AssertionError(f"the shell has ended, or {command} did not: {''.join(lines)}")

    def close(self) -> None:
        self._kill()
        self._process.communicate()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


@contextlib.contextmanager
def _shell(folder: Path, around: dict[str, str]) -> Iterator[_Shell]:
    running = _Shell(folder, around)
    try:
        yield running
    finally:
        running.close()
        for file in folder.rglob("instar.pid"):  # of a page that failed before its last step
            with contextlib.suppress(ProcessLookupError, ValueError):
                os.kill(int(file.read_text()), signal.SIGTERM)
