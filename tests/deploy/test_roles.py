"""Migration and upgrade as Jobs: run as the ServiceAccount they name, with exactly its role."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.cli.main import main
from tests.deploy.rendering import DEPLOY, ROOT, of_kind, rendered
from tests.support.helm import Helm
from tests.support.jobs import account_kubeconfig, job_controller, run_container
from tests.support.server import LiveServer, live_server

CRD = "crontabs.stable.example.com"
OBJECTS = "/apis/stable.example.com/v1/namespaces/default/crontabs"
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: crds
  namespace: default
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-weight: "-4"
    helm.sh/hook-delete-policy: before-hook-creation
data:
  crds.yaml: |
{{ .Files.Get "crds.yaml" | indent 4 }}
"""


@pytest.fixture
def cluster() -> Iterator[LiveServer]:
    with live_server(bootstrap_objects=True) as server:
        yield server


def _versions(*names: str, storage: str) -> dict[str, Any]:
    crd = yaml.safe_load((DEPLOY / "upgrade" / "crds.yaml").read_text())
    [model] = crd["spec"]["versions"]
    crd["spec"]["versions"] = [
        {**model, "name": name, "storage": name == storage} for name in names
    ]
    return dict(crd)


def _cron(version: str) -> dict[str, Any]:
    return {
        "apiVersion": f"stable.example.com/{version}",
        "kind": "CronTab",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"replicas": 1},
    }


def _permissions() -> list[dict[str, Any]]:
    """What an upgrade's Job is granted, and who it is."""
    return [each for each in rendered("upgrade") if each["kind"] not in ("Job", "ConfigMap")]


def test_the_migration_works_with_exactly_its_role(cluster: LiveServer, tmp_path: Path) -> None:
    cluster.install(_versions("v1beta1", "v1", storage="v1beta1"), _cron("v1beta1"))
    cluster.install(_versions("v1beta1", "v1", storage="v1"))
    cluster.install(DEPLOY / "migrate" / "rbac.yaml")

    done = run_container(cluster, of_kind("migrate", "Job"), tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert cluster.stored("stable.example.com/crontabs/default/one")["apiVersion"].endswith("/v1")


@pytest.mark.parametrize("there", [False, True], ids=["created", "with objects to migrate"])
def test_an_upgrade_works_with_exactly_its_role(
    cluster: LiveServer, tmp_path: Path, there: bool
) -> None:
    if there:
        cluster.install(_versions("v1beta1", storage="v1beta1"), _cron("v1beta1"))
    release = yaml.safe_dump(_versions("v1beta1", "v1", storage="v1"))
    files = {**of_kind("upgrade", "ConfigMap"), "data": {"crds.yaml": release}}
    cluster.install(*_permissions(), files)

    done = run_container(cluster, of_kind("upgrade", "Job"), tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    versions = cluster.request(
        "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD}"
    )
    assert versions.json["status"]["storedVersions"] == ["v1"]


def test_a_removed_version_is_dropped_and_unreadable_kinds_are_reported(
    cluster: LiveServer, tmp_path: Path
) -> None:
    cluster.install(_versions("v1beta1", "v1", storage="v1"), _cron("v1"))
    cluster.install(*_permissions())
    file = tmp_path / "crds.yaml"
    file.write_text(yaml.safe_dump(_versions("v1", storage="v1")))
    user = account_kubeconfig(cluster, "default", "crd-upgrade", tmp_path / "kubeconfig")
    report = tmp_path / "report.json"

    words = ["upgrade", str(file), "--allow", "version-removed", "--kubeconfig", str(user)]
    code = main([*words, "--report", str(report)])

    [crd] = json.loads(report.read_text())["crds"]
    assert code == 0, crd
    [told] = [step for step in crd["steps"] if step["step"] == "owner references"]
    assert any(line.startswith("secrets: ") for line in told["lines"])


def test_an_upgrade_may_not_touch_what_is_not_its_own(cluster: LiveServer, tmp_path: Path) -> None:
    cluster.install(*_permissions())
    user = account_kubeconfig(cluster, "default", "crd-upgrade", tmp_path / "kubeconfig")

    code = main(
        ["upgrade", str(ROOT / "examples" / "hostport" / "crd.yaml"), "--kubeconfig", str(user)]
    )

    assert code == 1


def test_helm_runs_the_upgrade_before_all_else(
    cluster: LiveServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A chart with the printed Job: its custom resource is of a CRD that only the hook brings."""
    crds = str(DEPLOY / "upgrade" / "crds.yaml")
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: demo\nversion: 0.1.0\n")
    (chart / "crds.yaml").write_text(Path(crds).read_text())
    capsys.readouterr()
    main(["upgrade", "--manifests", "--hook", "helm", "--config-map", "crds", crds])
    (chart / "templates" / "job.yaml").write_text(capsys.readouterr().out)
    (chart / "templates" / "crds.yaml").write_text(CONFIG_MAP)
    helm = Helm(cluster, tmp_path)

    with job_controller(cluster, tmp_path) as ran:
        helm("install", "demo", str(chart), "--timeout", "60s")

    assert [done.returncode for done in ran] == [0], ran
    assert cluster.request("GET", OBJECTS).status == 200
