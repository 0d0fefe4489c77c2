"""What people expect of any command: completion, help, colours, logs, the same flags everywhere."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from instar.cli.commands.completion import completions
from instar.cli.main import kubectl_completion, main
from instar.cli.serving.log_format import JsonLines, TextLines
from instar.cli.serving.webhook_reload import changed_files, snapshot
from tests.e2e.make import widget_crd
from tests.support.server import LiveServer


def test_commands_flags_and_choices_are_completed() -> None:
    assert completions(["rev"]) == ["review"]
    assert "--fail-on" in completions(["review", "--fa"])
    assert completions(["review", "--fail-on", ""]) == ["error", "none", "warning"]
    assert "deprecate" in completions(["versions", "widgets.example.com", "dep"])
    assert completions(["nonsense", ""]) == []


def test_names_of_crds_are_completed_from_the_cluster(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.create_crd(widget_crd("completion.example.com"))
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))

    assert "widgets.completion.example.com" in completions(["versions", "widgets.comp"])
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    assert completions(["versions", "widgets.comp"]) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_its_shell_takes(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"NO {shell} on this machine: its completion was not read")

    assert subprocess.run([found, "-n", script], check=False).returncode == 0


def test_bash_completes_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", "bash"])
    program = tmp_path / "instar"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m instar "$@"\n')
    program.chmod(0o755)
    lines = [
        capsys.readouterr().out,
        "COMP_WORDS=(instar mig)",
        "COMP_CWORD=1",
        "_instar",
        'echo "${COMPREPLY[@]}"',
    ]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stdout.strip() == "migrate"


def test_kubectl_completion_gets_candidates_and_a_directive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-instar", "mig"])

    assert kubectl_completion() == 0

    assert capsys.readouterr().out == "migrate\n:0\n"


def test_an_overview_of_every_crd(server: LiveServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.create_crd(widget_crd("overview.example.com"))

    assert main(["versions", "--kubeconfig", str(server.kubeconfig)]) == 0

    [line] = [each for each in capsys.readouterr().out.splitlines() if "overview" in each]
    assert line.split()[:2] == ["widgets.overview.example.com", "[v1]"]


def test_log_lines_carry_their_zone_and_their_fields() -> None:
    record = logging.LogRecord("instar.access", logging.INFO, "f", 1, "GET %s", ("/api",), None)
    record.fields = {"user": "jane", "milliseconds": 1.5, "bytes": 7}

    line = json.loads(JsonLines().format(record))

    assert line["ts"].endswith("+00:00")
    assert (line["user"], line["bytes"], line["msg"]) == ("jane", 7, "GET /api")
    assert TextLines().format(record).split()[1][-6] in "+-"


def test_the_difference_of_two_snapshots_lists_changed_files(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    for name in ("a.py", "b.txt", ".venv/c.py"):
        (tmp_path / name).write_text("1")
    before = snapshot(tmp_path)
    os.utime(tmp_path / "a.py", ns=(1, 1))
    os.utime(tmp_path / ".venv/c.py", ns=(1, 1))

    assert changed_files(before, snapshot(tmp_path)) == [tmp_path / "a.py"]


def test_a_webhook_starts_anew_when_its_rules_change(tmp_path: Path) -> None:
    rules = Path(__file__).resolve().parents[2] / "examples" / "hostport" / "conversion.yaml"
    shutil.copy(rules, tmp_path)
    words = ["webhook", "conversion.yaml", "--insecure-http", "--listen", "127.0.0.1:0", "--reload"]
    with subprocess.Popen(
        [sys.executable, "-m", "instar", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        told = iter(process.stderr.readline, "")
        try:
            assert next(line for line in told if "listening" in line)
            os.utime(tmp_path / "conversion.yaml", ns=(1, 1))
            assert next(line for line in told if "conversion.yaml changed" in line)
            assert next(line for line in told if "listening" in line)
        finally:
            process.terminate()
            process.wait(20)


def test_every_interface_is_meant_without_a_host(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--listen", "nonsense"]) == 2

    assert "expected [HOST]:PORT" in capsys.readouterr().err
