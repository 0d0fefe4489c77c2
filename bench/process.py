"""Starts the measured server or etcd in a separate process, and reads its memory and CPU time. Used
by all benchmarks over HTTP.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRUSTING = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
TRUSTING.check_hostname = False
TRUSTING.verify_mode = ssl.CERT_NONE


@dataclass
class Measured:
    """A running server under measurement."""

    pid: int
    url: str
    token: str
    started_in: float

    def call(self, method: str, path: str, body: Any = None) -> bytes:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, context=TRUSTING, timeout=120) as answer:
            data: bytes = answer.read()
        return data

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def resident_mb(self) -> float:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(
    storage: str, folder: Path, *flags: str, environment: Mapping[str, str] | None = None
) -> Iterator[Measured]:
    """Run ``instar serve`` with default settings: TLS, token, durable writes."""
    config = folder / "kubeconfig"
    began = time.perf_counter()
    process = subprocess.Popen(
        [
            *(
                sys.executable,
                "-m",
                "instar",
                "serve",
                "--storage",
                storage,
                "--listen",
                "127.0.0.1:0",
            ),
            *("--kubeconfig", str(config), *flags),
        ],
        stdout=subprocess.PIPE,
        cwd=folder,
        env=environment,
        start_new_session=True,  # as each PostgreSQL backend: Linux shares CPUs among sessions
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        started = time.perf_counter() - began
        document = json.loads(config.read_text())
        url = document["clusters"][0]["cluster"]["server"]
        token = document["users"][0]["user"]["token"]
        yield Measured(process.pid, url, token, started)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def etcd() -> Iterator[str]:
    """Run one member of Debian's etcd, with fsync; yield its address as ``--storage`` takes it."""
    with etcd_process() as (address, _):
        yield address


@contextmanager
def etcd_process() -> Iterator[tuple[str, int]]:
    """Run one etcd member like ``etcd``; yield its address and pid."""
    with scratch() as folder:
        client, peer = (f"http://127.0.0.1:{port}" for port in _free_ports(2))
        command = ["etcd", "--data-dir", str(folder / "data"), "--listen-client-urls", client]
        command += ["--advertise-client-urls", client, "--listen-peer-urls", peer]
        command += ["--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            yield client.replace("http://", "etcd://"), process.pid
        finally:
            process.terminate()
            process.wait()


def _free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in held]
    for each in held:
        each.close()
    return ports


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="instar-bench-") as folder:
        yield Path(folder)
