"""Helm, unmodified: a chart with a Deployment, a Service, RBAC and a CRD is installed and waited
for, up to what only a kubelet could make ready. A stand-in for the deployment controller reports
that part."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.helm import Helm
from tests.support.server import LiveServer, live_server

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
MERGE = "application/merge-patch+json"
CHART = "apiVersion: v2\nname: demo\nversion: 0.1.0\n"
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.helm.example.com}
spec:
  group: helm.example.com
  scope: Namespaced
  names: {plural: gizmos, kind: Gizmo}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
"""
TEMPLATE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      serviceAccountName: {{ .Release.Name }}
      containers: [{name: a, image: "x:1"}]
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {app: {{ .Release.Name }}}
  ports: [{port: 80}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: {{ .Release.Name }}}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: {{ .Release.Name }}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .Release.Name }}}
subjects: [{kind: ServiceAccount, name: {{ .Release.Name }}, namespace: default}]
---
apiVersion: helm.example.com/v1
kind: Gizmo
metadata: {name: {{ .Release.Name }}}
spec: {size: 3}
"""


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    folder = tmp_path / "chart"
    for name, text in (
        ("Chart.yaml", CHART),
        ("values.yaml", "replicas: 2\n"),
        ("crds/gizmos.yaml", CRD),
        ("templates/all.yaml", TEMPLATE),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(bootstrap_objects=True) as running:
        yield running


@contextmanager
def deployment_controller(server: LiveServer) -> Iterator[None]:
    """Makes a ReplicaSet for each state of a Deployment and says that all its pods are ready."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.05):
            for deployment in server.request("GET", DEPLOYMENTS).json["items"]:
                report(server, deployment)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def report(server: LiveServer, deployment: dict[str, Any]) -> None:
    metadata, spec = deployment["metadata"], deployment["spec"]
    name, replicas = metadata["name"], spec["replicas"]
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": name,
        "uid": metadata["uid"],
        "controller": True,
    }
    made = {
        "metadata": {
            "name": f"{name}-1",
            "labels": spec["template"]["metadata"]["labels"],
            "ownerReferences": [owner],
        },
        "spec": {key: spec[key] for key in ("replicas", "selector", "template")},
    }
    path = f"{SETS}/{name}-1"
    server.request("POST", SETS, made)
    scaled = {"spec": {"replicas": replicas}}
    one = server.request("PATCH", path, scaled, content_type=MERGE).json
    ready = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas"), replicas)
    for where, seen, more in (
        (path, one["metadata"]["generation"], {}),
        (f"{DEPLOYMENTS}/{name}", metadata["generation"], {"updatedReplicas": replicas}),
    ):
        status = {"status": {"observedGeneration": seen, **ready, **more}}
        server.request("PATCH", f"{where}/status", status, content_type=MERGE)


def names(server: LiveServer, path: str) -> list[str]:
    found = server.request("GET", path).json["items"]
    return [item["metadata"]["name"] for item in found]


def test_a_chart_lives_its_whole_life(server: LiveServer, chart: Path, tmp_path: Path) -> None:
    helm = Helm(server, tmp_path)
    with deployment_controller(server):
        helm("install", "demo", str(chart), "--wait", "--timeout", "20s")
        assert "deployed" in helm("list")
        helm("upgrade", "demo", str(chart), "--wait", "--timeout", "20s", "--set", "replicas=3")
        deployment = server.request("GET", f"{DEPLOYMENTS}/demo").json
        history = helm("history", "demo")
        helm("rollback", "demo", "1", "--wait", "--timeout", "20s")
        back = server.request("GET", f"{DEPLOYMENTS}/demo").json

    assert deployment["spec"]["replicas"] == 3
    assert "superseded" in history
    assert back["spec"]["replicas"] == 2
    gizmo = server.request("GET", "/apis/helm.example.com/v1/namespaces/default/gizmos/demo")
    assert gizmo.json["spec"] == {"size": 3}

    helm("uninstall", "demo", "--wait", "--timeout", "20s")

    assert names(server, DEPLOYMENTS) == []
    assert "demo" not in names(server, "/api/v1/namespaces/default/services")
    assert "gizmos.helm.example.com" in names(
        server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    )
    until = time.monotonic() + 10
    while names(server, SETS) and time.monotonic() < until:
        time.sleep(0.05)  # the collector's work is announced by nothing a client could await
    assert names(server, SETS) == []


def test_without_a_controller_waiting_ends_at_the_deployment(
    server: LiveServer, chart: Path, tmp_path: Path
) -> None:
    helm = Helm(server, tmp_path)

    waited = helm.run("install", "stuck", str(chart), "--wait", "--timeout", "1s")

    assert waited.returncode == 1
    assert "context deadline exceeded" in waited.stderr
    assert "failed" in helm("list", "--all")
    assert "stuck" in names(server, "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles")
