"""The Helm chart, as helm renders it: a server takes it, its pods are restricted, its flags exist.

Alerts and the dashboard use metrics and labels that the code makes.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import instar
from docsite.metrics import server_metrics
from instar.cli.main import parser_of
from instar.wire.storage.postgres.url import parse_url
from tests.deploy.rendering import DEPLOY, ROOT
from tests.support.helm import Helm
from tests.support.server import LiveServer, live_server

CHART = DEPLOY / "chart"
RULES = CHART / "files" / "rules.yaml"
DASHBOARD = CHART / "files" / "dashboard.json"
MONITORING = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {plural: PLURAL, kind: KIND}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: SPEC}}}
"""
SERVICE_MONITOR = """{type: object, required: [endpoints, selector], properties: {
  selector: {type: object, properties: {
    matchLabels: {type: object, additionalProperties: {type: string}}}},
  endpoints: {type: array, items: {type: object, properties: {
    port: {type: string}, scheme: {type: string, enum: [http, https]}, path: {type: string},
    interval: {type: string, pattern: '^[0-9]+(ms|s|m)$'},
    authorization: {type: object, properties: {type: {type: string}, credentials: {
      type: object, required: [key], properties: {name: {type: string}, key: {type: string}}}}},
    tlsConfig: {type: object, properties: {
      serverName: {type: string}, insecureSkipVerify: {type: boolean},
      ca: {type: object, properties: {secret: {
        type: object, required: [key],
        properties: {name: {type: string}, key: {type: string}}}}}}}}}}}}"""
PROMETHEUS_RULE = """{type: object, properties: {groups: {type: array, items: {
  type: object, required: [name], properties: {name: {type: string}, rules: {type: array, items: {
    type: object, required: [expr], properties: {
      alert: {type: string}, expr: {type: string}, for: {type: string},
      labels: {type: object, additionalProperties: {type: string}},
      annotations: {type: object, additionalProperties: {type: string}}}}}}}}}}"""
"""Those of the Prometheus operator's fields that the chart uses, as the operator documents them."""
ETCD = ("storage=etcd://etcd.example.svc:2379/registry", "etcdSecret=etcd", "pkiSecret=pki")
WATCHED = ("metrics.tokenSecret=t", "metrics.serviceMonitor=true", "metrics.rules=true")
CLUSTER_WIDE = ("APIService", "ClusterRole", "ClusterRoleBinding")
VARIANTS = {
    "as it is": (),
    "replicas": ("replicas=3", *ETCD),
    "on PostgreSQL": (
        *("replicas=2", "pkiSecret=pki", "postgresSecret=database"),
        "storage=postgresql://instar@db.example.svc/instar?sslmode=verify-full"
        "&sslrootcert=/postgres/ca.crt",
    ),
    "monitored": (*WATCHED, "metrics.dashboard=true", "metrics.labels.release=prometheus"),
    "aggregated": (
        *("cluster.groups={reports.example.com}", "cluster.caBundle=Q0E="),
        *("cluster.apiServices[0].group=reports.example.com", "cluster.apiServices[0].version=v1"),
        *("cluster.params[0].apiGroups={}", "cluster.params[0].resources={configmaps}"),
        *("networkPolicy.enabled=true", "networkPolicy.from[0].ipBlock.cidr=10.0.0.0/24"),
    ),
    "everything": (
        *("replicas=2", *ETCD, *WATCHED, "metrics.dashboard=true"),
        *("extraArgs={--history=24h}", "volume.storageClassName=fast", "image.tag=x"),
        *("nodeSelector.disk=ssd", "imagePullSecrets[0].name=pull", "tolerations[0].key=a"),
    ),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LiveServer]:
    with live_server(bootstrap_objects=True) as server:
        for plural, kind, spec in (
            ("servicemonitors", "ServiceMonitor", SERVICE_MONITOR),
            ("prometheusrules", "PrometheusRule", PROMETHEUS_RULE),
        ):
            text = MONITORING.replace("PLURAL", plural).replace("KIND", kind).replace("SPEC", spec)
            server.install(yaml.safe_load(text))
        yield server


@pytest.fixture
def helm(cluster: LiveServer, tmp_path: Path) -> Helm:
    return Helm(cluster, tmp_path)


def _rendered(helm: Helm, values: tuple[str, ...]) -> list[dict[str, Any]]:
    flags = [word for value in values for word in ("--set", value)]
    return list(yaml.safe_load_all(helm("template", "demo", str(CHART), *flags)))


def _strictly(cluster: LiveServer, document: dict[str, Any]) -> tuple[int, Any]:
    group, _, version = document["apiVersion"].rpartition("/")
    plural = f"{document['kind'].lower()}s".replace("policys", "policies")
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    namespace = document["metadata"].get("namespace", "default")
    place = "" if document["kind"] in CLUSTER_WIDE else f"/namespaces/{namespace}"
    path = f"{base}{place}/{plural}?dryRun=All&fieldValidation=Strict"
    answer = cluster.request("POST", path, document)
    return answer.status, answer.json


@pytest.mark.parametrize("name", VARIANTS)
def test_a_server_takes_the_chart_strictly(cluster: LiveServer, helm: Helm, name: str) -> None:
    for document in _rendered(helm, VARIANTS[name]):
        status, body = _strictly(cluster, document)

        assert status == 201, body


def test_helm_finds_nothing_to_complain_about(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


def test_helm_installs_upgrades_and_removes_it(helm: Helm) -> None:
    assert "instar starts as demo" in helm("install", "demo", str(CHART))
    helm("upgrade", "demo", str(CHART), "--set", "metrics.rules=true")
    helm("uninstall", "demo")


@pytest.mark.parametrize("name", VARIANTS)
def test_pods_are_restricted_and_run_flags_that_exist(helm: Helm, name: str) -> None:
    (found,) = (each for each in _rendered(helm, VARIANTS[name]) if each["kind"] == "StatefulSet")
    pod = found["spec"]["template"]["spec"]
    (server,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["automountServiceAccountToken"] == (name == "aggregated")
    for container in (*pod["containers"], *pod.get("initContainers", ())):
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    args = parser_of(server["args"][0]).parse_args(server["args"][1:])
    mounts = {each["mountPath"]: each["name"] for each in server["volumeMounts"]}
    if name == "on PostgreSQL":
        settings = parse_url(args.storage, password_file=str(args.postgres_password_file))
        assert settings.password_file == "/postgres/password"
        assert dict(settings.driver)["sslrootcert"] == "/postgres/ca.crt"
        (secret,) = (v for v in pod["volumes"] if v["name"] == mounts["/postgres"])
        assert secret["secret"]["secretName"] == "database"


def _kinds(helm: Helm, variant: str) -> set[str]:
    return {each["kind"] for each in _rendered(helm, VARIANTS[variant]) if each}


def test_replicas_have_a_disruption_budget_and_one_server_has_none(helm: Helm) -> None:
    assert "PodDisruptionBudget" in _kinds(helm, "replicas")
    assert "PodDisruptionBudget" not in _kinds(helm, "as it is")


def test_the_release_admits_the_servers_port_alone(helm: Helm) -> None:
    (policy,) = (
        each for each in _rendered(helm, VARIANTS["aggregated"]) if each["kind"] == "NetworkPolicy"
    )

    (rule,) = policy["spec"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": "https"}]
    assert rule["from"] == [{"ipBlock": {"cidr": "10.0.0.0/24"}}]


def test_the_release_routes_the_api_of_adoptions_as_the_kustomization_does(helm: Helm) -> None:
    (ours,) = (
        each
        for each in _rendered(helm, VARIANTS["aggregated"])
        if each["metadata"]["name"] == "v1.adopt.instar.dev"
    )
    [base] = yaml.safe_load_all((DEPLOY / "in-cluster" / "adopt.yaml").read_text())

    for place in ("service", "caBundle"):
        ours["spec"].pop(place)
        base["spec"].pop(place)
    assert ours["spec"] == base["spec"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("replicas=2", "need storage on etcd"),
        ("metrics.serviceMonitor=true", "needs metrics.tokenSecret"),
    ],
)
def test_values_that_cannot_work_are_rejected(helm: Helm, value: str, reason: str) -> None:
    done = helm.run("template", "demo", str(CHART), "--set", value)

    assert done.returncode != 0
    assert reason in done.stderr


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert chart["version"] == chart["appVersion"] == instar.__version__


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """Labels by the name of a series, as Prometheus sees it."""
    found: dict[str, set[str]] = {}
    for metric in server_metrics():
        labels = {*metric.labels, "job", "instance"}
        found[metric.name] = labels
        if metric.kind == "histogram":
            for part in ("_bucket", "_sum", "_count"):
                found[metric.name + part] = {*labels, "le"}
    return found


def _alerts() -> dict[str, str]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


def _queries() -> dict[str, str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in panels
        for target in panel.get("targets", ())
    }


@pytest.mark.parametrize(
    "expression", [*_alerts().values(), *_queries().values()], ids=[*_alerts(), *_queries()]
)
def test_expressions_use_series_and_labels_that_exist(
    known: dict[str, set[str]], expression: str
) -> None:
    names = set(re.findall(r"\b(?:apiserver|instar)_[a-z_]+", expression))
    matched = set(re.findall(r"[{,](\w+)(?:=~|!=|!~|=)", expression))
    grouped = {
        label.strip()
        for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression)
        for label in labels.split(",")
    }

    assert names
    assert names <= set(known)
    assert matched | grouped <= set().union(*(known[name] for name in names)), expression


def test_each_alert_has_its_section_in_the_docs() -> None:
    page = (ROOT / "docs" / "how-to" / "monitoring.md").read_text()

    for alert in _alerts():
        assert f"\n### {alert}\n" in page
        assert f"monitoring.md#{alert.lower()}\n" in RULES.read_text()


def test_promtool_takes_the_alerts() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("NO PROMTOOL on this machine: the alerts were not parsed by Prometheus")
    done = subprocess.run([promtool, "check", "rules", str(RULES)], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
