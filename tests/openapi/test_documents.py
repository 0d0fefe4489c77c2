"""Whole v3 and v2 documents: what is in them, and that nothing in them dangles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from instar.kube.api.names import GroupVersion
from instar.kube.openapi import v2, v3
from instar.kube.openapi.models import SCALE as SCALE_MODELS
from instar.kube.openapi.models import SHARED
from instar.kube.openapi.option_kinds import OF_CLIENTS, option_kinds
from tests.openapi.make import builtin, custom, established_corpus
from tests.support.builtins import BUILTINS
from tests.support.crds import version
from tests.support.shared import demand_shared

OA = {"plural": "oas", "singular": "oa", "kind": "Oa", "listKind": "OaList"}
SCALE = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}


KINDS = "x-kubernetes-group-version-kind"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
RECORDED = BUILTINS / "schemas.json"


def without_descriptions(node: Any) -> Any:
    if isinstance(node, dict):
        return {
            name: without_descriptions(item)
            for name, item in node.items()
            if not (name == "description" and isinstance(item, str))
        }
    return [without_descriptions(item) for item in node] if isinstance(node, list) else node


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from references(child)
    elif isinstance(node, list):
        for child in node:
            yield from references(child)


def operations(document: dict[str, Any]) -> dict[str, str]:
    return {
        operation["operationId"]: f"{method} {path}"
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }


def v3_document(*args: Any) -> dict[str, Any]:
    document = v3.document(*args)
    assert document is not None
    return document


def test_a_namespaced_resource_with_all_subresources_has_these_operations() -> None:
    resource = custom(version(subresources={"status": {}, "scale": SCALE}), group="oa.io", names=OA)

    document = v3_document([resource], "oa.io", "v1")

    items = "/apis/oa.io/v1/namespaces/{namespace}/oas"
    assert operations(document) == {
        "listOaIoV1OaForAllNamespaces": "get /apis/oa.io/v1/oas",
        "listOaIoV1NamespacedOa": f"get {items}",
        "createOaIoV1NamespacedOa": f"post {items}",
        "deleteOaIoV1CollectionNamespacedOa": f"delete {items}",
        "readOaIoV1NamespacedOa": f"get {items}/{{name}}",
        "replaceOaIoV1NamespacedOa": f"put {items}/{{name}}",
        "deleteOaIoV1NamespacedOa": f"delete {items}/{{name}}",
        "patchOaIoV1NamespacedOa": f"patch {items}/{{name}}",
        "readOaIoV1NamespacedOaStatus": f"get {items}/{{name}}/status",
        "replaceOaIoV1NamespacedOaStatus": f"put {items}/{{name}}/status",
        "patchOaIoV1NamespacedOaStatus": f"patch {items}/{{name}}/status",
        "readOaIoV1NamespacedOaScale": f"get {items}/{{name}}/scale",
        "replaceOaIoV1NamespacedOaScale": f"put {items}/{{name}}/scale",
        "patchOaIoV1NamespacedOaScale": f"patch {items}/{{name}}/scale",
    }
    assert {
        tag
        for item in document["paths"].values()
        for method, operation in item.items()
        if method != "parameters"
        for tag in operation["tags"]
    } == {"oaIo_v1"}


def test_a_cluster_wide_resource_of_a_k8s_io_group_has_shorter_names() -> None:
    resource = custom(group="gateway.networking.k8s.io", scope="Cluster")

    document = v3_document([resource], "gateway.networking.k8s.io", "v1")

    assert operations(document)["listGatewayNetworkingV1Foo"] == (
        "get /apis/gateway.networking.k8s.io/v1/foos"
    )


def test_a_document_introduces_itself_as_upstream_does() -> None:
    document = v3_document([custom()], "example.com", "v1")

    assert document["openapi"] == "3.0.0"
    assert document["info"] == {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
    assert {"com.example.v1.Foo", "com.example.v1.FooList"} <= set(
        document["components"]["schemas"]
    )


def test_the_patch_operation_names_its_kind_and_its_field_validation() -> None:
    document = v3_document([custom(scope="Cluster")], "example.com", "v1")

    patch = document["paths"]["/apis/example.com/v1/foos/{name}"]["patch"]

    assert patch["x-kubernetes-action"] == "patch"
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "example.com",
        "kind": "Foo",
        "version": "v1",
    }
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} == {
        item["name"] for item in patch["parameters"]
    }
    assert "application/apply-patch+yaml" in patch["requestBody"]["content"]
    assert list(patch["responses"]) == ["200", "401"]


def test_list_paths_have_every_parameter_of_list_options() -> None:
    document = v3_document([custom(scope="Cluster")], "example.com", "v1")

    asked = document["paths"]["/apis/example.com/v1/foos"]["get"]["parameters"]

    assert {item["name"] for item in asked} == {
        "allowWatchBookmarks",
        "continue",
        "fieldSelector",
        "labelSelector",
        "limit",
        "resourceVersion",
        "resourceVersionMatch",
        "sendInitialEvents",
        "shardSelector",
        "timeoutSeconds",
        "watch",
    }


def test_selectable_fields_are_published_for_objects_and_lists() -> None:
    resource = custom(version(selectableFields=[{"jsonPath": ".spec.a"}]))
    told = [{"fieldPath": "spec.a"}]

    schemas = v3_document([resource], "example.com", "v1")["components"]["schemas"]

    for name in ("Foo", "FooList"):
        assert schemas[f"com.example.v1.{name}"]["x-kubernetes-selectable-fields"] == told


@pytest.mark.parametrize(
    ("place", "beginning"),
    [
        ("com.example.v1.Foo.apiVersion", "APIVersion defines the versioned schema"),
        ("com.example.v1.Foo.kind", "Kind is a string value representing"),
        ("com.example.v1.Foo.metadata", "Standard object's metadata"),
        ("com.example.v1.FooList.metadata", "Standard list metadata"),
        (f"{META}ObjectMeta", "ObjectMeta is metadata that all persisted resources must have"),
        (f"{META}ObjectMeta.name", "Name must be unique within a namespace"),
        (f"{META}ObjectMeta.creationTimestamp", "CreationTimestamp is a timestamp"),
        (f"{META}ObjectMeta.annotations", "Annotations is an unstructured key value map"),
        (f"{META}ObjectMeta.labels", "Map of string keys and values"),
    ],
)
def test_descriptions_begin_as_readers_know_them(place: str, beginning: str) -> None:
    schemas = v3_document([custom()], "example.com", "v1")["components"]["schemas"]
    model = schemas.get(place)
    if model is None:
        name, _, member = place.rpartition(".")
        model = schemas[name]["properties"][member]

    assert model["description"].startswith(beginning)


@pytest.mark.parametrize("name", sorted({**SHARED, **SCALE_MODELS}))
def test_shared_models_say_what_the_recorded_ones_say(name: str) -> None:
    demand_shared(RECORDED)
    recorded = json.loads(RECORDED.read_text())[name]
    if name.endswith(".DeleteOptions"):
        # Recorded from a built-in group's document, which knows itself only.
        recorded[KINDS] = option_kinds(OF_CLIENTS)
    resource = custom(version(subresources={"scale": SCALE}))
    document = v3_document([resource], "example.com", "v1")

    assert without_descriptions(document["components"]["schemas"][name]) == recorded


def test_v2_models_have_no_defaults() -> None:
    resource = custom(version(subresources={"scale": SCALE}))
    definitions = v2.document([resource], server_version="v1")["definitions"]

    assert '"default"' not in json.dumps(definitions)


def test_the_scale_models_are_there_only_where_something_scales() -> None:
    plain = v3_document([custom()], "example.com", "v1")
    scaled = v3_document([custom(version(subresources={"scale": SCALE}))], "example.com", "v1")

    assert "io.k8s.api.autoscaling.v1.Scale" not in plain["components"]["schemas"]
    assert "io.k8s.api.autoscaling.v1.Scale" in scaled["components"]["schemas"]


def test_only_established_and_served_versions_are_published() -> None:
    pending = custom(group="pending.io", conditions=("NamesAccepted",))
    resources = [pending, custom(version("v1"), version("v2", served=False))]

    assert v3.group_versions(resources) == [GroupVersion("example.com", "v1")]
    assert v3.document(resources, "pending.io", "v1") is None
    assert v3.document(resources, "example.com", "v2") is None
    definitions = v2.document(resources, server_version="v1.0.0")["definitions"]
    assert "com.example.v1.Foo" in definitions
    assert "com.example.v2.Foo" not in definitions


def test_the_index_points_to_each_document_by_its_hash() -> None:
    hashes = {GroupVersion("example.com", "v1"): "AB", GroupVersion("", "v1"): "CD"}

    assert v3.index(hashes) == {
        "paths": {
            "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=CD"},
            "apis/example.com/v1": {"serverRelativeURL": "/openapi/v3/apis/example.com/v1?hash=AB"},
        }
    }


def test_builtins_keep_their_own_model_names_and_verbs() -> None:
    resources = [
        builtin("", "configmaps", "ConfigMap", version()),
        builtin("", "reviews", "Review", version(), scope="Cluster", verbs=("create",)),
    ]

    document = v3_document(resources, "", "v1")

    assert document["info"]["title"] == "Kubernetes"
    assert "io.k8s.api.core.v1.ConfigMap" in document["components"]["schemas"]
    assert set(document["paths"]["/api/v1/reviews"]) == {"parameters", "post"}
    assert operations(document)["listCoreV1NamespacedConfigMap"] == (
        "get /api/v1/namespaces/{namespace}/configmaps"
    )


def test_v2_merges_all_versions_of_all_groups() -> None:
    resources = [custom(version("v1"), version("v2")), custom(group="oa.io", names=OA)]

    document = v2.document(resources, server_version="v1.36.4")

    assert document["swagger"] == "2.0"
    assert document["info"] == {"title": "Kubernetes", "version": "v1.36.4"}
    assert {"com.example.v1.Foo", "com.example.v2.Foo", "io.oa.v1.Oa"} <= set(
        document["definitions"]
    )
    assert "/apis/oa.io/v1/oas" in document["paths"]


def test_v2_puts_the_body_among_the_parameters() -> None:
    document = v2.document([custom(scope="Cluster")], server_version="")

    post = document["paths"]["/apis/example.com/v1/foos"]["post"]

    assert post["parameters"][0] == {
        "name": "body",
        "in": "body",
        "required": True,
        "schema": {"$ref": "#/definitions/com.example.v1.Foo"},
    }


def test_every_crd_of_the_corpus_is_published_without_dangling_references() -> None:
    resources = established_corpus()

    merged = v2.document(resources, server_version="")
    documents = [v3_document(resources, *gv) for gv in v3.group_versions(resources)]

    json.dumps([merged, documents])
    assert set(references(merged)) <= {f"#/definitions/{name}" for name in merged["definitions"]}
    for document in documents:
        known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert set(references(document)) <= known
    route = merged["definitions"]["io.k8s.networking.gateway.v1.HTTPRoute"]
    assert "rules" in route["properties"]["spec"]["properties"]
