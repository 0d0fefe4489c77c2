"""Priority and fairness over HTTP: headers, debug pages, metrics and the condition Dangling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

API = "/apis/flowcontrol.apiserver.k8s.io/v1"
DUMPS = "/debug/api_priority_and_fairness/dump_"


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    tokens: Path = tmp_path_factory.mktemp("tokens") / "tokens.csv"
    tokens.write_text("ann-token,ann,1\nbob-token,bob,2\n")
    with live_server(token_file=tokens, bootstrap_objects=True) as server:
        last = f"{API}/flowschemas/catch-all"
        eventually(lambda: server.request("GET", last).status == 200)
        yield server


def _uids(server: LiveServer, schema: str, level: str) -> tuple[str, str]:
    found = [
        server.request("GET", f"{API}/{path}").json["metadata"]["uid"]
        for path in (f"flowschemas/{schema}", f"prioritylevelconfigurations/{level}")
    ]
    return found[0], found[1]


def _headers(server: LiveServer, path: str, token: str = "") -> tuple[str | None, str | None]:
    answer = server.request("GET", path, token=token)
    names = ("x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid")
    found = [answer.header(name) for name in names]
    return found[0], found[1]


def _schema(name: str, user: str, level: str) -> dict[str, Any]:
    rule = {
        "subjects": [{"kind": "User", "user": {"name": user}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": 50,
            "priorityLevelConfiguration": {"name": level},
            "rules": [rule],
        },
    }


def test_headers_name_the_objects_that_matched(flows: LiveServer) -> None:
    assert _headers(flows, "/api/v1/namespaces") == _uids(flows, "exempt", "exempt")
    assert _headers(flows, "/readyz", "ann-token") == _uids(flows, "probes", "exempt")
    of_ann = _uids(flows, "global-default", "global-default")
    assert _headers(flows, "/version", "ann-token") == of_ann
    forbidden = "/api/v1/namespaces"
    assert flows.request("GET", forbidden, token="ann-token").status == 403
    assert _headers(flows, forbidden, "ann-token") == of_ann


def test_a_request_without_identity_has_no_such_headers(flows: LiveServer) -> None:
    assert flows.request("GET", "/version", token="wrong").status == 401
    assert _headers(flows, "/version", "wrong") == (None, None)


def test_a_new_schema_counts_for_the_next_request(flows: LiveServer) -> None:
    made = flows.request("POST", f"{API}/flowschemas", _schema("of-bob", "bob", "workload-low"))
    assert made.status == 201, made.text

    found = _headers(flows, "/version", "bob-token")

    assert found == _uids(flows, "of-bob", "workload-low")
    flows.request("DELETE", f"{API}/flowschemas/of-bob")
    assert _headers(flows, "/version", "bob-token")[0] != found[0]


def test_a_schema_says_whether_its_level_exists(flows: LiveServer) -> None:
    flows.request("POST", f"{API}/flowschemas", _schema("dangling", "carl", "later"))
    level = {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "later"},
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
    }

    def condition() -> tuple[str, str]:
        found = flows.request("GET", f"{API}/flowschemas/dangling").json
        [only] = (found.get("status") or {}).get("conditions") or [{}]
        return only.get("status", ""), only.get("reason", "")

    eventually(lambda: condition() == ("True", "NotFound"))
    made = flows.request("POST", f"{API}/prioritylevelconfigurations", level)
    assert made.status == 201, made.text
    eventually(lambda: condition() == ("False", "Found"))


def test_debug_pages_are_tables_for_administrators(flows: LiveServer) -> None:
    for page, columns in (("priority_levels", 10), ("queues", 9), ("requests", 10)):
        answer = flows.request("GET", DUMPS + page)
        assert answer.status == 200
        lines = answer.text.splitlines()
        assert all(line.count(",") == columns - 1 for line in lines), lines[:3]
        assert flows.request("GET", DUMPS + page, token="ann-token").status == 403
    assert flows.request("GET", DUMPS + "nothing").status == 404


def test_metrics_count_dispatched_requests_by_schema(flows: LiveServer) -> None:
    flows.request("GET", "/version", token="ann-token")

    text = flows.request("GET", "/metrics").text

    labels = '{priority_level="global-default",flow_schema="global-default"}'
    [line] = [each for each in text.splitlines() if each.startswith(_DISPATCHED + labels)]
    assert int(line.rpartition(" ")[2]) >= 1
    assert 'apiserver_flowcontrol_nominal_limit_seats{priority_level="system"} ' in text


_DISPATCHED = "apiserver_flowcontrol_dispatched_requests_total"
