"""The events of "Writing, reading, and updating versioned CustomResourceDefinition objects".

Each test is one sentence of that document, looked at from both sides: the stored bytes, and what
clients see. The CRDs are the document's own crontabs, in both generations of the CRD API.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from instar.base.json_values import Object
from tests.support import crds
from tests.support.server import LiveServer, live_server

GROUP = "stable.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = f"{CRDS}/crontabs.{GROUP}"
MERGE = "application/merge-patch+json"
PRIORITY = [
    "v10",
    "v2",
    "v1",
    "v11beta2",
    "v10beta3",
    "v3beta1",
    "v12alpha1",
    "v11alpha2",
    "foo1",
    "foo10",
]
SCHEMA = {
    "openAPIV3Schema": {
        "type": "object",
        "properties": {"host": {"type": "string"}, "port": {"type": "string"}},
    }
}


def version(name: str, *, storage: bool, served: bool = True) -> Object:
    return crds.version(name, SCHEMA["openAPIV3Schema"], served=served, storage=storage)


def crontabs(*versions: Object, group: str = GROUP) -> Object:
    names = {"singular": "crontab", "shortNames": ["ct"]}
    return crds.crd(*versions, group=group, plural="crontabs", kind="CronTab", names=names)


def path(at: str, name: str = "") -> str:
    collection = f"/apis/{GROUP}/{at}/namespaces/default/crontabs"
    return f"{collection}/{name}" if name else collection


def stored_at(server: LiveServer, name: str) -> str:
    api_version: str = server.stored(f"{GROUP}/crontabs/default/{name}")["apiVersion"]
    return api_version.removeprefix(f"{GROUP}/")


def create(server: LiveServer, at: str, name: str) -> Object:
    body = {
        "apiVersion": f"{GROUP}/{at}",
        "kind": "CronTab",
        "metadata": {"name": name},
        "host": "localhost",
        "port": "8080",
    }
    answer = server.request("POST", path(at), body)
    assert answer.status == 201, answer.text
    created: Object = answer.json
    return created


def get(server: LiveServer, at: str, name: str) -> Object:
    answer = server.request("GET", path(at, name))
    assert answer.status == 200, answer.text
    found: Object = answer.json
    return found


def set_versions(server: LiveServer, *versions: Object) -> Object:
    patch = {"spec": {"versions": list(versions)}}
    answer = server.request("PATCH", CRD, patch, content_type=MERGE)
    assert answer.status == 200, answer.text
    changed: Object = answer.json
    return changed


def move_storage_to_v1(server: LiveServer) -> Object:
    return set_versions(server, version("v1beta1", storage=False), version("v1", storage=True))


@pytest.fixture
def begun() -> Iterator[LiveServer]:
    """Event 1 has happened: v1beta1 is the storage version, and ``first`` was created."""
    with live_server() as server:
        server.create_crd(crontabs(version("v1beta1", storage=True)))
        create(server, "v1beta1", "first")
        yield server


def test_1_an_object_is_persisted_at_the_storage_version(begun: LiveServer) -> None:
    assert stored_at(begun, "first") == "v1beta1"
    assert begun.request("GET", CRD).json["status"]["storedVersions"] == ["v1beta1"]


def test_2_a_new_storage_version_touches_no_object(begun: LiveServer) -> None:
    before = begun.stored(f"{GROUP}/crontabs/default/first")
    changed = move_storage_to_v1(begun)
    assert changed["status"]["storedVersions"] == ["v1beta1", "v1"]
    assert begun.stored(f"{GROUP}/crontabs/default/first") == before


def test_3_reads_at_both_versions_differ_in_apiversion_only(begun: LiveServer) -> None:
    move_storage_to_v1(begun)
    before = begun.stored(f"{GROUP}/crontabs/default/first")
    beta, current = get(begun, "v1beta1", "first"), get(begun, "v1", "first")
    assert beta["apiVersion"] == f"{GROUP}/v1beta1"
    assert current["apiVersion"] == f"{GROUP}/v1"
    assert {**beta, "apiVersion": ""} == {**current, "apiVersion": ""}
    assert begun.stored(f"{GROUP}/crontabs/default/first") == before


def test_4_a_new_object_is_persisted_at_the_new_storage_version(begun: LiveServer) -> None:
    move_storage_to_v1(begun)
    create(begun, "v1", "second")
    create(begun, "v1beta1", "third")
    stored = {name: stored_at(begun, name) for name in ("first", "second", "third")}
    assert stored == {"first": "v1beta1", "second": "v1", "third": "v1"}
    for at in ("v1beta1", "v1"):
        items = begun.request("GET", path(at)).json["items"]
        assert [item["metadata"]["name"] for item in items] == ["first", "second", "third"]
        assert {item["apiVersion"] for item in items} == {f"{GROUP}/{at}"}


@pytest.mark.parametrize("at", ["v1beta1", "v1"])
def test_5_an_update_rewrites_at_the_current_storage_version(begun: LiveServer, at: str) -> None:
    move_storage_to_v1(begun)
    obj = get(begun, at, "first")
    answer = begun.request("PUT", path(at, "first"), obj)
    assert answer.status == 200, answer.text
    assert stored_at(begun, "first") == "v1"
    assert answer.json["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]
    again = begun.request("PUT", path(at, "first"), answer.json)
    assert again.json["metadata"]["resourceVersion"] == answer.json["metadata"]["resourceVersion"]


def test_an_object_at_a_version_no_longer_served_stays_readable(begun: LiveServer) -> None:
    set_versions(
        begun,
        version("v1beta1", storage=False, served=False),
        version("v1", storage=True),
    )
    assert stored_at(begun, "first") == "v1beta1"
    assert begun.request("GET", path("v1beta1", "first")).status == 404
    assert get(begun, "v1", "first")["host"] == "localhost"


def test_a_stored_version_cannot_be_dropped_before_the_upgrade(begun: LiveServer) -> None:
    move_storage_to_v1(begun)
    patch = {"spec": {"versions": [version("v1", storage=True)]}}
    refused = begun.request("PATCH", CRD, patch, content_type=MERGE)
    assert refused.status == 422
    assert "v1beta1 was previously a storage version" in refused.json["message"]


def test_the_upgrade_procedure(begun: LiveServer) -> None:
    for number in range(5):
        create(begun, "v1beta1", f"more-{number}")
    assert move_storage_to_v1(begun)["status"]["storedVersions"] == ["v1beta1", "v1"]

    listed = begun.request("GET", path("v1")).json["items"]
    for obj in listed:
        assert begun.request("PUT", path("v1", obj["metadata"]["name"]), obj).status == 200
    assert {stored_at(begun, obj["metadata"]["name"]) for obj in listed} == {"v1"}

    status = {"status": {"storedVersions": ["v1"]}}
    answer = begun.request("PATCH", f"{CRD}/status", status, content_type=MERGE)
    assert answer.status == 200, answer.text
    assert answer.json["status"]["storedVersions"] == ["v1"]
    assert set_versions(begun, version("v1", storage=True))["spec"]["versions"][0]["name"] == "v1"
    assert begun.request("GET", path("v1beta1", "first")).status == 404
    assert get(begun, "v1", "first")["port"] == "8080"


def test_versions_are_offered_by_priority(server: LiveServer) -> None:
    group = "priority.example.com"
    shuffled = sorted(PRIORITY)
    crd = crontabs(*(version(name, storage=name == "foo1") for name in shuffled), group=group)
    server.create_crd(crd)
    found = server.request("GET", f"/apis/{group}").json
    assert [item["version"] for item in found["versions"]] == PRIORITY
    assert found["preferredVersion"]["version"] == "v10"
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups = server.request("GET", "/apis", headers={"Accept": accept}).json["items"]
    (mine,) = [item for item in groups if item["metadata"]["name"] == group]
    assert [item["version"] for item in mine["versions"]] == PRIORITY


def test_the_v1beta1_document_creates_the_same_resource(server: LiveServer) -> None:
    """The CRD of the older page: no schema, ``versions`` without ``version``."""
    group = "older.example.com"
    crd = copy.deepcopy(crontabs(group=group))
    crd["apiVersion"] = "apiextensions.k8s.io/v1beta1"
    crd["spec"]["versions"] = [
        {"name": "v1beta1", "served": True, "storage": True},
        {"name": "v1", "served": True, "storage": False},
    ]
    created = server.create_crd(crd)
    assert created["spec"]["version"] == "v1beta1"
    body = {
        "apiVersion": f"{group}/v1",
        "kind": "CronTab",
        "metadata": {"name": "a"},
        "anything": {"goes": [1, 2]},
    }
    collection = f"/apis/{group}/v1/namespaces/default/crontabs"
    assert server.request("POST", collection, body).status == 201
    stored = server.stored(f"{group}/crontabs/default/a")
    assert (stored["apiVersion"], stored["anything"]) == (f"{group}/v1beta1", {"goes": [1, 2]})
    found = server.request("GET", f"/apis/{group}").json
    assert [item["version"] for item in found["versions"]] == ["v1", "v1beta1"]
    as_v1 = server.request("GET", f"{CRDS}/crontabs.{group}").json
    assert as_v1["spec"]["preserveUnknownFields"] is True
    stored_crd = server.stored(f"apiextensions.k8s.io/customresourcedefinitions/crontabs.{group}")
    assert stored_crd["apiVersion"] == "apiextensions.k8s.io/v1"


@pytest.mark.parametrize(
    ("top", "each", "text"),
    [
        ({"validation": SCHEMA}, {"schema": SCHEMA}, "mutually exclusive"),
        ({}, {"schema": SCHEMA}, "top-level validation should be used instead"),
        (
            {},
            {"subresources": {"status": {}}},
            "top-level subresources should be used instead",
        ),
    ],
)
def test_v1beta1_values_stand_at_the_top_or_per_version_never_both(
    server: LiveServer, top: Object, each: Object, text: str
) -> None:
    crd = crontabs(group="refused.example.com")
    crd["apiVersion"] = "apiextensions.k8s.io/v1beta1"
    crd["spec"] |= top
    crd["spec"]["versions"] = [
        {"name": name, "served": True, "storage": name == "v1", **each} for name in ("v1", "v2")
    ]
    answer = server.request("POST", CRDS.replace("/v1/", "/v1beta1/"), crd)
    assert answer.status == 422
    assert text in answer.json["message"]
