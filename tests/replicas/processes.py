"""``instar serve`` as real processes in front of real etcd members: killed, stopped, restarted."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from instar.server.files.certificates import ensure_certificates, write_private
from tests.storage.etcd_server import EtcdCluster, free_ports
from tests.support.server import Answer

TOKEN = "replicas"


class Replica:
    """One server process. Its port, token and CA stay the same when it is started again."""

    def __init__(
        self,
        folder: Path,
        name: str,
        storage: str,
        extra: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.port = free_ports(1)[0]
        self.url = f"https://127.0.0.1:{self.port}"
        self.kubeconfig = folder / f"{name}.kubeconfig"
        self.log = folder / f"{name}.log"
        self.context = ssl.create_default_context(cafile=str(folder / "pki" / "ca.crt"))
        self._arguments = [
            *("--listen", f"127.0.0.1:{self.port}", "--storage", storage),
            *("--cert-dir", str(folder / "pki"), "--kubeconfig", str(self.kubeconfig)),
            *extra,
        ]
        self._environment = {**os.environ, **(environment or {})}
        self.process: subprocess.Popen[bytes] | None = None
        self._kept: http.client.HTTPSConnection | None = None

    def start(self) -> None:
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "instar", "serve", *self._arguments],
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """As the kernel would: no goodbye to anybody."""
        self._hang_up()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> int:
        assert self.process is not None
        self._hang_up()
        self.process.terminate()
        code = self.process.wait(20)
        self.process = None
        return code

    def connection(self, timeout: float = 30.0) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=self.context, timeout=timeout
        )

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Answer:
        """Over one connection, kept: a new one would give replicas time to catch up. The server
        closes a connection that no test used for a minute."""
        if self._kept and self._kept.sock and select.select([self._kept.sock], [], [], 0)[0]:
            self._hang_up()
        if self._kept is None:
            self._kept = self.connection()
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type}
        try:
            data = None if body is None else json.dumps(body)
            self._kept.request(method, path, body=data, headers=headers)
            answer = self._kept.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
        except (OSError, http.client.HTTPException):
            self._hang_up()
            raise

    def _hang_up(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def until_ready(self, within: float = 30.0) -> None:
        """Answers what needs the storage; the kubeconfig is written last."""
        self.until(lambda: self.request("GET", "/api/v1/namespaces").status == 200, within)
        self.until(self.kubeconfig.exists, within)

    def until(self, condition: Callable[[], bool], within: float = 30.0) -> None:
        """A process sends no events to wait for."""
        deadline = time.monotonic() + within
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if condition():
                    return
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            assert time.monotonic() < deadline, self.log.read_text()[-2000:]
            time.sleep(0.05)


@dataclass
class Deployment:
    """An etcd cluster and replicas in front of it."""

    cluster: EtcdCluster
    replicas: list[Replica]
    storage: str


@contextlib.contextmanager
def deployed(
    folder: Path,
    *,
    members: int,
    replicas: int,
    etcd: tuple[str, ...] = (),
    serve: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
    cluster: EtcdCluster | None = None,
) -> Iterator[Deployment]:
    """All up and ready; all gone at the end."""
    prepare_pki(folder)
    made = EtcdCluster(folder, members, etcd) if cluster is None else cluster
    with made as cluster:
        storage = "etcd://" + ",".join(cluster.addresses)
        started = [Replica(folder, f"r{n}", storage, serve, environment) for n in range(replicas)]
        try:
            for replica in started:
                replica.start()
            for replica in started:
                replica.until_ready()
            yield Deployment(cluster, started, storage)
        finally:
            for replica in started:
                replica.kill()


def prepare_pki(folder: Path) -> None:
    """One CA and token for all, as an operator would hand them out."""
    (folder / "pki").mkdir(exist_ok=True)
    names = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc"]
    ensure_certificates(folder / "pki", names)
    write_private(folder / "pki" / "admin.token", TOKEN.encode() + b"\n")


def etcdctl(address: str, *arguments: str, data: bytes | None = None) -> bytes:
    environment = {**os.environ, "ETCDCTL_API": "3"}
    return subprocess.run(
        ["etcdctl", "--endpoints", address, *arguments],
        input=data,
        env=environment,
        check=True,
        capture_output=True,
        timeout=20,
    ).stdout
