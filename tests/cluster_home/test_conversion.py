"""Objects of a followed CRD are converted in process, so that no conversion webhook has to run."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from instar.server.settings import ClusterSettings
from instar.tools.sdk.loading import load
from tests.support.main_cluster import aggregated
from tests.support.server import live_server

CRON = Path(__file__).resolve().parents[2] / "examples" / "cron"


def test_a_converter_of_this_server_takes_the_place_of_the_crds_webhook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [crd] = yaml.safe_load_all((CRON / "crd.yaml").read_text())
    name, group = crd["metadata"]["name"], crd["spec"]["group"]
    monkeypatch.syspath_prepend(str(CRON))
    converter = load("crontab_conversion:crontab")
    collection = f"namespaces/default/{crd['spec']['names']['plural']}"
    obj = {
        "apiVersion": f"{group}/v1",
        "kind": "CronTab",
        "metadata": {"name": "nightly"},
        "spec": {"cronSpec": "0 3 * * 1"},
    }
    with aggregated(tmp_path) as both:
        both.main.create_crd(crd)
        joined = ClusterSettings(kubeconfig=str(both.main.kubeconfig), groups=(group,))
        with live_server(
            cluster=joined, cert_dir=tmp_path / "cron", converters={name: converter.convert_owned}
        ) as served:
            made = served.request("POST", f"/apis/{group}/v1/{collection}", obj)
            read = served.request("GET", f"/apis/{group}/v2/{collection}/nightly")

    assert made.status == 201, made.text
    assert read.json["spec"]["hour"] == "3"
