"""``instar serve --background`` returns when the server is ready; ``--stop`` when it has ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

SERVE = (sys.executable, "-m", "instar", "serve")
FREE = ("--listen", "127.0.0.1:0", "--storage", "memory:", "--console", "off")


BIN = str(Path(sys.executable).parent)
ELSEWHERE = os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if each != BIN)


def _run(folder: Path, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SERVE, *words],
        cwd=folder,
        env={**os.environ, "PATH": path or f"{BIN}{os.pathsep}{ELSEWHERE}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose server, if one was started, is stopped afterwards."""
    yield tmp_path
    if (tmp_path / "instar.pid").exists():
        _run(tmp_path, "--stop")


def _answers(kubeconfig: Path) -> bool:
    address = urlsplit(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
    with socket.socket() as client:
        return client.connect_ex((address.hostname, address.port)) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_server_is_ready_when_the_command_returns_and_gone_after_stop(
    folder: Path, workers: str
) -> None:
    words = ("--background", "--workers", workers, "--kubeconfig", "kubeconfig")
    started = _run(folder, *FREE, *words)
    answered = _answers(folder / "kubeconfig")

    stopped = _run(folder, "--stop")

    assert started.returncode == 0, started.stderr
    assert started.stdout.splitlines() == [
        "instar is ready: kubectl --kubeconfig kubeconfig get crds",
        "stop it with: instar serve --stop",
    ]
    assert answered
    assert stopped.returncode == 0, stopped.stderr
    assert not (folder / "instar.pid").exists()
    assert not _answers(folder / "kubeconfig")


def test_the_printed_stop_command_works_as_typed_without_instar_on_the_path(folder: Path) -> None:
    started = _run(folder, *FREE, "--background", "--pid-file", "my server.pid", path=ELSEWHERE)
    command = started.stdout.splitlines()[-1].removeprefix("stop it with: ")

    stopped = subprocess.run(
        ["bash", "-c", command], cwd=folder, env={**os.environ, "PATH": ELSEWHERE}, timeout=60
    )

    assert command == f"{BIN}/instar serve --stop --pid-file 'my server.pid'"
    assert stopped.returncode == 0
    assert not (folder / "my server.pid").exists()


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("--listen", "nowhere.invalid:1"), 1, "cannot listen on nowhere.invalid:1: "),
        (("--listen", "nothing"), 2, "--listen nothing: expected [HOST]:PORT"),
        (("--pid-file", "not/there.pid"), 2, "not/there.pid: No such file or directory"),
        (("--stop",), 2, "--background and --stop are mutually exclusive"),
        (("--exit-with-parent",), 2, "--background and --exit-with-parent are mutually exclusive"),
        (
            ("--storage", "etcd://127.0.0.1:1/x", "--wait", "0.5"),
            1,
            "the server was not ready after 0.5 s and was stopped",
        ),
    ],
)
def test_a_server_that_cannot_start_fails_with_its_reason_and_code(
    folder: Path, words: tuple[str, ...], code: int, reason: str
) -> None:
    ended = _run(folder, *FREE, "--background", *words)

    assert ended.returncode == code
    assert ended.stderr.splitlines()[-1].startswith(f"instar serve: {reason}")
    assert not (folder / "instar.pid").exists()


def test_a_second_server_is_not_started_and_the_first_one_keeps_its_log(folder: Path) -> None:
    assert _run(folder, *FREE, "--background").returncode == 0
    log = (folder / "instar.log").read_text()
    pid = (folder / "instar.pid").read_text()

    again = _run(folder, *FREE, "--background")

    assert again.returncode == 1
    assert "instar.pid: a server is running already (pid " in again.stderr
    assert (folder / "instar.log").read_text() == log
    assert (folder / "instar.pid").read_text() == pid


def test_the_pid_of_a_killed_server_is_not_signalled(folder: Path) -> None:
    """The pid file that a killed server left behind now names this test's process."""
    (folder / "instar.pid").write_text(f"{os.getpid()}\n")
    before = signal.getsignal(signal.SIGTERM)

    stopped = _run(folder, "--stop")
    nothing = _run(folder, "--stop")

    assert stopped.returncode == 1
    assert "its server has ended already" in stopped.stderr
    assert nothing.returncode == 1
    assert "no server to stop" in nothing.stderr
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_pid_file_is_written_in_the_foreground_too(tmp_path: Path) -> None:
    words = (*SERVE, *FREE, "--pid-file", "mine.pid")
    server = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert "is ready" in server.stdout.readline()
    pid = int((tmp_path / "mine.pid").read_text())

    stopped = _run(tmp_path, "--stop", "--pid-file", "mine.pid")
    server.communicate(timeout=60)

    assert pid == server.pid
    assert stopped.returncode == 0, stopped.stderr
    assert server.returncode == 0
