"""The servers of the random histories: an etcd whose bytes can be read and written, an API server
process that can be killed, a proxy that knows the moment, and a webhook.

The API server is ours behind a stand-in for kube-apiserver. With ``INSTAR_LOSS_CLUSTER=FILE`` it is
a real one: FILE has the lines ``SERVER=``, ``TOKEN=``, ``ETCD=`` and, for kills, ``PID=``; the
process is started again with its own command line.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from instar.wire.storage.open import StorageOptions, open_store
from instar.wire.storage.store import Write
from tests.migrator.upstream import Upstream, upstream
from tests.replicas.processes import TOKEN, Replica, prepare_pki
from tests.storage.etcd_server import EtcdCluster
from tests.support.server import LiveServer
from tests.support.webhook import Webhook

FOREIGN = os.environ.get("INSTAR_LOSS_CLUSTER", "")
_PATIENCE = 60.0


class OwnServer:
    """``instar serve`` as a process."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        etcd = stack.enter_context(EtcdCluster(folder, members=1))
        self.storage = f"etcd://{etcd.members[0].address}/losses"
        prepare_pki(folder)
        quiet = ("--bootstrap-objects", "off", "--convert-ahead", "off", "--no-conversion-cache")
        self._process = Replica(folder, "server", self.storage, quiet)
        stack.callback(self._process.kill)
        self.start()

    def start(self) -> None:
        self._process.start()
        self._process.until_ready()

    def kill(self) -> None:
        self._process.kill()

    def as_live_server(self, folder: Path) -> LiveServer:
        process = self._process
        ca = (folder / "pki" / "ca.crt").read_bytes()
        known = SimpleNamespace(url=process.url, token=TOKEN, ca=ca, kubeconfig=process.kubeconfig)
        return LiveServer(cast(Any, known), asyncio.new_event_loop())


class ForeignServer:
    """A kube-apiserver that runs already."""

    def __init__(self, file: Path) -> None:
        lines = (line.partition("=") for line in file.read_text().split())
        self._facts = {name: value for name, _, value in lines}
        self.storage = f"etcd://{self._facts['ETCD'].removeprefix('http://')}/registry"
        self._command: list[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        if "PID" in self._facts:
            self._pid = int(self._facts["PID"])
            self._command = Path(f"/proc/{self._pid}/cmdline").read_text().split("\0")[:-1]
            self._folder = os.readlink(f"/proc/{self._pid}/cwd")
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE

    def start(self) -> None:
        if self._command is None:
            return
        self._process = subprocess.Popen(
            self._command,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._pid = self._process.pid
        until(self._is_ready)

    def kill(self) -> None:
        if self._command is None:
            return
        os.kill(self._pid, signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        until(self._is_closed)

    def close(self) -> None:
        """End the process that a test has started again; the first one is not the test's."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def as_live_server(self, folder: Path) -> LiveServer:
        kubeconfig = folder / "foreign.kubeconfig"
        kubeconfig.write_text(_kubeconfig(self._facts["SERVER"], self._facts["TOKEN"]))
        server, token = self._facts["SERVER"], self._facts["TOKEN"]
        known = SimpleNamespace(url=server, token=token, ca=b"", kubeconfig=kubeconfig)
        return LiveServer(cast(Any, known), asyncio.new_event_loop())

    def _is_closed(self) -> bool:
        """The kernel closes the sockets of a killed process a moment after the kill."""
        host, _, port = self._facts["SERVER"].rpartition("/")[2].partition(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) != 0

    def _is_ready(self) -> bool:
        request = urllib.request.Request(
            f"{self._facts['SERVER']}/readyz",
            headers={"Authorization": f"Bearer {self._facts['TOKEN']}"},
        )
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


class LossCluster:
    """One etcd, one server, one webhook, for all histories."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.server = ForeignServer(Path(FOREIGN)) if FOREIGN else OwnServer(folder, stack)
        if isinstance(self.server, ForeignServer):
            stack.callback(self.server.close)
        behind = self.server.as_live_server(folder)
        stack.callback(behind.loop.close)
        self.api: Upstream = stack.enter_context(upstream(behind, folder))
        self.api.is_real = bool(FOREIGN)
        self.hook = stack.enter_context(Webhook())
        self.folder = folder
        self.played = 0
        self.steps: Counter[str] = Counter()
        self._restart: threading.Thread | None = None

    def kill_server(self) -> None:
        """Kill the API server as the kernel would, and start it again meanwhile."""
        self.server.kill()
        self._restart = threading.Thread(target=self.server.start)
        self._restart.start()

    def wait_for_server(self) -> None:
        if self._restart is not None:
            self._restart.join(_PATIENCE)
            self._restart = None

    def stored(self, prefix: str) -> dict[str, bytes]:
        async def read() -> dict[str, bytes]:
            store = await open_store(self.server.storage, StorageOptions())
            try:
                page = await store.range(prefix)
                return {r.key.removeprefix(prefix): r.value for r in page.records}
            finally:
                await store.close()

        return asyncio.run(read())

    def store(self, key: str, value: bytes) -> None:
        async def write() -> None:
            store = await open_store(self.server.storage, StorageOptions())
            try:
                known = await store.get(key)
                await store.commit(Write(key, value, 0 if known is None else known.revision))
            finally:
                await store.close()

        asyncio.run(write())


class Strike:
    """Does something once, at the n-th write of objects that passes the proxy: before the server
    has it, or after the server has answered and before the tool knows."""

    def __init__(self, at: int, act: Callable[[str], None], *, late: bool) -> None:
        self._left = at
        self._act = act
        self._late = late
        self.struck = False

    def passing(self, path: str, *, answered: bool) -> bool:
        """Return whether this write is the one: then its answer is not passed on."""
        if answered is not self._late or self.struck:
            return False
        self._left -= 1
        if self._left > 0:
            return False
        self.struck = True
        self._act(path)
        return True


def until(condition: Callable[[], bool], within: float = _PATIENCE) -> None:
    """A process sends no events to wait for."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _kubeconfig(server: str, token: str) -> str:
    return f"""apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{server}", insecure-skip-tls-verify: true}}}}]
users: [{{name: u, user: {{token: {token}}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
current-context: c
"""
