"""PodSecurity admission: the answers of a real kube-apiserver 1.36.4, and what configuration adds.

``pod_security.json`` holds pods of our own making and what the real server said of each under
several namespace labels.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from instar.kube.pod_security.evaluation import violations
from instar.kube.pod_security.labels import PREFIX, PodSecurityPolicy, read_policy
from instar.kube.pod_security.pod_view import PodView
from instar.server.registry.admission.plugins.pod_security import (
    BadPodSecurity,
    read_pod_security,
)
from tests.support.server import LiveServer

RECORDED = json.loads((Path(__file__).parent / "pod_security.json").read_text())
ROWS = [
    pytest.param(row, id=f"{row['labels']}/{row['pod']}")
    for row in RECORDED["answers"]
    if RECORDED["pods"][row["pod"]]["kind"] == "Pod"
]


def _labels(text: str) -> dict[str, str]:
    return {PREFIX + name: value for name, value in (each.split("=") for each in text.split(","))}


def _told(policy: Any, pod: dict[str, Any]) -> str:
    found = violations(policy, PodView(pod["metadata"], pod["spec"]))
    return f'PodSecurity "{policy}": {", ".join(map(str, found))}' if found else ""


@pytest.mark.parametrize("row", ROWS)
def test_a_pod_is_judged_as_the_real_server_does(row: dict[str, Any]) -> None:
    policy, wrong = read_policy(_labels(row["labels"]), PodSecurityPolicy())
    pod = RECORDED["pods"][row["pod"]]

    enforced, warned = _told(policy.enforce, pod), _told(policy.warn, pod)

    assert not wrong
    assert row["created"] == (not enforced)
    assert row["told"].partition(" ")[2] == (enforced or warned)


def test_a_violation_is_403_and_a_template_is_only_warned_about(fresh_server: LiveServer) -> None:
    _namespace(fresh_server, "strict", enforce="restricted")
    pods, sets = "/api/v1/namespaces/strict/pods", "/apis/apps/v1/namespaces/strict/deployments"

    refused = fresh_server.request("POST", pods, RECORDED["pods"]["plain"])
    warned = fresh_server.request("POST", sets, RECORDED["pods"]["dep"])
    allowed = fresh_server.request("POST", pods, RECORDED["pods"]["good"])

    assert (refused.status, warned.status, allowed.status) == (403, 201, 201)
    assert 'violates PodSecurity "restricted:latest"' in refused.json["message"]
    assert 'would violate PodSecurity \\"restricted:latest\\"' in _warnings(warned)


def test_a_label_that_means_nothing_is_refused(fresh_server: LiveServer) -> None:
    answer = _namespace(fresh_server, "odd", enforce="strict")

    assert answer.status == 422
    assert "must be one of privileged, baseline, restricted" in answer.json["message"]


def test_raising_the_level_warns_of_pods_that_violate_it(fresh_server: LiveServer) -> None:
    _namespace(fresh_server, "later", enforce="privileged")
    for name in ("x", "y"):
        pod = RECORDED["pods"]["hostns"]
        body = {**pod, "metadata": {"name": name}}
        assert fresh_server.request("POST", "/api/v1/namespaces/later/pods", body).status == 201

    patch = {"metadata": {"labels": {PREFIX + "enforce": "baseline"}}}
    answer = fresh_server.request(
        "PATCH", "/api/v1/namespaces/later", patch, content_type="application/merge-patch+json"
    )

    assert answer.status == 200
    assert "x (and 1 other pod): host namespaces" in _warnings(answer)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"defaults": {"enforce": "x"}}, "defaults.enforce: must be one of"),
        ({"defaults": {"warn-version": "1.2"}}, 'defaults.warn: must be "latest" or "v1.x"'),
        ({"odd": 1}, 'unknown field "odd"'),
    ],
)
def test_a_configuration_that_cannot_be_used_says_why(document: dict[str, Any], why: str) -> None:
    head = {
        "apiVersion": "pod-security.admission.config.k8s.io/v1",
        "kind": "PodSecurityConfiguration",
    }
    with pytest.raises(BadPodSecurity, match=why):
        read_pod_security({**head, **document})


def _namespace(server: LiveServer, name: str, **labels: str) -> Any:
    marked = {PREFIX + mode: level for mode, level in labels.items()}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": marked}}
    return server.request("POST", "/api/v1/namespaces", body)


def _warnings(answer: Any) -> str:
    return " ".join(value for name, value in answer.headers if name.lower() == "warning")
