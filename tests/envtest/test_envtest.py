"""A suite of controller-runtime on instar: everything its envtest does, step by step, in Python.

Facts: access.md, section 8. Flags are sorted and joined with ``=``, as envtest gives them.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.base.certificates import Authority, KeyPair
from instar.cli.main import main
from instar.tools.testing.webhooks import webhook
from tests.e2e.make import widget, widget_crd
from tests.support.server import LiveServer

WEEK = timedelta(days=7)
GROUP = "envtest.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("assets")
    assert main(["envtest", str(folder)]) == 0
    return folder


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def _until(look: Callable[[], Any], seconds: float, every: float = 0.1) -> Any:
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found or time.monotonic() > end:
            return found
        time.sleep(every)  # envtest polls: there is nothing to await in another process


@contextmanager
def _process(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """In a process group of its own, which gets SIGTERM at the end."""
    process = subprocess.Popen(words, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)


def _healthy(url: str) -> bool:
    context = ssl._create_unverified_context() if url.startswith("https") else None
    try:
        with urllib.request.urlopen(url, timeout=2, context=context) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@dataclass
class ControlPlane:
    port: int
    ca: bytes
    clients: Authority
    folder: Path

    def user(self, name: str, *groups: str) -> Client:
        """``AddUser``: a client certificate, at any time."""
        pair = self.clients.client(name, groups, WEEK)
        return Client(self, pair)


class Client:
    def __init__(self, plane: ControlPlane, pair: KeyPair) -> None:
        cert, key = plane.folder / "user.crt", plane.folder / "user.key"
        cert.write_bytes(pair.cert)
        key.write_bytes(pair.key)
        self._context = ssl.create_default_context(cadata=plane.ca.decode())
        self._context.load_cert_chain(cert, key)
        self._port = plane.port
        self._headers: dict[str, str] = {}

    def connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self._port, context=self._context, timeout=20
        )

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = self.connection()
        headers = {"Content-Type": "application/json", **self._headers}
        connection.request(method, path, body and json.dumps(body), headers)
        answer = connection.getresponse()
        found = json.loads(answer.read())
        connection.close()
        return answer.status, found


class ExistingCluster(Client):
    """Who a kubeconfig says."""

    def __init__(self, server: str, authority: str, token: str) -> None:
        self._context = ssl.create_default_context(cadata=authority)
        self._port = int(server.rpartition(":")[2])
        self._headers = {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def plane(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    folder = tmp_path_factory.mktemp("k8s_test_framework")
    help_text = subprocess.run([assets / "etcd", "--help"], capture_output=True, text=True)
    assert re.search(r"(?m)^\s*--unsafe-no-fsync\b", help_text.stdout)
    peers, clients_at = _free_port(), _free_port()
    etcd = [
        f"--advertise-client-urls=http://127.0.0.1:{clients_at}",
        f"--data-dir={folder}",
        f"--listen-client-urls=http://127.0.0.1:{clients_at}",
        f"--listen-peer-urls=http://127.0.0.1:{peers}",
        "--unsafe-no-fsync=true",
    ]
    with _process(str(assets / "etcd"), *etcd):
        assert _until(lambda: _healthy(f"http://127.0.0.1:{clients_at}/health"), 20)
        found = subprocess.run(
            [assets / "kube-apiserver", "--help"], capture_output=True, text=True
        )
        assert found.returncode == 0
        assert not re.search(r"(?m)^\s*--insecure-port\b", found.stdout)
        serving, clients = Authority.make("serving", WEEK), Authority.make("clients", WEEK)
        signer = Authority.make("sa-signer", WEEK).pem
        own = serving.server("localhost", ["localhost", "127.0.0.1", "::1"], WEEK)
        for name, data in {
            "apiserver.crt": own.cert,
            "apiserver.key": own.key,
            "sa-signer.crt": signer.cert,
            "sa-signer.key": signer.key,
            "client-cert-auth-ca.crt": clients.pem.cert,
        }.items():
            (folder / name).write_bytes(data)
        port = _free_port()
        flags = [
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            f"--cert-dir={folder}",
            f"--client-ca-file={folder}/client-cert-auth-ca.crt",
            "--disable-admission-plugins=ServiceAccount",
            f"--etcd-servers=http://127.0.0.1:{clients_at}",
            f"--secure-port={port}",
            f"--service-account-issuer=https://127.0.0.1:{port}/",
            f"--service-account-key-file={folder}/sa-signer.crt",
            f"--service-account-signing-key-file={folder}/sa-signer.key",
            "--service-cluster-ip-range=10.0.0.0/24",
        ]
        with _process(str(assets / "kube-apiserver"), *flags):
            assert _until(lambda: _healthy(f"https://127.0.0.1:{port}/healthz"), 20)
            yield ControlPlane(port, serving.pem.cert, clients, folder)


@pytest.fixture(scope="module")
def admin(plane: ControlPlane) -> Client:
    return plane.user("default", "system:masters")


def _install(admin: Client, crd: dict[str, Any]) -> None:
    """``CRDInstallOptions``: GET, then POST or PUT, then wait for discovery."""
    name = crd["metadata"]["name"]
    status, found = admin("GET", f"{CRDS}/{name}")
    if status == 404:
        assert admin("POST", CRDS, crd)[0] == 201
    else:
        crd["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        assert admin("PUT", f"{CRDS}/{name}", crd)[0] == 200
    for version in crd["spec"]["versions"]:

        def listed(version: str = version["name"]) -> bool:
            status, document = admin("GET", f"/apis/{crd['spec']['group']}/{version}")
            names = [item["name"] for item in document.get("resources", ())]
            return status == 200 and crd["spec"]["names"]["plural"] in names

        assert _until(listed, 10)


def test_the_default_namespace_is_there_within_five_seconds(admin: Client) -> None:
    assert _until(lambda: admin("GET", "/api/v1/namespaces/default")[0] == 200, 5, every=0.05)


def test_users_come_from_certificates_and_have_the_rights_of_rbac(
    plane: ControlPlane, admin: Client
) -> None:
    developer = plane.user("dev", "developers")
    status, refusal = developer("GET", "/api/v1/namespaces/default/configmaps")
    assert status == 403
    assert 'User "dev" cannot list resource "configmaps"' in refusal["message"]

    binding = {
        "metadata": {"name": "dev"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:aggregate-to-view",  # view itself: its controller fills it
        },
        "subjects": [
            {"kind": "Group", "name": "developers", "apiGroup": "rbac.authorization.k8s.io"}
        ],
    }
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    assert admin("POST", path, binding)[0] == 201
    assert developer("GET", "/api/v1/namespaces/default/configmaps")[0] == 200


def test_crds_are_installed_and_installed_again(admin: Client) -> None:
    _install(admin, widget_crd(GROUP))
    _install(admin, widget_crd(GROUP))
    path = f"/apis/{GROUP}/v1/namespaces/default/widgets"

    assert admin("POST", path, widget(GROUP, "one"))[0] == 201


def test_an_existing_cluster_is_used_by_its_kubeconfig(server: LiveServer) -> None:
    """``USE_EXISTING_CLUSTER``: no process is started; host, authority and user are those that
    client-go's loading rules find, and the rest is done as ever."""
    config = yaml.safe_load(server.kubeconfig.read_text())
    [context] = [each for each in config["contexts"] if each["name"] == config["current-context"]]
    [cluster] = [c for c in config["clusters"] if c["name"] == context["context"]["cluster"]]
    [user] = [each for each in config["users"] if each["name"] == context["context"]["user"]]
    authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
    found = ExistingCluster(cluster["cluster"]["server"], authority, user["user"]["token"])

    assert found("GET", "/api/v1/namespaces/default")[0] == 200
    _install(found, widget_crd("existing.example.com"))
    path = "/apis/existing.example.com/v1/namespaces/default/widgets"
    assert found("POST", path, widget("existing.example.com", "one"))[0] == 201
    # CleanUpAfterUse
    assert found("DELETE", f"{CRDS}/widgets.existing.example.com")[0] == 200


def test_tokens_of_accounts_are_signed_with_the_key_that_envtest_brought(admin: Client) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    assert admin("POST", accounts, {"metadata": {"name": "robot"}})[0] == 201
    status, answer = admin("POST", f"{accounts}/robot/token", {"spec": {}})
    assert status == 201, answer
    token = answer["status"]["token"]
    header = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
    assert header["alg"] == "ES256"

    review = {"spec": {"token": token}}
    _, found = admin("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)

    assert found["status"]["user"]["username"] == "system:serviceaccount:default:robot"


def test_a_conversion_webhook_is_trusted_by_its_leaf_and_called_at_a_clean_path(
    admin: Client,
) -> None:
    crd = widget_crd("hooked.example.com")
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v2", "storage": False})

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        objects = [
            {**obj, "apiVersion": request["desiredAPIVersion"]} for obj in request["objects"]
        ]
        return {"convertedObjects": objects, "result": {"status": "Success"}}

    with webhook(answer) as hook:
        port = int(hook.url.rpartition(":")[2])
        leaf = ssl.get_server_certificate(("127.0.0.1", port)).encode()
        client = {"url": f"{hook.url}//convert", "caBundle": base64.b64encode(leaf).decode()}
        webhook_part = {"conversionReviewVersions": ["v1", "v1beta1"], "clientConfig": client}
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook_part}
        _install(admin, crd)
        path = "/apis/hooked.example.com/{}/namespaces/default/widgets"
        body = widget("hooked.example.com", "one")
        assert admin("POST", path.format("v1"), body)[0] == 201

        status, found = admin("GET", f"{path.format('v2')}/one")

    assert status == 200, found
    assert found["apiVersion"] == "hooked.example.com/v2"
    assert {each.partition("?")[0] for each in hook.paths} == {"/convert"}


def test_admission_webhooks_of_a_manager_are_called(admin: Client) -> None:
    def refuse(request: dict[str, Any]) -> dict[str, Any]:
        allowed = request["object"]["metadata"]["name"] != "bad"
        return {"allowed": allowed, "status": {"code": 403, "message": "not this one"}}

    with webhook(refuse) as hook:
        port = int(hook.url.rpartition(":")[2])
        leaf = ssl.get_server_certificate(("127.0.0.1", port)).encode()
        configuration = {
            "metadata": {"name": "envtest"},
            "webhooks": [
                {
                    "name": "names.envtest.example.com",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "clientConfig": {
                        "url": f"{hook.url}//validate-v1-configmap",
                        "caBundle": base64.b64encode(leaf).decode(),
                    },
                    "rules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["configmaps"],
                        }
                    ],
                }
            ],
        }
        kind = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        assert admin("POST", kind, configuration)[0] == 201
        maps = "/api/v1/namespaces/default/configmaps"
        good = admin("POST", maps, {"metadata": {"name": "good"}})
        status, refusal = admin("POST", maps, {"metadata": {"name": "bad"}})
        assert admin("DELETE", f"{kind}/envtest")[0] == 200

    assert good[0] == 201
    assert status == 403, refusal
    assert "not this one" in refusal["message"]
    assert {each.partition("?")[0] for each in hook.paths} == {"/validate-v1-configmap"}


def test_it_stops_at_once_while_a_watch_is_open(assets: Path, tmp_path: Path) -> None:
    """Also: values as words of their own, and no certificate in the folder, as in Java's suites."""
    etcd_at, port = _free_port(), _free_port()
    clients = Authority.make("clients", WEEK)
    (tmp_path / "clients.crt").write_bytes(clients.pem.cert)
    with _process(str(assets / "etcd"), "--listen-client-urls", f"http://127.0.0.1:{etcd_at}"):
        assert _until(lambda: _healthy(f"http://127.0.0.1:{etcd_at}/health"), 20)
        words = ["--cert-dir", str(tmp_path), "--secure-port", str(port), "--allow-privileged"]
        words += ["--etcd-servers", f"http://127.0.0.1:{etcd_at}", "--bind-address", "127.0.0.1"]
        words += ["--client-ca-file", str(tmp_path / "clients.crt")]
        words += ["--authorization-mode", "RBAC"]
        process = subprocess.Popen([assets / "kube-apiserver", *words], start_new_session=True)
        assert _until(lambda: _healthy(f"https://127.0.0.1:{port}/healthz"), 20)
        serving = (tmp_path / "apiserver.crt").read_bytes()
        plane = ControlPlane(port, serving, clients, tmp_path)
        context = ssl._create_unverified_context()
        assert plane.port == port
        watching = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=20)
        pair = clients.client("admin", ("system:masters",), WEEK)
        (tmp_path / "a.crt").write_bytes(pair.cert)
        (tmp_path / "a.key").write_bytes(pair.key)
        context.load_cert_chain(tmp_path / "a.crt", tmp_path / "a.key")
        watching.request("GET", "/api/v1/namespaces?watch=1")
        assert watching.getresponse().status == 200

        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)  # a stop that waited for the watch would take its 30 minutes

    watching.close()


@pytest.mark.parametrize("program", ["kube-apiserver", "etcd"])
def test_an_unknown_flag_is_refused(assets: Path, program: str) -> None:
    done = subprocess.run([assets / program, "--nosuch"], capture_output=True, text=True)

    assert done.returncode != 0
    assert "--nosuch" in done.stderr


def test_the_version_is_kubernetes(assets: Path) -> None:
    done = subprocess.run([assets / "kube-apiserver", "--version"], capture_output=True, text=True)

    assert done.stdout == "Kubernetes v1.36.4\n"
