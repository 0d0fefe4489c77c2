"""Discovery documents of this server with the groups of backends in them."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.server.aggregation import remote_documents
from tests.aggregation.backend import AGGREGATED, Arrived, Backend, Wire, discovery
from tests.aggregation.modern import Modern, aggregated, entry
from tests.aggregation.support import APIS, add_service, api_service, register, remote, wait_for
from tests.support.server import LiveServer
from tests.support.waiting import eventually

_MERGE = "application/merge-patch+json"


def test_the_group_is_made_of_the_apiservices(main: LiveServer, modern: Modern) -> None:
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


def test_a_backend_is_asked_as_upstream_asks(main: LiveServer, modern: Modern) -> None:
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


def test_one_version_is_cut_out_of_the_document(main: LiveServer, modern: Modern) -> None:
    """Lines 30 and 34."""
    found = aggregated(main)

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


def test_a_failing_backend_leaves_a_staleentry(main: LiveServer) -> None:
    """Line 31, and back."""
    script = Modern("stale.example.com")
    with Backend(script) as backend:
        name = register(main, backend, script.group)
        entry(main, f"{script.group}/v1", "Current")
        script.broken.set()
        main.request("PATCH", f"{APIS}/{name}", _priority(99), content_type=_MERGE)

        gone = entry(main, f"{script.group}/v1", "Stale")
        script.broken.clear()
        main.request("PATCH", f"{APIS}/{name}", _priority(98), content_type=_MERGE)
        back = entry(main, f"{script.group}/v1", "Current")

    assert gone == {"version": "v1", "freshness": "Stale"}
    assert back["resources"]


def _priority(value: int) -> dict[str, Any]:
    return {"spec": {"versionPriority": value}}


def test_a_version_that_the_backend_does_not_tell_is_empty_and_current(main: LiveServer) -> None:
    """Line 32."""
    script = Modern("silent.example.com")
    script.version = "v9"
    with Backend(script) as backend:
        register(main, backend, script.group)

        found = entry(main, f"{script.group}/v1", "Current")

    assert found == {"version": "v1", "freshness": "Current"}


def test_an_old_backend_is_asked_for_each_group_version(main: LiveServer) -> None:
    """Line 30: legacy discovery."""
    with Backend() as backend:
        register(main, backend, "old.example.com")

        found = entry(main, "old.example.com/v1", "Current")
        asked = [
            one for one in backend.requests if one.one("Accept") == "application/json"
            and one.path.startswith("/apis/")
        ]  # fmt: skip

    assert [one["resource"] for one in found["resources"]] == ["things"]
    assert found["resources"][0]["responseKind"]["kind"] == "Thing"
    assert asked[0].all("X-Remote-Group") == []


def test_the_remote_entry_hides_the_crd_and_goes_with_the_apiservice(main: LiveServer) -> None:
    """Line 33: what is remote comes first, and nothing of it sticks."""
    script = Modern("both.example.com")
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
    found = aggregated(main).get(f"{group}/v1", {})
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

        assert aggregated(main)["nonsense.example.com/v1"]["freshness"] == "Stale"
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


def test_metrics_tell_which_apis_are_unavailable(main: LiveServer, modern: Modern) -> None:
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
