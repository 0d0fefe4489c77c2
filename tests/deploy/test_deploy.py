"""What is deployed: a server takes it without a warning, with rights that are enough."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.cli.main import main
from instar.testing.manifests import read_manifests
from tests.support.server import LiveServer

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*.yaml") if path.name != "kustomization.yaml")
CRD = "crontabs.stable.example.com"
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Service": "/api/v1/namespaces/{}/services",
    "Namespace": "/api/v1/namespaces",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}


@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_server_takes_every_manifest_as_it_is(file: Path, fresh_server: LiveServer) -> None:
    if file.parent.name == "control-plane":
        fresh_server.install(DEPLOY / "control-plane" / "namespace.yaml")
    for manifest in read_manifests(file):
        namespace = manifest["metadata"].get("namespace", "default")
        path = PATHS[manifest["kind"]].format(namespace)
        manifest["metadata"]["name"] += "-tried"
        answer = fresh_server.request("POST", f"{path}?fieldValidation=Strict", manifest)

        assert answer.status == 201, answer.text
        assert answer.warnings == []


def test_kustomizations_name_files_that_exist() -> None:
    for file in DEPLOY.rglob("kustomization.yaml"):
        for name in yaml.safe_load(file.read_text())["resources"]:
            assert (file.parent / name).exists(), f"{file}: {name}"


def _workloads() -> list[dict[str, Any]]:
    found = [one for file in FILES for one in read_manifests(file)]
    return [one for one in found if one["kind"] in ("StatefulSet", "Job")]


@pytest.mark.parametrize("workload", _workloads(), ids=lambda one: str(one["metadata"]["name"]))
def test_workloads_are_restricted(workload: dict[str, Any]) -> None:
    pod = workload["spec"]["template"]["spec"]
    [container] = pod["containers"]
    context = container["securityContext"]

    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert context["readOnlyRootFilesystem"]
    assert not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}


def test_the_migration_works_with_exactly_its_role(
    fresh_server: LiveServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crd = next(read_manifests(ROOT / "examples" / "cron" / "crd.yaml"))
    crd["spec"]["conversion"] = {"strategy": "None"}
    fresh_server.install(crd, ROOT / "examples" / "cron" / "sample.yaml")
    fresh_server.install(DEPLOY / "migrate" / "rbac.yaml")
    [job] = read_manifests(DEPLOY / "migrate" / "job.yaml")
    [container] = job["spec"]["template"]["spec"]["containers"]
    kubeconfig = json.loads(fresh_server.kubeconfig.read_text())
    kubeconfig["users"][0]["user"]["as"] = "system:serviceaccount:default:instar-migrate"
    path = tmp_path / "config"
    path.write_text(json.dumps(kubeconfig))

    code = main([*container["args"], "--kubeconfig", str(path)])

    assert code == 0, capsys.readouterr()


def test_the_image_runs_a_command_that_exists() -> None:
    text = (ROOT / "Dockerfile").read_text()
    [command] = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)

    assert json.loads(command)[0] == "serve"
    assert shlex.split(re.findall(r"^USER (.*)$", text, re.MULTILINE)[0]) == ["65532:65532"]
