"""APIService objects: written by this server for its own groups, validated, shown, and kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from instar.server.registry.stored.make_entry import put_server_object
from instar.server.settings import AggregationSettings
from tests.aggregation.backend import Backend
from tests.aggregation.support import (
    APIS,
    add_service,
    api_service,
    condition,
    register,
    remote,
    wait_for,
)
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

_LABEL = "kube-aggregator.kubernetes.io/automanaged"
_MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def main() -> Iterator[LiveServer]:
    with live_server(bootstrap_objects=True) as server:
        yield server


def _crd(group: str, *versions: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[0],
                    "schema": {"openAPIV3Schema": schema},
                }
                for version in versions
            ],
        },
    }


def _get(main: LiveServer, name: str) -> dict[str, Any] | None:
    answer = main.request("GET", f"{APIS}/{name}")
    return answer.json if answer.status == 200 else None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"metadata": {"name": "wrong"}}, 'must be `spec.version+"."+spec.group`: "v1.g.io"'),
        ({"spec": {"groupPriorityMinimum": 0}}, "must be positive and less than 20000"),
        ({"spec": {"versionPriority": 1001}}, "must be positive and less than 1000"),
        ({"spec": {"caBundle": "aGk="}}, "local APIServices may not have a caBundle"),
        (
            {"spec": {"insecureSkipTLSVerify": True}},
            "local APIServices may not have insecureSkipTLSVerify",
        ),
        (
            {"spec": {"service": {"namespace": "n", "name": "s", "port": 70000}}},
            "port is not valid: must be between 1 and 65535, inclusive",
        ),
        ({"spec": {"service": {"namespace": "n"}}}, "Required value"),
    ],
)
def test_an_apiservice_is_validated(main: LiveServer, change: dict[str, Any], text: str) -> None:
    """Line 1."""
    obj = api_service("g.io")
    for part, members in change.items():
        obj[part] |= members

    answer = main.request("POST", APIS, obj)

    assert answer.status == 422
    assert text in answer.json["message"]


def test_the_port_and_the_status_are_defaulted_and_kept_apart(main: LiveServer) -> None:
    """Lines 2 and 3."""
    add_service(main)
    obj = api_service("parts.io", service={"namespace": "default", "name": "missing"})
    obj["status"] = {"conditions": [{"type": "Available", "status": "True"}]}

    made = main.request("POST", APIS, obj).json
    found = wait_for(main, "v1.parts.io", "False", "ServiceNotFound")

    assert made["spec"]["service"]["port"] == 443
    assert "status" not in made or not made["status"].get("conditions")
    assert found["message"] == 'service/missing in "default" is not present'


def test_the_table_shows_where_it_is_served_and_whether(main: LiveServer) -> None:
    """Line 4."""
    main.request("POST", APIS, api_service("table.io", service=remote(1, "missing")))
    wait_for(main, "v1.table.io", "False", "ServiceNotFound")
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    answer = main.request("GET", f"{APIS}/v1.table.io", headers=accept).json

    names = [column["name"] for column in answer["columnDefinitions"]]
    assert names == ["Name", "Service", "Available", "Age"]
    assert answer["rows"][0]["cells"][:3] == [
        "v1.table.io",
        "default/missing",
        "False (ServiceNotFound)",
    ]


def test_every_built_in_group_has_its_apiservice(main: LiveServer) -> None:
    """Line 5."""
    apps = eventually(lambda: _get(main, "v1.apps"))
    core = eventually(lambda: _get(main, "v1."))

    assert apps["metadata"]["labels"] == {_LABEL: "onstart"}
    assert apps["spec"]["groupPriorityMinimum"] == 17800
    assert core["spec"]["groupPriorityMinimum"] == 18000
    assert condition(main, "v1.apps")["reason"] == "Local"


def test_a_crd_has_an_apiservice_for_each_version(main: LiveServer) -> None:
    """Lines 5, 6 and 8."""
    main.create_crd(_crd("many.io", "v1", "v2"))
    found = [eventually(partial(_get, main, name)) for name in ("v1.many.io", "v2.many.io")]

    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.many.io"
    crd = main.request("GET", path).json
    crd["spec"]["versions"][1]["served"] = False
    main.request("PUT", path, crd)
    eventually(lambda: _get(main, "v2.many.io") is None)
    main.request("DELETE", path)
    eventually(lambda: _get(main, "v1.many.io") is None)

    for obj in found:
        assert obj["metadata"]["labels"] == {_LABEL: "true"}
        assert (obj["spec"]["groupPriorityMinimum"], obj["spec"]["versionPriority"]) == (1000, 100)


def test_a_labelled_apiservice_is_put_back(main: LiveServer) -> None:
    """Lines 6 and 7."""
    main.create_crd(_crd("kept.io", "v1"))
    eventually(lambda: _get(main, "v1.kept.io"))
    patch = {"spec": {"service": remote(1), "groupPriorityMinimum": 7}}

    main.request("PATCH", f"{APIS}/v1.kept.io", patch, content_type=_MERGE)

    def local() -> dict[str, Any] | None:
        obj = _get(main, "v1.kept.io")
        return None if obj is None or "service" in obj["spec"] else obj

    found = eventually(local)
    assert found["spec"]["groupPriorityMinimum"] == 1000
    assert main.request("GET", "/apis/kept.io/v1/widgets").status == 200


def test_without_the_label_it_is_its_owners_for_ever(main: LiveServer) -> None:
    """Lines 6, 7 and 8: a flip in one patch, and the CRD's end does not take it away."""
    main.create_crd(_crd("flip.io", "v1"))
    eventually(lambda: _get(main, "v1.flip.io"))
    with Backend() as backend:
        add_service(main)
        patch = {
            "metadata": {"labels": {_LABEL: None}},
            "spec": {"service": remote(backend.port), "caBundle": backend.ca_bundle},
        }
        main.request("PATCH", f"{APIS}/v1.flip.io", patch, content_type=_MERGE)
        wait_for(main, "v1.flip.io", "True", "Passed")
        remotely = main.request("GET", "/apis/flip.io/v1").json["resources"]
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.flip.io"
        main.request("DELETE", path)
        eventually(lambda: main.request("GET", path).status == 404)

        kept = _get(main, "v1.flip.io")

    assert [one["name"] for one in remotely] == ["things"]
    assert kept is not None
    assert "service" in kept["spec"]


def test_the_label_again_is_the_way_back(main: LiveServer) -> None:
    """Line 7, without the traps of kube-apiserver: the condition and discovery follow."""
    group = "back.io"
    main.create_crd(_crd(group, "v1"))
    eventually(lambda: _get(main, f"v1.{group}"))
    with Backend() as backend:
        add_service(main)
        leave = {
            "metadata": {"labels": {_LABEL: None}},
            "spec": {"service": remote(backend.port), "caBundle": backend.ca_bundle},
        }
        main.request("PATCH", f"{APIS}/v1.{group}", leave, content_type=_MERGE)
        wait_for(main, f"v1.{group}", "True", "Passed")

        back = {"metadata": {"labels": {_LABEL: "true"}}}
        main.request("PATCH", f"{APIS}/v1.{group}", back, content_type=_MERGE)
        wait_for(main, f"v1.{group}", "True", "Local")

    assert main.request("GET", f"/apis/{group}/v1/widgets").json["kind"] == "WidgetList"


def test_an_unchanged_condition_is_not_written(main: LiveServer) -> None:
    """Line 26."""
    with Backend() as backend:
        name = register(main, backend, "calm.io")
        before = _get(main, name)
        main.request("POST", "/api/v1/namespaces/default/services", _service("unrelated"))
        for turn in ("first", "second"):  # the second probe comes after the first one's result
            seen = len(backend.requests)
            touch = {"metadata": {"annotations": {"touched": turn}}}
            main.request(
                "PATCH", "/api/v1/namespaces/default/services/echo", touch, content_type=_MERGE
            )
            backend.wait_for(partial(_has_more_than, seen))

        after = _get(main, name)

    assert before is not None
    assert after is not None
    assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]


def _has_more_than(seen: int, came: Sequence[object]) -> bool:
    return len(came) > seen


def _service(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"ports": [{"port": 443}]},
    }


def test_a_ready_endpoint_is_dialled_where_the_operator_says_so() -> None:
    """Lines 19 and 25: EndpointSlices are followed."""
    settings = AggregationSettings(by_endpoints=True)
    with live_server(aggregation=settings) as main, Backend() as backend:
        ports = [{"name": "https", "port": 443}]
        add_service(main, type="ClusterIP", ports=ports)
        obj = api_service("slices.io", service=remote(443), caBundle=backend.ca_bundle)
        main.request("POST", APIS, obj)
        wait_for(main, "v1.slices.io", "False", "EndpointsNotFound")
        main.run(_store_slice(main, backend.port))
        wait_for(main, "v1.slices.io", "True", "Passed")
        assert main.request("GET", "/apis/slices.io/v1").status == 200


async def _store_slice(main: LiveServer, port: int) -> None:
    """Below the API, which refuses endpoints on loopback, as upstream's does."""
    machinery = main.running.machinery
    slices = machinery.catalog.builtin("discovery.k8s.io", "endpointslices")
    obj = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "echo-1",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "echo"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    await put_server_object(machinery.backend, slices, "default/echo-1", obj, 0)


def test_a_mapping_of_the_operator_needs_no_service() -> None:
    """Line 19."""
    with Backend() as backend:
        mapping = f"default/echo=127.0.0.1:{backend.port}"
        with live_server(services=(mapping,)) as main:
            obj = api_service("mapped.io", service=remote(443), caBundle=backend.ca_bundle)
            main.request("POST", APIS, obj)

            wait_for(main, "v1.mapped.io", "True", "Passed")
            assert main.request("GET", "/apis/mapped.io/v1").status == 200
