"""envtest's etcd: its flags as etcd reads them, TLS, and its end with the process that began it."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from datetime import timedelta
from pathlib import Path

import pytest

from instar.base.certificates import Authority
from instar.cli.main import main as instar
from instar.tools.envtest.etcd_stub import ANSWER, main
from instar.tools.envtest.flags import ETCD, parse_flags

_STARTER = """
import subprocess, sys, os, time, urllib.request
assets, etcd_port, api_port, folder = sys.argv[1:]
url = f"http://127.0.0.1:{etcd_port}"
etcd = subprocess.Popen([assets + "/etcd", "--listen-client-urls=" + url, "--data-dir=" + folder])
while True:
    try:
        urllib.request.urlopen(url + "/health").read()
        break
    except OSError:
        time.sleep(0.05)
server = subprocess.Popen([
    assets + "/kube-apiserver", "--etcd-servers=" + url, "--secure-port=" + api_port,
    "--bind-address=127.0.0.1", "--cert-dir=" + folder,
], stdout=subprocess.PIPE)
assert b"is ready" in server.stdout.readline()
print(etcd.pid, server.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_one_dash_is_as_good_as_two() -> None:
    found = parse_flags(["-data-dir", "d", "--pre-vote", "-name=n"], ETCD, shorthands=False)

    assert found == {"data-dir": ["d"], "pre-vote": ["true"], "name": ["n"]}


def test_an_unknown_flag_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--no-such-flag=1"]) == 2
    assert "flag provided but not defined" in capsys.readouterr().err


def test_flags_that_change_nothing_here_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        flags = ["--quota-backend-bytes=5", "--auto-compaction-mode=periodic", "--data-dir=d"]
        code = main([*flags, f"--listen-client-urls=http://127.0.0.1:{port}"])

    told = capsys.readouterr().err.splitlines()
    assert code == 1
    assert told[0] == (
        "instar: accepted without effect: --auto-compaction-mode --quota-backend-bytes"
    )


def test_https_is_served_with_the_given_certificate(tmp_path: Path) -> None:
    week = timedelta(days=7)
    authority = Authority.make("etcd", week)
    pair = authority.server("localhost", ["127.0.0.1"], week)
    cert, key = tmp_path / "cert", tmp_path / "key"
    cert.write_bytes(pair.cert)
    key.write_bytes(pair.key)
    url = f"https://127.0.0.1:{_free_port()}"
    words = [f"--listen-client-urls={url}", f"--cert-file={cert}", f"--key-file={key}"]
    etcd = subprocess.Popen([sys.executable, "-m", "instar.tools.envtest.etcd_stub", *words])
    try:
        trusting = ssl.create_default_context(cadata=authority.pem.cert.decode())
        answer = _asked(f"{url}/health", trusting)
    finally:
        etcd.terminate()
        etcd.wait(20)

    assert answer == ANSWER


def _asked(url: str, context: ssl.SSLContext) -> bytes:
    while True:  # a process that is not up yet refuses the connection
        try:
            with urllib.request.urlopen(url, timeout=20, context=context) as answer:
                found: bytes = answer.read()
                return found
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise


def test_no_server_is_left_when_a_suite_is_killed(tmp_path: Path) -> None:
    """The servers hold the other end of the pipe: reading it to its end waits for theirs."""
    assets = tmp_path / "assets"
    instar(["envtest", str(assets), "--print=path"])
    words = [str(assets), str(_free_port()), str(_free_port()), str(tmp_path)]
    suite = subprocess.Popen(
        [sys.executable, "-c", _STARTER, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        printed, told = suite.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(suite.pid, signal.SIGKILL)
        raise

    assert suite.returncode == -9, told.decode()
    assert len(printed.split()) == 2


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
