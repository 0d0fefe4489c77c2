"""What a cluster has from the start, and what quotas and limits do."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import pytest

from instar.base.json_values import Object
from instar.server.registry.controllers.bootstrap.writer import BootstrapWriter
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry
from tests.support.crds import crd, version
from tests.support.server import LiveServer, live_server

_QUOTAS = "/api/v1/namespaces/default/resourcequotas"
_MERGE = "application/merge-patch+json"
_MAPS = "/api/v1/namespaces/default/configmaps"


def _soon(holds: Callable[[], bool]) -> bool:
    """Objects and status follow in the background: there is no event a client could await."""
    until = time.monotonic() + 10.0
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return holds()


def _is_there(server: LiveServer, path: str) -> bool:
    return server.request("GET", path).status == 200


def test_a_new_namespace_gets_its_account_and_certificate_and_keeps_them() -> None:
    with live_server(storage="memory:", bootstrap_objects=True) as server:
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
        account = "/api/v1/namespaces/n/serviceaccounts/default"
        authority = "/api/v1/namespaces/n/configmaps/kube-root-ca.crt"

        assert _soon(lambda: _is_there(server, account) and _is_there(server, authority))
        told = server.request("GET", authority).json["data"]["ca.crt"]
        assert told == server.running.ca.decode()

        server.request("DELETE", account)
        assert _soon(lambda: _is_there(server, account))


def test_a_server_without_bootstrap_objects_is_bare() -> None:
    with live_server(storage="memory:", bootstrap_objects=False) as server:
        accounts = server.request("GET", "/api/v1/serviceaccounts").json["items"]

    assert accounts == []


def test_a_quota_counts_existing_objects_and_refuses_more_than_its_limit() -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "1"}}}
    with live_server(storage="memory:") as server:
        server.request("POST", _QUOTAS, quota)
        first = server.request("POST", _MAPS, {"metadata": {"name": "a"}})
        second = server.request("POST", _MAPS, {"metadata": {"name": "b"}})

        def used() -> object:
            status = server.request("GET", f"{_QUOTAS}/q").json.get("status") or {}
            return (status.get("used") or {}).get("count/configmaps")

        assert first.status == 201
        assert second.status == 403
        assert second.json["message"] == (
            'configmaps "b" is forbidden: exceeded quota: q, requested: count/configmaps=1, '
            "used: count/configmaps=1, limited: count/configmaps=1"
        )
        assert _soon(lambda: used() == "1")
        server.request("DELETE", f"{_MAPS}/a")
        assert _soon(lambda: used() == "0")


_APIS = "/apis/apiregistration.k8s.io/v1/apiservices"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"


def test_a_crd_has_an_api_service_as_long_as_it_is_served() -> None:
    with live_server(storage="memory:", bootstrap_objects=True) as server:
        server.create_crd(crd(version("v1"), version("v2", storage=False)))

        assert _soon(lambda: _is_there(server, f"{_APIS}/v2.example.com"))
        found = server.request("GET", f"{_APIS}/v1.example.com").json
        assert found["spec"]["groupPriorityMinimum"] == 1000
        assert found["status"]["conditions"][0]["reason"] == "Local"

        server.request("DELETE", f"{_APIS}/v1.example.com")
        assert _soon(lambda: _is_there(server, f"{_APIS}/v1.example.com"))

        server.request("DELETE", f"{_CRDS}/foos.example.com")
        assert _soon(lambda: not _is_there(server, f"{_APIS}/v1.example.com"))


def test_an_address_of_a_service_is_an_object_as_long_as_it_is_held() -> None:
    services = "/api/v1/namespaces/default/services"
    with live_server(storage="memory:", bootstrap_objects=True) as server:
        body = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
        made = server.request("POST", services, body).json
        path = f"{_ADDRESSES}/{made['spec']['clusterIP']}"

        assert _soon(lambda: _is_there(server, path))
        parent = server.request("GET", path).json["spec"]["parentRef"]
        assert parent == {"name": "s", "namespace": "default", "resource": "services"}

        server.request("DELETE", f"{services}/s")
        assert _soon(lambda: not _is_there(server, path))


def test_a_server_tells_that_it_is_there_and_how_clients_are_known() -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    maps = "/api/v1/namespaces/kube-system/configmaps"
    with live_server(storage="memory:", bootstrap_objects=True) as server:
        assert _soon(lambda: bool(server.request("GET", leases).json["items"]))
        [lease] = server.request("GET", leases).json["items"]
        path = f"{maps}/extension-apiserver-authentication"
        assert _soon(lambda: _is_there(server, path))
        told = server.request("GET", path).json["data"]["client-ca-file"]

        assert lease["metadata"]["name"].startswith("apiserver-")
        assert lease["spec"]["holderIdentity"].startswith(lease["metadata"]["name"])
        assert told == server.running.ca.decode()


def test_the_store_is_a_component_and_the_rest_is_down() -> None:
    path = "/api/v1/componentstatuses"
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    with live_server(storage="memory:") as server:
        shown = server.request("GET", path, headers=table)
        single = server.request("GET", f"{path}/etcd-0")
        absent = server.request("GET", f"{path}/none")

    assert [row["cells"][:2] for row in shown.json["rows"]] == [
        ["controller-manager", "Unhealthy"],
        ["scheduler", "Unhealthy"],
        ["etcd-0", "Healthy"],
    ]
    assert single.json["conditions"] == [{"type": "Healthy", "status": "True", "message": "ok"}]
    assert single.warnings == ['299 - "v1 ComponentStatus is deprecated in v1.19+"']
    assert absent.status == 404


def test_proxies_end_where_a_network_would_begin() -> None:
    services = "/api/v1/namespaces/default/services"
    with live_server(storage="memory:") as server:
        body = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
        server.request("POST", services, body)
        server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        answers = {
            path: (answer.status, answer.json["message"])
            for path in (
                f"{services}/https:s:80/proxy/a/b",
                f"{services}/s:81/proxy",
                f"{services}/none/proxy",
                f"{services}/a:b:c:d/proxy",
                "/api/v1/nodes/n/proxy/stats",
            )
            for answer in [server.request("GET", path)]
        }

    assert list(answers.values()) == [
        (503, 'no endpoints available for service "https:s:80"'),
        (503, 'no service port 81 found for service "s"'),
        (404, 'services "none" not found'),
        (400, 'invalid service request "a:b:c:d"'),
        (500, "no preferred addresses found; known addresses: []"),
    ]


def test_a_bound_claim_grows_where_its_class_allows_it() -> None:
    claims, merge = "/api/v1/namespaces/default/persistentvolumeclaims", _MERGE
    with live_server(storage="memory:") as server:
        for name, grows in (("fixed", False), ("elastic", True)):
            body = {"metadata": {"name": name}, "provisioner": "x", "allowVolumeExpansion": grows}
            server.request("POST", "/apis/storage.k8s.io/v1/storageclasses", body)
            spec = {
                "storageClassName": name,
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            }
            server.request("POST", claims, {"metadata": {"name": name}, "spec": spec})
            bound = {"status": {"phase": "Bound"}}
            server.request("PATCH", f"{claims}/{name}/status", bound, content_type=merge)
        larger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        refused = server.request("PATCH", f"{claims}/fixed", larger, content_type=merge)
        grown = server.request("PATCH", f"{claims}/elastic", larger, content_type=merge)

    assert refused.status == 403
    assert refused.json["message"].endswith("the pvc must support resize")
    assert grown.json["spec"]["resources"]["requests"]["storage"] == "2Gi"


def test_the_lower_end_of_a_range_is_left_to_explicit_requests() -> None:
    services = "/api/v1/namespaces/default/services"
    spec = {"type": "NodePort", "ports": [{"port": 80}]}
    with live_server(storage="memory:") as server:
        made = [
            server.request("POST", services, {"metadata": {"name": f"s{number}"}, "spec": spec})
            for number in range(30)
        ]

    assert all(int(one.json["spec"]["clusterIP"].rpartition(".")[2]) >= 16 for one in made)
    assert all(one.json["spec"]["ports"][0]["nodePort"] >= 30086 for one in made)


def test_a_status_that_another_controller_wrote_first_is_kept_without_a_retry(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write = BootstrapWriter.rewrite
    overtaken: list[str] = []

    async def after_another(
        self: BootstrapWriter, resource: Resource, entry: CacheEntry, obj: Object
    ) -> None:
        if obj["kind"] == "APIService" and entry.suffix not in overtaken:
            overtaken.append(entry.suffix)
            await write(self, resource, entry, obj)
        await write(self, resource, entry, obj)

    monkeypatch.setattr(BootstrapWriter, "rewrite", after_another)
    path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps"
    with (
        caplog.at_level(logging.INFO),
        live_server(storage="memory:", bootstrap_objects=True) as server,
    ):
        assert _soon(lambda: _is_there(server, path))
        assert _soon(lambda: "v1.storage.k8s.io" in overtaken)

        conditions = server.request("GET", path).json["status"]["conditions"]

    assert [each["type"] for each in conditions] == ["Available"]
    assert [each.message for each in caplog.records if "bootstrap objects" in each.message] == []
