"""A real control plane for tests: etcd, kube-apiserver with an aggregation layer, and
kube-controller-manager, as processes on loopback ports.

``$INSTAR_KUBE_BIN`` names a folder with the binaries; otherwise they are looked for in the PATH.
Where they are missing the test is skipped, and says so.
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from instar.base.certificates import Authority
from tests.storage.etcd_server import EtcdCluster, free_ports
from tests.support.waiting import eventually

TOKEN = "admin-token"
_DAY = timedelta(days=1)
_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{url}", insecure-skip-tls-verify: true}}}}]
users: [{{name: u, user: {{token: {token}}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
current-context: c
"""
_START_SECONDS = 120.0


class RealAnswer(NamedTuple):
    """Status and body of a response."""

    status: int
    json: Any


class RealCluster(NamedTuple):
    """A running control plane."""

    url: str
    kubeconfig: Path
    folder: Path
    etcd: str
    """Address of its etcd."""

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> RealAnswer:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else orjson.dumps(body),
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type},
        )
        try:
            with urllib.request.urlopen(request, context=_trusting(), timeout=60) as answer:
                return RealAnswer(answer.status, orjson.loads(answer.read()))
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
            try:
                return RealAnswer(error.code, orjson.loads(text))
            except orjson.JSONDecodeError:
                return RealAnswer(error.code, text.decode())

    def made(self, path: str, body: Any) -> Any:
        """Create an object, and return it."""
        answer = self.request("POST", path, body)
        assert answer.status == 201, answer.json
        return answer.json

    def is_gone(self, path: str) -> bool:
        return self.request("GET", path).status == 404


def binary(name: str) -> str:
    """Return the path of a Kubernetes binary; skip the test loudly where there is none."""
    found = shutil.which(name, path=os.environ.get("INSTAR_KUBE_BIN")) or shutil.which(name)
    if found is None:
        pytest.skip(f"NO {name} (INSTAR_KUBE_BIN): nothing was proved with a real control plane")
    return found


@contextmanager
def real_cluster(
    folder: Path, *, controllers: Sequence[str] = (), users: Sequence[str] = ()
) -> Iterator[RealCluster]:
    """kube-apiserver on an etcd of its own, and kube-controller-manager with ``controllers``;
    ``users`` are lines of the token file (token,name,uid)."""
    server = binary("kube-apiserver")
    manager = binary("kube-controller-manager") if controllers else ""
    (port, unused) = free_ports(2)
    with ExitStack() as stack:
        etcd = stack.enter_context(EtcdCluster(_made(folder / "etcd"), members=1))
        flags = [*_server_flags(folder, port, users), f"--etcd-servers=http://{etcd.addresses[0]}"]
        log = folder / "kube-apiserver.log"
        process = stack.enter_context(_process([server, *flags], log))
        url = f"https://127.0.0.1:{port}"
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(_KUBECONFIG.format(url=url, token=TOKEN))
        cluster = RealCluster(url, kubeconfig, folder, etcd.addresses[0])
        eventually(lambda: process.poll() is not None or _is_ready(cluster), _START_SECONDS)
        assert process.poll() is None, log.read_text()[-2000:]
        if manager:
            flags = [f"--kubeconfig={kubeconfig}", f"--controllers={','.join(controllers)}"]
            flags += ["--leader-elect=false", f"--secure-port={unused}", "--bind-address=127.0.0.1"]
            log = folder / "kube-controller-manager.log"
            stack.enter_context(_process([manager, *flags], log))
        yield cluster


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _server_flags(folder: Path, port: int, users: Sequence[str]) -> list[str]:
    proxies = Authority.make("front-proxy-ca", _DAY)
    client = proxies.client("aggregator", (), _DAY)
    for name, data in (
        ("proxies.crt", proxies.pem.cert),
        ("proxy.crt", client.cert),
        ("proxy.key", client.key),
        ("accounts.key", _signing_key()),
        ("tokens.csv", "\n".join([f"{TOKEN},admin,admin-uid,system:masters", *users, ""]).encode()),
    ):
        (folder / name).write_bytes(data)
    return [
        *(f"--secure-port={port}", "--bind-address=127.0.0.1", f"--cert-dir={folder}/certs"),
        *(f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC"),
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder}/accounts.key",
        f"--service-account-signing-key-file={folder}/accounts.key",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--requestheader-client-ca-file={folder}/proxies.crt",
        "--requestheader-allowed-names=aggregator",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={folder}/proxy.crt",
        f"--proxy-client-key-file={folder}/proxy.key",
    ]


def _signing_key() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


@contextmanager
def _process(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield process
        finally:
            process.kill()


def _is_ready(cluster: RealCluster) -> bool:
    try:
        return cluster.request("GET", "/api/v1/namespaces/default").status == 200
    except OSError:
        return False


def _trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
