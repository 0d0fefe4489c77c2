"""The deployment in deploy/in-cluster has the rights that the server needs, and no others."""

from __future__ import annotations

from pathlib import Path

import yaml

from instar.server.settings import ClusterSettings
from tests.deploy.rendering import DEPLOY
from tests.support.jobs import account_kubeconfig
from tests.support.main_cluster import GROUP, REPORTS, aggregated, report
from tests.support.server import live_server
from tests.support.waiting import eventually

BASE = DEPLOY / "in-cluster"


def test_the_server_works_with_exactly_its_roles(tmp_path: Path) -> None:
    with aggregated(tmp_path) as both:
        both.main.install(BASE / "namespace.yaml")
        both.main.install(BASE / "rbac.yaml")
        quotas = "/api/v1/namespaces/default/resourcequotas"
        name = f"count/reports.{GROUP}"
        quota = {"metadata": {"name": "few", "namespace": "default"}, "spec": {"hard": {name: "1"}}}
        both.create(quotas, quota)
        kubeconfig = account_kubeconfig(both.main, "instar", "instar", tmp_path / "account")
        joined = ClusterSettings(kubeconfig=str(kubeconfig), groups=(GROUP,))
        with live_server(cluster=joined, cert_dir=tmp_path / "deployed") as served:
            theirs = both._replace(served=served)
            made = theirs.proxied("POST", REPORTS, report("a"))
            refused = theirs.proxied("POST", REPORTS, report("b"))
            unknown = theirs.proxied("GET", REPORTS, user="joe", groups=())
            token = served.request("GET", REPORTS, token="forged")

            def used() -> bool:
                status = both.main.request("GET", f"{quotas}/few").json.get("status") or {}
                return (status.get("used") or {}).get(name) == "1"

            eventually(used)

    assert made.status == 201, made.text
    assert refused.status == 403
    assert "exceeded quota" in refused.text
    assert unknown.status == 403, unknown.text
    assert token.status == 401


def test_the_example_of_a_route_is_one_that_kube_apiserver_takes(tmp_path: Path) -> None:
    [route] = yaml.safe_load_all((BASE / "apiservice.yaml").read_text())
    route["spec"]["caBundle"] = "Q0E="
    with aggregated(tmp_path) as both:
        path = "/apis/apiregistration.k8s.io/v1/apiservices?fieldValidation=Strict&dryRun=All"
        answer = both.main.request("POST", path, route)

    assert answer.status == 201, answer.text
