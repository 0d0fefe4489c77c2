"""Namespaces and the other built-in kinds around custom resources."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.rest.support import MERGE, TABLE, Collection, causes, failed, watching
from tests.support.server import LiveServer, live_server


@pytest.fixture(scope="module")
def core(server: LiveServer) -> Collection:
    return Collection(server, "", "configmaps", "ConfigMap")


@pytest.fixture(scope="module")
def spaces(server: LiveServer) -> Collection:
    return Collection(server, "", "namespaces", "Namespace", "")


def gone(spaces: Collection, name: str, revision: str) -> None:
    query = f"?watch=1&fieldSelector=metadata.name={name}&resourceVersion={revision}"
    with watching(spaces.server, spaces.path + query) as stream:
        while (event := stream.event()) is not None:
            if event["type"] == "DELETED":
                return
    raise AssertionError(f"namespace {name} did not go")


def test_the_initial_namespaces(spaces: Collection) -> None:
    found = {item["metadata"]["name"]: item for item in spaces.request("GET", "").json["items"]}
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        assert found[name]["status"] == {"phase": "Active"}
        assert found[name]["spec"] == {"finalizers": ["kubernetes"]}
        assert found[name]["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_a_namespace_that_only_says_terminating_stays(
    spaces: Collection, core: Collection, where: str
) -> None:
    name = f"says-{where}"
    said = {"phase": "Terminating", "deletionTimestamp": "now"}
    spaces.create(name, metadata={where: said})
    kept = core.at(namespace=name)
    assert kept.create("a")
    # Another namespace, deleted later, is gone: had the first been taken for one, so were it.
    spaces.create(name + "-deleted")
    revision = spaces.delete(name + "-deleted").json["metadata"]["resourceVersion"]
    gone(spaces, name + "-deleted", revision)
    assert spaces.get(name)["status"] == {"phase": "Active"}
    assert kept.get("a")


def test_a_deleted_namespace_deletes_its_objects(spaces: Collection, foos: Collection) -> None:
    created = spaces.create("takes")
    inside = foos.at(namespace="takes")
    inside.create("a")
    inside.create("held", metadata={"finalizers": ["ex.com/hold"]})
    answer = spaces.delete("takes")
    assert (answer.status, answer.json["kind"]) == (200, "Namespace")
    assert answer.json["status"]["phase"] == "Terminating"
    assert "deletionTimestamp" in answer.json["metadata"]
    refused = inside.request("POST", "", inside.obj("late"))
    text = (
        'foos.ex.io "late" is forbidden: unable to create new content in namespace takes because '
        "it is being terminated"
    )
    details = failed(refused, 403, "Forbidden", foos.say(text))
    assert details["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace takes is being terminated",
            "field": "metadata.namespace",
        }
    ]
    assert spaces.get("takes")["spec"]["finalizers"] == ["kubernetes"]
    inside.patch("held", {"metadata": {"finalizers": None}})
    gone(spaces, "takes", created["metadata"]["resourceVersion"])
    assert inside.request("GET", "").json["items"] == []


def test_finalize_sets_the_finalizers_and_nothing_else(spaces: Collection) -> None:
    created = spaces.create("finalize")
    body = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "finalize", "labels": {"l": "1"}},
        "spec": {"finalizers": ["kubernetes", "ex.com/mine"]},
    }
    answer = spaces.request("PUT", "/finalize/finalize", body)
    assert answer.json["spec"]["finalizers"] == ["kubernetes", "ex.com/mine"]
    plain = spaces.get("finalize")
    plain["spec"]["finalizers"] = []
    assert spaces.put(plain).json["spec"]["finalizers"] == ["kubernetes", "ex.com/mine"]
    spaces.delete("finalize")
    body["spec"] = {"finalizers": []}
    answer = spaces.request("PUT", "/finalize/finalize", body)
    assert answer.status in (200, 404, 409)
    gone(spaces, "finalize", created["metadata"]["resourceVersion"])


def test_names_of_namespaces_are_labels(spaces: Collection) -> None:
    answer = spaces.request("POST", "", spaces.obj("has.dot"))
    assert answer.status == 422
    assert {field for *_, field in causes(answer)} == {"metadata.name"}


def test_there_is_no_deletecollection_of_namespaces(spaces: Collection) -> None:
    answer = spaces.request("DELETE", "")
    assert answer.status == 405
    assert answer.json["reason"] == "MethodNotAllowed"


def test_open_namespaces() -> None:
    with live_server(strict_namespaces=False) as server:
        anywhere = Collection(server, "", "configmaps", "ConfigMap", "anywhere")
        assert anywhere.create("a")["metadata"]["namespace"] == "anywhere"


# --- config maps and secrets ---------------------------------------------------------------------


def test_core_kinds_update_without_a_revision_and_have_no_generation(core: Collection) -> None:
    core.create("loose", data={"a": "1"})
    answer = core.put(core.obj("loose", data={"a": "2"}))
    assert (answer.status, answer.json["data"]) == (200, {"a": "2"})
    assert "generation" not in answer.json["metadata"]


def test_immutable_objects_cannot_be_changed(core: Collection) -> None:
    core.create("fixed", data={"a": "1"}, immutable=True)
    answer = core.patch("fixed", {"data": {"a": "2"}})
    text = "field is immutable when `immutable` is set"
    assert answer.status == 422
    assert causes(answer) == [("FieldValueForbidden", f"Forbidden: {text}", "data")]
    answer = core.patch("fixed", {"immutable": None})
    assert causes(answer) == [("FieldValueForbidden", f"Forbidden: {text}", "immutable")]
    assert core.patch("fixed", {"metadata": {"labels": {"l": "1"}}}).status == 200
    secrets = core.at(plural="secrets", kind="Secret")
    secrets.create("fixed", stringData={"a": "1"}, immutable=True)
    answer = secrets.patch("fixed", {"stringData": {"a": "2"}})
    assert causes(answer) == [("FieldValueForbidden", f"Forbidden: {text}", "data")]
    assert secrets.delete("fixed").status == 200


def test_secrets_are_base64(core: Collection) -> None:
    secrets = core.at(plural="secrets", kind="Secret")
    secret = secrets.create("s", stringData={"a": "plain"})
    assert secret["data"] == {"a": base64.b64encode(b"plain").decode()}
    assert "stringData" not in secret
    assert secret["type"] == "Opaque"
    answer = secrets.request("POST", "", secrets.obj("bad", data={"a": "not base64!"}))
    assert 400 <= answer.status < 500


def test_strategic_patches_serve_core_kinds(core: Collection) -> None:
    core.create("strategic", data={"a": "1"})
    media = "application/strategic-merge-patch+json"
    answer = core.patch("strategic", {"data": {"b": "2"}}, media)
    assert answer.json["data"] == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("plural", "columns"),
    [
        ("namespaces", ["Name", "Status", "Age"]),
        ("configmaps", ["Name", "Data", "Age"]),
        ("secrets", ["Name", "Type", "Data", "Age"]),
        ("serviceaccounts", ["Name", "Age"]),
    ],
)
def test_tables_of_core_kinds(server: LiveServer, plural: str, columns: list[str]) -> None:
    answer = server.request("GET", f"/api/v1/{plural}", headers={"Accept": TABLE})
    shown = [item["name"] for item in answer.json["columnDefinitions"] if not item["priority"]]
    assert shown == columns


@pytest.mark.parametrize(
    ("plural", "kind", "members"),
    [
        ("configmaps", "ConfigMap", {"data": 5}),
        ("configmaps", "ConfigMap", {"data": {"a": 5}}),
        ("secrets", "Secret", {"data": []}),
        ("secrets", "Secret", {"stringData": {"a": 1}}),
        ("services", "Service", {"spec": {"ports": {}}}),
        ("services", "Service", {"spec": []}),
        ("events", "Event", {"involvedObject": 1}),
        ("serviceaccounts", "ServiceAccount", {"secrets": {}}),
    ],
)
def test_nonsense_in_core_kinds_is_a_client_error(
    core: Collection, plural: str, kind: str, members: dict[str, Any]
) -> None:
    collection = core.at(plural=plural, kind=kind)
    answer = collection.request("POST", "", collection.obj("nonsense", **members))
    assert 400 <= answer.status < 500, answer.text
    answer = collection.patch("absent", {}, MERGE)
    assert answer.status == 404
