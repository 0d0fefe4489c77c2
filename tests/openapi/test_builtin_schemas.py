"""What is published of built-in kinds: the recorded types, and nothing that dangles."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Union, get_args, get_origin

import pytest

from instar.kube.api.discovery import DiscoveryResource
from instar.kube.openapi import v2, v3
from instar.kube.openapi.builtin import DESCRIPTIONS, builtin_models
from instar.kube.openapi.builtin_crd import CRD_V1BETA1
from instar.kube.openapi.builtin_schemas import STORAGE_VERSION_MIGRATION
from instar.kube.openapi.kind_descriptions import KIND_DESCRIPTIONS
from instar.kube.openapi.models import SCALE, SHARED
from instar.kube.openapi.reference_style import V3
from instar.kube.schema.structure.structural_rules import structural_errors
from instar.server.registry.kinds.builtin_resources import builtin_servings
from instar.server.registry.resources.strategy import Strategy
from tests.support.builtins import BUILTINS
from tests.support.shared import demand_shared

RECORDED = BUILTINS / "schemas.json"
SHARED_TYPES = ("DeleteOptions", "ListMeta", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference")
OPEN = "x-kubernetes-preserve-unknown-fields"
KINDS = "x-kubernetes-group-version-kind"
OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


@cache
def resources() -> list[DiscoveryResource]:
    return [
        DiscoveryResource(item.crd, item.builtin, item.verbs)
        for item in builtin_servings(Strategy())
    ]


def v3_documents() -> Iterator[dict[str, Any]]:
    for group, version in v3.group_versions(resources()):
        document = v3.document(resources(), group, version)
        assert document is not None
        yield document


def references(node: Any) -> Iterator[str]:
    children: list[Any] = node if isinstance(node, list) else []
    if isinstance(node, dict):
        children = list(node.values())
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
    for child in children:
        yield from references(child)


def plain(node: Any) -> Any:
    """Without descriptions, and without the wrapping that only descriptions need."""
    if isinstance(node, list):
        return [plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {
        key: plain(item)
        for key, item in node.items()
        if not (key == "description" and isinstance(item, str))
    }
    return out["allOf"][0] if list(out) == ["allOf"] else out


def test_every_published_type_is_the_recorded_one() -> None:
    demand_shared(RECORDED)
    recorded = json.loads(RECORDED.read_text())
    ours = {"MicroTime", "StorageVersionMigration", "StorageVersionMigrationList"}

    for document in v3_documents():
        for name, model in document["components"]["schemas"].items():
            if ".v1beta1." in name or name.rpartition(".")[2] in ours:
                continue
            expected = recorded[name]
            if name.endswith(".DeleteOptions"):
                # Recorded from one document; each names itself besides the core group.
                expected[KINDS][1:] = model[KINDS][1:2]
            assert plain(model) == plain(expected), name


def test_options_are_known_in_the_core_group_and_in_the_documents_own() -> None:
    document = v3.document(resources(), "apps", "v1")
    assert document is not None

    kinds = document["components"]["schemas"][OPTIONS][KINDS]

    assert [(kind["group"], kind["version"]) for kind in kinds] == [("", "v1"), ("apps", "v1")]


def test_no_reference_dangles_in_any_document() -> None:
    for document in v3_documents():
        known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert set(references(document)) <= known

    document = v2.document(resources(), server_version="v1")
    known = {f"#/definitions/{name}" for name in document["definitions"]}
    assert set(references(document)) <= known


def test_every_kind_has_a_sentence_of_its_own() -> None:
    named = {item.crd.names.kind for item in resources()} - {"StorageVersionMigration"}

    assert named <= set(KIND_DESCRIPTIONS)


def test_words_are_about_fields_that_exist() -> None:
    fields: dict[str, set[str]] = {}
    for document in v3_documents():
        for name, model in document["components"]["schemas"].items():
            known = fields.setdefault(name.rpartition(".")[2], set())
            known |= set(model.get("properties", {}))

    for table in DESCRIPTIONS:
        for kind, members in table.items():
            assert set(members) <= fields[kind], kind


def test_no_field_is_described_twice() -> None:
    named = [(kind, name) for table in DESCRIPTIONS for kind in table for name in table[kind]]

    assert len(named) == len(set(named))


@pytest.mark.parametrize(
    "group_and_kind",
    [
        "apiextensions.k8s.io/v1 CustomResourceDefinition",
        "v1 Pod",
        "v1 Service",
        "v1 Node",
        "v1 Namespace",
        "v1 Event",
        "v1 PersistentVolume",
        "v1 PersistentVolumeClaim",
        "v1 ConfigMap",
        "v1 Secret",
        "v1 ServiceAccount",
        "apps/v1 Deployment",
        "apps/v1 StatefulSet",
        "apps/v1 DaemonSet",
        "apps/v1 ReplicaSet",
        "batch/v1 Job",
        "batch/v1 CronJob",
        "networking.k8s.io/v1 Ingress",
        "networking.k8s.io/v1 NetworkPolicy",
        "autoscaling/v2 HorizontalPodAutoscaler",
        "policy/v1 PodDisruptionBudget",
        "storage.k8s.io/v1 StorageClass",
        "rbac.authorization.k8s.io/v1 Role",
        "rbac.authorization.k8s.io/v1 ClusterRole",
        "rbac.authorization.k8s.io/v1 RoleBinding",
        "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
    ],
)
def test_explain_has_words_for_every_field_of_the_most_used_kinds(group_and_kind: str) -> None:
    group, kind = group_and_kind.split()

    models = builtin_models([(group, kind)], V3)

    silent = [
        f"{name}.{member}"
        for name, model in models.items()
        for member, schema in model.get("properties", {}).items()
        if not schema.get("description")
    ]
    assert silent == []


def test_v2_has_no_defaults_and_no_choice_between_types() -> None:
    definitions = v2.document(resources(), server_version="v1")["definitions"]
    text = json.dumps(definitions["io.k8s.api.core.v1.PodSpec"])

    assert definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] == {"type": "string"}
    assert '"default":' not in text
    assert '"allOf"' not in text


@pytest.mark.parametrize(
    ("operation", "where"),
    [
        ("createCoreV1NamespacedPodEviction", "post {pod}/eviction"),
        ("createCoreV1NamespacedPodBinding", "post {pod}/binding"),
        ("readCoreV1NamespacedPodLog", "get {pod}/log"),
        ("patchCoreV1NamespacedPodEphemeralcontainers", "patch {pod}/ephemeralcontainers"),
        ("connectCoreV1PostNamespacedPodExec", "post {pod}/exec"),
        ("connectCoreV1GetNamespacedPodProxyWithPath", "get {pod}/proxy/{{path}}"),
        ("replaceCoreV1NamespaceFinalize", "put /api/v1/namespaces/{{name}}/finalize"),
    ],
)
def test_subresources_of_every_form_have_their_operations(operation: str, where: str) -> None:
    document = v3.document(resources(), "", "v1")
    assert document is not None
    found = {
        item["operationId"]: f"{method} {path}"
        for path, methods in document["paths"].items()
        for method, item in methods.items()
        if method != "parameters"
    }

    pod = "/api/v1/namespaces/{namespace}/pods/{name}"
    assert found[operation] == where.format(pod=pod)


def model(module: str, name: str) -> Any:
    pytest.importorskip("lightkube.models", reason="lightkube-models lists the fields to know")
    return getattr(importlib.import_module(f"lightkube.models.{module}"), name)


def missing(schema: Mapping[str, Any], kind: Any, path: str = "") -> list[str]:
    """Fields of a lightkube model that the schema does not have, at any depth."""
    msgspec = pytest.importorskip("msgspec")
    found: list[str] = []
    for field in msgspec.structs.fields(kind):
        name = f"{path}.{field.encode_name}"
        known = schema["properties"].get(field.encode_name)
        inner = _struct(field.type, msgspec.Struct)
        if known is None:
            found.append(name)
        elif inner is not None and not _ends_here(known, field.encode_name):
            found += missing(known.get("items", known), inner, name)
    return found


def _ends_here(schema: Mapping[str, Any], name: str) -> bool:
    items = schema.get("items", schema)
    return name == "metadata" or OPEN in items or "$ref" in items


def _struct(hint: Any, base: type) -> Any:
    if isinstance(hint, type) and issubclass(hint, base):
        return hint
    if get_origin(hint) in (list, Union) or get_args(hint):
        return next((found for arg in get_args(hint) if (found := _struct(arg, base))), None)
    return None


@pytest.mark.parametrize("name", SHARED_TYPES)
def test_shared_models_have_every_field(name: str) -> None:
    schema = SHARED[f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}"]

    assert missing(schema, model("meta_v1", name)) == []


def test_handwritten_schemas_have_every_field() -> None:
    migration = model("storagemigration_v1", "StorageVersionMigration")

    assert missing(STORAGE_VERSION_MIGRATION, migration) == []
    assert missing(SCALE["io.k8s.api.autoscaling.v1.Scale"], model("autoscaling_v1", "Scale")) == []


@pytest.mark.parametrize("schema", [CRD_V1BETA1, STORAGE_VERSION_MIGRATION])
def test_every_schema_by_hand_is_structural(schema: dict[str, Any]) -> None:
    assert structural_errors(schema, "") == []
