"""A server in a process of its own that may be hurt, and a probe that sees whether it is."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.server import Answer

PATIENCE = 1.0
"""Seconds that /livez may take at most while something is done to the server."""


class Victim:
    def __init__(self, folder: Path, *arguments: str) -> None:
        kubeconfig, self.log = folder / "kubeconfig", folder / "log"
        command = [sys.executable, "-W", "always", "-m", "instar", "serve"]
        command += ["--listen", "127.0.0.1:0", "--kubeconfig", str(kubeconfig)]
        if "--storage" not in arguments:
            arguments += ("--storage", "memory:")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*command, *arguments], stdout=subprocess.PIPE, stderr=log
            )
        assert self.process.stdout is not None
        assert self.process.stdout.readline(), self.log.read_text()
        config = json.loads(kubeconfig.read_text())
        self.token: str = config["users"][0]["user"]["token"]
        cluster = config["clusters"][0]["cluster"]
        address = urlsplit(cluster["server"])
        assert address.hostname is not None
        assert address.port is not None
        self.address = (address.hostname, address.port)
        ca = b64decode(cluster["certificate-authority-data"]).decode()
        self.context = ssl.create_default_context(cadata=ca)

    def connection(self, timeout: float = 60.0) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(*self.address, context=self.context, timeout=timeout)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body)
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        connection = self.connection()
        try:
            connection.request(method, path, body=body, headers={**sent, **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    @contextlib.contextmanager
    def dial(self, timeout: float = 30.0) -> Iterator[ssl.SSLSocket]:
        plain = socket.create_connection(self.address, timeout=timeout)
        with self.context.wrap_socket(plain, server_hostname=self.address[0]) as tls:
            yield tls

    def head(self, line: str = "GET /api HTTP/1.1", *more: str) -> bytes:
        lines = [line, "Host: x", f"Authorization: Bearer {self.token}", *more]
        return "".join(f"{text}\r\n" for text in lines).encode()

    def exchange(self, data: bytes, timeout: float = 5.0) -> bytes:
        """What comes back until the server closes or is silent."""
        received = b""
        with self.dial(timeout) as tls, contextlib.suppress(OSError):
            tls.sendall(data)
            while piece := tls.recv(65536):
                received += piece
        return received

    @property
    def memory(self) -> int:
        """Resident bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) << 10

    @contextlib.contextmanager
    def watched(self, patience: float = PATIENCE) -> Iterator[Probe]:
        """Fails if /livez of others suffers meanwhile, the server dies, or its log complains."""
        before = self.log.stat().st_size
        probe = Probe(self)
        try:
            yield probe
        finally:
            probe.stop()
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        told = self.log.read_text()[before:]
        assert "Traceback" not in told, told[-3000:]
        assert "never awaited" not in told, told[-3000:]
        assert "the event loop was held" not in told, told[-3000:]
        assert probe.failure is None, probe.failure
        assert probe.slowest < patience * _crowd(), f"/livez took {probe.slowest:.2f} s"

    def stop(self) -> int:
        self.process.terminate()
        code = self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def _crowd() -> float:
    """How many want each processor: on a busy machine everybody waits for their turn. What the
    server itself holds up is processor time, and the watchdog tells of it however busy it is."""
    return max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0)


class Probe:
    """Asks for /livez all the time on a connection of its own."""

    def __init__(self, victim: Victim) -> None:
        self.slowest = 0.0
        self.failure: Exception | None = None
        self._victim = victim
        self._ended = threading.Event()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._begun.wait(30)

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(120)

    def _run(self) -> None:
        connection = self._victim.connection()
        try:
            while not self._ended.is_set():
                began = time.monotonic()
                connection.request("GET", "/livez")
                answer = connection.getresponse()
                assert (answer.status, answer.read()) == (200, b"ok")
                if self._begun.is_set():
                    self.slowest = max(self.slowest, time.monotonic() - began)
                self._begun.set()
                self._ended.wait(0.01)
        except Exception as error:
            self.failure = error
        finally:
            self._begun.set()
            connection.close()
