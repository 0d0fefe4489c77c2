"""Discovery over HTTP: groups, versions, resources, and the aggregated form."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import pytest

from tests.rest.support import (
    SUBRESOURCES,
    Collection,
    failed,
    make_crd,
    not_served,
    version,
)
from tests.support.server import LiveServer

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERBS = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
ORDER = [
    "v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10",
]  # fmt: skip
GROUP = "disco.ex.io"


@pytest.fixture(scope="module")
def disco(server: LiveServer) -> LiveServer:
    versions = [version(name, storage=name == "v1") for name in sorted(ORDER)]
    versions.append(version("v99", served=False))
    for item in versions:
        if item["name"] == "v1":
            item["subresources"] = SUBRESOURCES
    names: dict[str, Any] = {"shortNames": ["fo"], "categories": ["all"], "singular": "foo"}
    server.create_crd(make_crd(GROUP, versions, **names))
    return server


def test_a_group_lists_its_versions_by_priority(disco: LiveServer) -> None:
    document = disco.request("GET", f"/apis/{GROUP}").json
    assert list(document)[:3] == ["kind", "apiVersion", "name"]
    assert (document["kind"], document["apiVersion"]) == ("APIGroup", "v1")
    assert [item["version"] for item in document["versions"]] == ORDER
    first = {"groupVersion": f"{GROUP}/v10", "version": "v10"}
    assert document["versions"][0] == document["preferredVersion"] == first


def test_all_groups(disco: LiveServer) -> None:
    document = disco.request("GET", "/apis").json
    assert (document["kind"], document["apiVersion"]) == ("APIGroupList", "v1")
    (group,) = [item for item in document["groups"] if item["name"] == GROUP]
    assert "kind" not in group
    assert [item["version"] for item in group["versions"]] == ORDER


def test_the_resources_of_a_version(disco: LiveServer) -> None:
    document = disco.request("GET", f"/apis/{GROUP}/v1").json
    assert list(document) == ["kind", "apiVersion", "groupVersion", "resources"]
    foos, status, scale = document["resources"]
    digest = hashlib.sha256(f"{GROUP}/v1/Foo".encode()).digest()[:8]
    assert foos == {
        "name": "foos",
        "singularName": "foo",
        "namespaced": True,
        "kind": "Foo",
        "verbs": VERBS,
        "shortNames": ["fo"],
        "categories": ["all"],
        "storageVersionHash": base64.b64encode(digest).decode(),
    }
    assert status == {
        "name": "foos/status", "singularName": "", "namespaced": True, "kind": "Foo",
        "verbs": ["get", "patch", "update"],
    }  # fmt: skip
    assert scale == {
        "name": "foos/scale", "singularName": "", "namespaced": True, "group": "autoscaling",
        "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"],
    }  # fmt: skip
    other = disco.request("GET", f"/apis/{GROUP}/v2").json
    assert [item["name"] for item in other["resources"]] == ["foos"]
    assert other["resources"][0]["storageVersionHash"] == foos["storageVersionHash"]


def test_unserved_versions_are_not_found(disco: LiveServer) -> None:
    for path in (f"/apis/{GROUP}/v99", f"/apis/{GROUP}/v3", "/apis/nope.io", "/apis/nope.io/v1"):
        not_served(disco.request("GET", path))


def test_no_hash_when_the_storage_version_is_not_served(server: LiveServer) -> None:
    group = "nohash.ex.io"
    server.create_crd(make_crd(group, [version("v1", storage=True, served=False), version("v2")]))
    (foos,) = server.request("GET", f"/apis/{group}/v2").json["resources"]
    assert "storageVersionHash" not in foos


def aggregated(server: LiveServer, path: str = "/apis") -> Any:
    return server.request("GET", path, headers={"Accept": AGGREGATED})


def test_aggregated_discovery(disco: LiveServer) -> None:
    answer = aggregated(disco)
    assert answer.header("content-type") == AGGREGATED
    assert answer.header("vary") == "Accept"
    assert answer.header("cache-control") == "public"
    tag = answer.header("etag")
    assert tag is not None
    assert re.fullmatch(r'"[0-9A-F]{128}"', tag)
    document = answer.json
    assert list(document) == ["kind", "apiVersion", "metadata", "items"]
    assert document["apiVersion"] == "apidiscovery.k8s.io/v2"
    (group,) = [item for item in document["items"] if item["metadata"]["name"] == GROUP]
    assert [item["version"] for item in group["versions"]] == ORDER
    assert {item["freshness"] for item in group["versions"]} == {"Current"}
    v1 = next(item for item in group["versions"] if item["version"] == "v1")
    (foos,) = v1["resources"]
    assert foos["responseKind"] == {"group": GROUP, "version": "v1", "kind": "Foo"}
    assert (foos["scope"], foos["singularResource"]) == ("Namespaced", "foo")
    assert foos["verbs"] == VERBS
    assert [item["subresource"] for item in foos["subresources"]] == ["status", "scale"]
    assert foos["subresources"][1]["responseKind"] == {
        "group": "autoscaling", "version": "v1", "kind": "Scale",
    }  # fmt: skip
    assert "storageVersionHash" not in foos
    unchanged = disco.request("GET", "/apis", headers={"Accept": AGGREGATED, "If-None-Match": tag})
    assert (unchanged.status, unchanged.body) == (304, b"")
    core = aggregated(disco, "/api").json
    assert [item["metadata"].get("name", "") for item in core["items"]] == [""]


def test_other_aggregated_versions(disco: LiveServer) -> None:
    older = AGGREGATED.replace("v=v2", "v=v2beta1")
    answer = disco.request("GET", "/apis", headers={"Accept": older})
    text = (
        "only the following media types are accepted: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf"
    )
    failed(answer, 406, "NotAcceptable", text)
    both = disco.request("GET", "/apis", headers={"Accept": f"{older},application/json"})
    assert both.json["kind"] == "APIGroupList"
    alone = disco.request("GET", f"/apis/{GROUP}", headers={"Accept": f"{AGGREGATED},*/*"})
    assert alone.json["kind"] == "APIGroup"


def test_a_terminating_crd_offers_fewer_verbs(server: LiveServer) -> None:
    group = "fewer.ex.io"
    server.create_crd(make_crd(group, [version("v1", storage=True)]))
    foos = Collection(server, group)
    foos.create("held", metadata={"finalizers": ["ex.com/hold"]})
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    server.request("DELETE", f"{path}/foos.{group}")
    (resource,) = server.request("GET", f"/apis/{group}/v1").json["resources"]
    assert resource["verbs"] == ["delete", "deletecollection", "get", "list", "watch"]
    foos.patch("held", {"metadata": {"finalizers": None}})


def test_version_and_legacy_roots(server: LiveServer) -> None:
    document = server.request("GET", "/version").json
    assert (document["major"], document["gitVersion"][:2]) == ("1", "v1")
    root = server.request("GET", "/api").json
    assert (root["kind"], root["versions"]) == ("APIVersions", ["v1"])
    assert server.request("GET", "/api/v1").json["groupVersion"] == "v1"


def test_the_aggregated_document_in_yaml(server: LiveServer) -> None:
    accept = "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    answer = server.request("GET", "/apis", headers={"Accept": accept})

    assert (answer.status, answer.header("content-type")) == (200, accept)
    assert answer.text.startswith("apiVersion: apidiscovery.k8s.io/v2\nitems:\n- metadata:\n")


@pytest.mark.parametrize("media", ["application/yaml", "application/vnd.kubernetes.protobuf"])
def test_the_servers_version_is_json_only(server: LiveServer, media: str) -> None:
    assert server.request("GET", "/version", headers={"Accept": media}).status == 406
    assert server.request("GET", "/version", headers={"Accept": f"{media}, */*"}).status == 200


def test_the_root_lists_what_there_is(disco: LiveServer) -> None:
    answer = disco.request("GET", "/")

    paths = answer.json["paths"]
    assert answer.status == 200
    assert paths == sorted(paths)
    known = {"/api", "/api/v1", "/apis", f"/apis/{GROUP}", f"/apis/{GROUP}/v1", "/healthz/etcd"}
    assert known | {"/livez", "/openapi/v2", "/openapi/v3", "/version"} <= set(paths)
