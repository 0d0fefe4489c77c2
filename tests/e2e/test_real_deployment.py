"""deploy/in-cluster and the chart on a real kube-apiserver: applied strictly, their pods admitted,
and a server with exactly their account, rights, flags and routes adopts a group.

There is no kubelet, so that the server of the pod runs here, beside the cluster.
"""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.base.certificates import Authority
from tests.deploy.rendering import DEPLOY, rendered
from tests.storage.etcd_server import free_ports
from tests.support.helm import Helm
from tests.support.kubectl import kubectls
from tests.support.main_cluster import crd
from tests.support.real_cluster import RealCluster, binary, real_cluster
from tests.support.waiting import eventually

_GROUP = "reports.example.com"
_CONTROLLERS = ("statefulset-controller", "serviceaccount-controller", "disruption-controller")


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with real_cluster(tmp_path_factory.mktemp("real"), controllers=_CONTROLLERS) as found:
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        found.made(crds, crd(group=_GROUP))
        path = f"/apis/{_GROUP}/v1/namespaces/default/reports"
        eventually(lambda: found.request("GET", path).status == 200)
        body = {"apiVersion": f"{_GROUP}/v1", "kind": "Report", "metadata": {"name": "one"}}
        found.made(path, body)
        yield found


def _kubectl(main: RealCluster, *arguments: str, given: str = "") -> str:
    found = kubectls() or [binary("kubectl")]
    done = subprocess.run(
        [found[0], f"--kubeconfig={main.kubeconfig}", *arguments],
        input=given,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, "Warning" in done.stderr) == (0, False), done.stderr
    return done.stdout


def _kustomized(main: RealCluster, folder: Path, ca: bytes, port: int) -> list[dict[str, Any]]:
    [route] = yaml.safe_load_all((DEPLOY / "in-cluster" / "adopt.yaml").read_text())
    route["spec"]["caBundle"] = base64.b64encode(ca).decode()
    route["spec"]["service"]["port"] = port
    return [*rendered("in-cluster"), route]


def _charted(main: RealCluster, folder: Path, ca: bytes, port: int) -> list[dict[str, Any]]:
    values = (
        f"cluster.groups={{{_GROUP}}}",
        f"cluster.caBundle={base64.b64encode(ca).decode()}",
        f"service.port={port}",
        "networkPolicy.enabled=true",
    )
    flags = [word for value in values for word in ("--set", value)]
    text = Helm(main, folder)("template", "charted", str(DEPLOY / "chart"), "-n", "charted", *flags)
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    named = {"name": "charted", "labels": labels}
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": named}
    return [made, *filter(None, yaml.safe_load_all(text))]


@contextmanager
def _server(main: RealCluster, folder: Path, args: list[str], port: int) -> Iterator[None]:
    """The container's command with its account, and its folders and port here."""
    replaced = {
        "--listen": f"127.0.0.1:{port}",
        "--cluster": str(folder / "account"),
        "--storage": f"sqlite:{folder}/instar.db",
        "--cert-dir": str(folder / "pki"),
        "--kubeconfig": str(folder / "kubeconfig"),
    }
    given = dict(each.split("=", 1) for each in args[1:])
    flags = [f"{name}={replaced.get(name, value)}" for name, value in given.items()]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "instar", args[0], *flags], stdout=log, stderr=log
        ) as process,
    ):
        try:
            yield
        finally:
            process.terminate()


def _account(main: RealCluster, namespace: str, name: str, file: Path) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    token = main.made(path, {"spec": {}})["status"]["token"]
    config = yaml.safe_load(main.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    file.write_text(yaml.safe_dump(config))


def _authority(folder: Path) -> bytes:
    """The CA that the server will find in its folder, as ``pkiSecret`` brings it."""
    made = Authority.make("instar-ca", timedelta(days=1))
    (folder / "pki").mkdir(parents=True)
    (folder / "pki" / "ca.crt").write_bytes(made.pem.cert)
    (folder / "pki" / "ca.key").write_bytes(made.pem.key)
    return made.pem.cert


@pytest.mark.parametrize(
    ("way", "namespace", "name"),
    [(_kustomized, "instar", "instar"), (_charted, "charted", "charted")],
    ids=["kustomize", "chart"],
)
def test_what_is_deployed_adopts_a_group(
    main: RealCluster, tmp_path: Path, way: Any, namespace: str, name: str
) -> None:
    (port,) = free_ports(1)
    objects = way(main, tmp_path, _authority(tmp_path), port)
    (workload,) = (each for each in objects if each["kind"] == "StatefulSet")
    text = yaml.safe_dump_all(objects)

    _kubectl(main, "apply", "--server-side", "--validate=strict", "-f", "-", given=text)

    pod = f"/api/v1/namespaces/{namespace}/pods/{name}-0"
    eventually(lambda: main.request("GET", pod).status == 200, 60)
    budget = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{name}"
    network = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies/{name}"
    assert main.request("GET", network).status == 200
    assert main.request("GET", budget).status == (200 if name == "instar" else 404)
    _elsewhere(main, namespace, name)
    _account(main, namespace, name, tmp_path / "account")
    args = workload["spec"]["template"]["spec"]["containers"][0]["args"]
    with _server(main, tmp_path, args, port):
        for flags in ((), ("--return", "--accept-new-uids")):
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "instar", "adopt", _GROUP, "--in-flight", "0.05s"),
                    *("--kubeconfig", str(main.kubeconfig), "--api-server", main.url),
                    *("--journal", str(tmp_path / "journal.json"), *flags),
                ],
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            if not flags:
                path = f"/apis/{_GROUP}/v1/namespaces/default/reports/one"
                written = {"spec": {"size": 5}}
                merge = "application/merge-patch+json"
                assert main.request("PATCH", path, written, merge).status == 200
    main.request("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1.adopt.instar.dev")


def _elsewhere(main: RealCluster, namespace: str, name: str) -> None:
    """Have the Service lead to this machine, where the server of the pod runs."""
    path = f"/api/v1/namespaces/{namespace}/services/{name}"
    assert main.request("DELETE", path).status == 200
    spec = {"type": "ExternalName", "externalName": "localhost"}
    main.made(path.rpartition("/")[0], {"metadata": {"name": name}, "spec": spec})
