"""Discovery and OpenAPI of this server with those of backends in them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.server.aggregation import remote_documents
from tests.aggregation.backend import AGGREGATED, Arrived, Backend, Wire, discovery
from tests.aggregation.support import APIS, add_service, api_service, register, remote, wait_for
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

_MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def main() -> Iterator[LiveServer]:
    with live_server() as server:
        yield server


def _aggregated(main: LiveServer) -> dict[str, dict[str, Any]]:
    """Group version → entry, of the aggregated document."""
    answer = main.request("GET", "/apis", headers={"Accept": AGGREGATED})
    return {
        f"{group['metadata']['name']}/{version['version']}": version
        for group in answer.json["items"]
        for version in group["versions"]
    }


def _entry(main: LiveServer, name: str, freshness: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found = _aggregated(main).get(name)
        return found if found and found["freshness"] == freshness else None

    return eventually(look)


class _Modern:
    """A backend with aggregated discovery and OpenAPI of ``group``, and more than that."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.version = "v1"
        self.resource = "things"
        self.etag = '"one"'
        self.broken = threading.Event()

    def __call__(self, arrived: Arrived, wire: Wire) -> None:
        if self.broken.is_set():
            wire.reply(503, b"", "text/plain")
        elif arrived.path == "/apis":
            self._discovery(arrived, wire)
        elif arrived.path == "/openapi/v2":
            wire.reply(200, self._swagger())
        elif arrived.path == "/openapi/v3":
            paths = (f"apis/{self.group}/v1", "apis/apps/v1", "api/v1", "apis/foreign.io/v1")
            told = {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash=ABC"} for path in paths}
            wire.reply(200, {"paths": told})
        elif arrived.path.startswith("/openapi/v3/"):
            wire.reply(200, {"openapi": "3.0.0", "by": arrived.one("X-Remote-User")})
        else:
            discovery(arrived, wire)

    def _discovery(self, arrived: Arrived, wire: Wire) -> None:
        if arrived.one("If-None-Match") == self.etag:
            wire.reply(304, b"", "")
            return
        groups = [(self.group, self.version), ("foreign.io", "v1")]
        items = [
            {
                "metadata": {"name": name},
                "versions": [
                    {
                        "version": version,
                        "freshness": "Current",
                        "resources": [
                            {
                                "resource": self.resource,
                                "scope": "Namespaced",
                                "singularResource": "thing",
                                "verbs": ["get", "list"],
                                "shortNames": ["th"],
                                "unknown": {"of": "the future"},
                            }
                        ],
                    }
                ],
            }
            for name, version in groups
        ]
        wire.reply(
            200, {"kind": "APIGroupDiscoveryList", "items": items}, AGGREGATED, ETag=self.etag
        )

    def _swagger(self) -> dict[str, Any]:
        def path(model: str) -> dict[str, Any]:
            schema = {"$ref": f"#/definitions/{model}"}
            return {"get": {"responses": {"200": {"description": "OK", "schema": schema}}}}

        status = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
        meta = {"$ref": f"#/definitions/{status}"}
        return {
            "swagger": "2.0",
            "paths": {
                f"/apis/{self.group}/v1/things": path("org.Thing"),
                "/apis/foreign.io/v1/others": path("org.Other"),
                "/api/v1/pods": path("org.Other"),
            },
            "definitions": {
                "org.Thing": {"type": "object", "properties": {"status": meta}},
                "org.Other": {"type": "object"},
                status: {"type": "object", "description": "another one"},
            },
        }


@pytest.fixture(scope="module")
def modern(main: LiveServer) -> Iterator[_Modern]:
    script = _Modern("modern.example.com")
    with Backend(script) as backend:
        register(main, backend, script.group)
        script.backend = backend  # type: ignore[attr-defined]
        _entry(main, f"{script.group}/v1", "Current")
        yield script


def test_the_group_is_made_of_the_apiservices(main: LiveServer, modern: _Modern) -> None:
    """Line 10."""
    answer = main.request("GET", f"/apis/{modern.group}")

    version = {"groupVersion": f"{modern.group}/v1", "version": "v1"}
    assert answer.json == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": modern.group,
        "versions": [version],
        "preferredVersion": version,
    }


def test_groups_are_listed_by_priority(main: LiveServer) -> None:
    """Lines 10 and 11: also where the backend is not there."""
    add_service(main)
    for name, version, priority, among in (
        ("low.example.com", "v1", 5, 10),
        ("high.example.com", "v1beta1", 19000, 10),
        ("high.example.com", "v2", 17, 10),
        ("high.example.com", "v1", 17, 100),
    ):
        obj = api_service(name, version, service=remote(1))
        obj["spec"] |= {"groupPriorityMinimum": priority, "versionPriority": among}
        assert main.request("POST", APIS, obj).status == 201

    listed = main.request("GET", "/apis").json["groups"]

    names = [group["name"] for group in listed]
    assert names.index("apiregistration.k8s.io") == 0
    assert names.index("high.example.com") < names.index("apps") < names.index("low.example.com")
    high = next(group for group in listed if group["name"] == "high.example.com")
    assert [one["version"] for one in high["versions"]] == ["v1", "v2", "v1beta1"]
    assert high["preferredVersion"]["version"] == "v1"


def test_a_backend_is_asked_as_upstream_asks(main: LiveServer, modern: _Modern) -> None:
    """Lines 25 and 30."""
    backend: Backend = modern.backend  # type: ignore[attr-defined]
    asked = backend.last("/apis")
    probe = backend.last(f"/apis/{modern.group}/v1")

    assert asked.all("X-Remote-User") == ["system:kube-aggregator"]
    assert asked.all("X-Remote-Group") == ["system:masters"]
    assert (asked.one("Accept") or "").startswith(AGGREGATED)
    assert probe.all("X-Remote-Group") == ["system:masters"]
    assert probe.one("Accept") is None
    assert backend.last("/openapi/v2").all("X-Remote-User") == ["system:aggregator"]
    assert backend.last("/openapi/v2").all("X-Remote-Group") == []


def test_one_version_is_cut_out_of_the_document(main: LiveServer, modern: _Modern) -> None:
    """Lines 30 and 34."""
    found = _aggregated(main)

    (resource,) = found[f"{modern.group}/v1"]["resources"]
    assert resource == {
        "resource": "things",
        "responseKind": {"group": "", "version": "", "kind": ""},
        "scope": "Namespaced",
        "singularResource": "thing",
        "verbs": ["get", "list"],
        "shortNames": ["th"],
    }
    assert "foreign.io/v1" not in found


def test_a_failing_backend_leaves_a_stale_entry(main: LiveServer) -> None:
    """Line 31, and back."""
    script = _Modern("stale.example.com")
    with Backend(script) as backend:
        name = register(main, backend, script.group)
        _entry(main, f"{script.group}/v1", "Current")
        script.broken.set()
        main.request("PATCH", f"{APIS}/{name}", _priority(99), content_type=_MERGE)

        gone = _entry(main, f"{script.group}/v1", "Stale")
        script.broken.clear()
        main.request("PATCH", f"{APIS}/{name}", _priority(98), content_type=_MERGE)
        back = _entry(main, f"{script.group}/v1", "Current")

    assert gone == {"version": "v1", "freshness": "Stale"}
    assert back["resources"]


def _priority(value: int) -> dict[str, Any]:
    return {"spec": {"versionPriority": value}}


def test_a_version_that_the_backend_does_not_tell_is_empty_and_current(main: LiveServer) -> None:
    """Line 32."""
    script = _Modern("silent.example.com")
    script.version = "v9"
    with Backend(script) as backend:
        register(main, backend, script.group)

        found = _entry(main, f"{script.group}/v1", "Current")

    assert found == {"version": "v1", "freshness": "Current"}


def test_an_old_backend_is_asked_for_each_group_version(main: LiveServer) -> None:
    """Line 30: legacy discovery."""
    with Backend() as backend:
        register(main, backend, "old.example.com")

        found = _entry(main, "old.example.com/v1", "Current")
        asked = [
            one for one in backend.requests if one.one("Accept") == "application/json"
            and one.path.startswith("/apis/")
        ]  # fmt: skip

    assert [one["resource"] for one in found["resources"]] == ["things"]
    assert found["resources"][0]["responseKind"]["kind"] == "Thing"
    assert asked[0].all("X-Remote-Group") == []


def test_the_remote_entry_hides_the_crd_and_goes_with_the_apiservice(main: LiveServer) -> None:
    """Line 33: what is remote comes first, and nothing of it sticks."""
    script = _Modern("both.example.com")
    main.create_crd(_crd(script.group))
    with Backend(script) as backend:
        name = register(main, backend, script.group)
        remotely = eventually(lambda: _names(main, script.group) == ["things"])
        main.request("DELETE", f"{APIS}/{name}")
        locally = eventually(lambda: _names(main, script.group) == ["widgets"])

    assert remotely
    assert locally
    index = main.request("GET", "/openapi/v3").json["paths"]
    assert "hash=ABC" not in index[f"apis/{script.group}/v1"]["serverRelativeURL"]
    document = main.request("GET", "/openapi/v2").json
    assert f"/apis/{script.group}/v1/things" not in document["paths"]


def _names(main: LiveServer, group: str) -> list[str]:
    found = _aggregated(main).get(f"{group}/v1", {})
    return [one["resource"] for one in found.get("resources") or ()]


def _crd(group: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
        },
    }


@pytest.mark.parametrize(
    "body",
    [
        b"no JSON",
        b"[]",
        b'{"items": 5}',
        b'{"items": [{"metadata": {"name": 5}, "versions": [{"version": "v1"}]}]}',
        b'{"items": [{"metadata": {"name": "nonsense.example.com"}, "versions": '
        b'[{"version": "v1", "resources": [{"resource": ["x"]}]}]}]}',
    ],
)
def test_nonsense_of_a_backend_spoils_nothing(main: LiveServer, body: bytes) -> None:
    """A backend that lies is stale; the others are shown."""

    def script(arrived: Arrived, wire: Wire) -> None:
        if arrived.path in ("/apis", "/openapi/v2", "/openapi/v3"):
            wire.reply(200, body, AGGREGATED if arrived.path == "/apis" else "application/json")
        else:
            discovery(arrived, wire)

    with Backend(script) as backend:
        name = register(main, backend, "nonsense.example.com")
        backend.wait_for(lambda came: [one for one in came if one.path == "/openapi/v2"])

        assert _aggregated(main)["nonsense.example.com/v1"]["freshness"] == "Stale"
        assert main.request("GET", "/openapi/v2").status == 200
        assert main.request("GET", "/openapi/v3").status == 200
        main.request("DELETE", f"{APIS}/{name}")


def test_a_backend_that_hangs_delays_nothing(main: LiveServer) -> None:
    release = threading.Event()

    def script(arrived: Arrived, wire: Wire) -> None:
        release.wait(20)

    with Backend(script) as backend:
        obj = api_service("hangs.example.com", service=remote(backend.port))
        obj["spec"]["insecureSkipTLSVerify"] = True
        main.request("POST", APIS, obj)
        backend.wait_for(lambda came: len(came) >= 5)

        answers = [
            main.request("GET", path).status
            for path in (
                "/apis",
                "/openapi/v2",
                "/openapi/v3",
                "/apis/hangs.example.com",
                "/readyz",
            )
        ]
        here = main.request("GET", "/apis/hangs.example.com/v1/things")
        release.set()
        main.request("DELETE", f"{APIS}/v1.hangs.example.com")

    assert answers == [200] * 5
    assert (here.status, here.text) == (503, "service unavailable\n")


def test_openapi_v3_has_only_the_key_that_is_routed(main: LiveServer, modern: _Modern) -> None:
    """Line 36."""
    key = f"apis/{modern.group}/v1"

    paths = eventually(
        lambda: (
            (found := main.request("GET", "/openapi/v3").json["paths"]) and key in found and found
        )
    )

    assert paths[key] == {"serverRelativeURL": f"/openapi/v3/{key}?hash=ABC"}
    assert "hash=ABC" not in paths["apis/apps/v1"]["serverRelativeURL"]
    assert "apis/foreign.io/v1" not in paths
    document = main.request("GET", f"/openapi/v3/{key}?hash=ABC", headers={"X-Remote-User": "x"})
    assert document.json["by"] == "kubernetes-admin", "asked as the caller"


def test_openapi_v2_has_the_paths_of_the_route_and_what_they_need(
    main: LiveServer, modern: _Modern
) -> None:
    """Line 35."""
    status = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"

    document = eventually(
        lambda: (
            (found := main.request("GET", "/openapi/v2").json)
            and f"/apis/{modern.group}/v1/things" in found["paths"]
            and found
        )
    )

    definitions = document["definitions"]
    assert "/apis/foreign.io/v1/others" not in document["paths"]
    assert "/api/v1/pods" in document["paths"]
    assert "org.Other" not in definitions
    renamed = definitions["org.Thing"]["properties"]["status"]["$ref"]
    assert renamed == f"#/definitions/{status}_v2"
    assert definitions[f"{status}_v2"]["description"] == "another one"
    assert definitions[status]["description"] != "another one"


def test_a_route_that_begins_as_a_local_one_gets_its_openapi(main: LiveServer) -> None:
    """Line 37: kube-apiserver never fetches it."""
    script = _Modern("flipped.example.com")
    main.request("POST", APIS, api_service(script.group))
    wait_for(main, f"v1.{script.group}", "True", "Local")
    with Backend(script) as backend:
        add_service(main)
        patch = {"spec": {"service": remote(backend.port), "caBundle": backend.ca_bundle}}
        main.request("PATCH", f"{APIS}/v1.{script.group}", patch, content_type=_MERGE)

        path = f"/apis/{script.group}/v1/things"
        found = eventually(lambda: path in main.request("GET", "/openapi/v2").json["paths"])

    assert found


def test_a_backend_without_openapi_v3_is_converted(main: LiveServer) -> None:
    """Line 36."""
    script = _Modern("swagger.example.com")

    def older(arrived: Arrived, wire: Wire) -> None:
        if arrived.path == "/openapi/v3":
            wire.reply(404, b"", "text/plain")
        else:
            script(arrived, wire)

    key = f"apis/{script.group}/v1"
    with Backend(older) as backend:
        register(main, backend, script.group)
        eventually(lambda: key in main.request("GET", "/openapi/v3").json["paths"])
        document = main.request("GET", f"/openapi/v3/{key}").json

    answer = document["paths"][f"/{key}/things"]["get"]["responses"]["200"]
    assert document["openapi"] == "3.0.0"
    assert answer["description"] == "OK"
    assert "org.Thing" in document["components"]["schemas"]
    assert "#/definitions/" not in json.dumps(document)


def test_metrics_tell_which_apis_are_unavailable(main: LiveServer, modern: _Modern) -> None:
    """Line 39."""
    add_service(main, "nobody", type="ClusterIP", ports=[{"port": 443}])
    obj = api_service("dark.example.com", service=remote(443, "nobody"))
    main.request("POST", APIS, obj)
    wait_for(main, "v1.dark.example.com", "False", "EndpointsNotFound")

    text = main.request("GET", "/metrics").text

    assert 'aggregator_unavailable_apiservice{name="v1.dark.example.com"} 1' in text
    assert f'aggregator_unavailable_apiservice{{name="v1.{modern.group}"}} 0' in text
    assert "aggregator_discovery_aggregation_count_total" in text


def test_readiness_names_the_first_round_of_discovery(main: LiveServer) -> None:
    """Line 38."""
    answer = main.request("GET", "/readyz/poststarthook/apiservice-discovery-controller")

    assert (answer.status, answer.text) == (200, "ok")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["items", "metadata", "name", "versions", "version", "resources", "verbs"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(_JSON)
def test_any_document_is_read_or_refused(value: Any) -> None:
    try:
        found = remote_documents.read_aggregated(json.dumps(value).encode())
    except ValueError:
        return
    assert all(isinstance(part, str) for key in found for part in key)
