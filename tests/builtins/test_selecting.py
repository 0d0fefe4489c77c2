"""Field selectors of built-in kinds where the recordings are thin."""

from __future__ import annotations

from tests.support.server import LiveServer, live_server

EVENTS = "/api/v1/namespaces/default/events"


def names(server: LiveServer, path: str, selector: str) -> list[str]:
    answer = server.request("GET", f"{path}?fieldSelector={selector}")
    assert answer.status == 200, answer.text
    return [item["metadata"]["name"] for item in answer.json["items"]]


def test_events_are_selected_by_reporting_component() -> None:
    common = {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}}
    with live_server(storage="memory:") as server:
        for name, who in (
            ("old", {"source": {"component": "kubelet"}}),
            ("new", {"reportingComponent": "kubelet", "reportingInstance": "a"}),
            ("other", {"source": {"component": "scheduler"}}),
        ):
            body = {"metadata": {"name": name}, **common, **who}
            assert server.request("POST", EVENTS, body).status == 201

        assert names(server, EVENTS, "source=kubelet") == ["new", "old"]
        assert names(server, EVENTS, "source!=kubelet") == ["other"]
        assert names(server, EVENTS, "involvedObject.name=p,source=scheduler") == ["other"]


def test_unset_fields_have_the_zero_value_of_go() -> None:
    with live_server(storage="memory:") as server:
        server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        spec = {"containers": [{"name": "a", "image": "x:1"}]}
        pods = "/api/v1/namespaces/default/pods"
        server.request("POST", pods, {"metadata": {"name": "p"}, "spec": spec})

        assert names(server, "/api/v1/nodes", "spec.unschedulable=false") == ["n"]
        assert names(server, pods, "spec.hostNetwork=false,spec.nodeName=") == ["p"]
        refused = server.request("GET", f"{pods}?fieldSelector=spec.nothing=1")

    assert refused.status == 400
    assert refused.json["message"] == "field label not supported: spec.nothing"
