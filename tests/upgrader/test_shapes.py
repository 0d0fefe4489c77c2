"""The CRDs an upgrade writes on its way, without a cluster."""

from __future__ import annotations

from instar.base.json_values import Object
from instar.tools.upgrader.transition_crds import (
    bridge,
    crd_to_apply,
    loses_webhook,
    narrowed_versions,
    same_crd,
    transitional_versions,
    way_back,
)


def crd(*versions: str, stored: tuple[str, ...] = (), **spec: object) -> Object:
    """The last version is the storage version."""
    items = [{"name": name, "served": True, "storage": name == versions[-1]} for name in versions]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ws.g", "uid": "1", "resourceVersion": "2", "labels": {"a": "b"}},
        "spec": {"group": "g", "versions": items, **spec},
        "status": {"storedVersions": list(stored)},
    }


def names(document: Object) -> list[tuple[str, bool, bool]]:
    return [(v["name"], v["served"], v["storage"]) for v in document["spec"]["versions"]]


def test_an_applied_crd_has_no_status_and_no_server_fields() -> None:
    body = crd_to_apply(crd("v1"))

    assert "status" not in body
    assert body["metadata"] == {"name": "ws.g", "labels": {"a": "b"}}
    assert body["spec"]["conversion"] == {"strategy": "None"}


def test_the_bridge_keeps_versions_objects_may_be_stored_in() -> None:
    live = crd("v1alpha1", "v1beta1", stored=("v1alpha1", "v1beta1"))

    assert names(bridge(crd("v1beta1", "v1"), live)) == [
        ("v1beta1", True, False),
        ("v1", True, True),
        ("v1alpha1", True, False),
    ]
    assert transitional_versions(crd("v1beta1", "v1"), live) == ["v1alpha1"]


def _with_fields(document: Object, version: str, *fields: str) -> Object:
    (found,) = [item for item in document["spec"]["versions"] if item["name"] == version]
    properties = {name: {"type": "string"} for name in fields}
    found["schema"] = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return document


def test_the_bridge_drops_no_field_before_the_objects_are_rewritten() -> None:
    live = _with_fields(crd("v1beta1", stored=("v1beta1",)), "v1beta1", "size", "legacy")
    release = _with_fields(crd("v1beta1", "v1"), "v1beta1", "size", "new")

    bridged = bridge(release, live)

    assert narrowed_versions(release, live) == ["v1beta1"]
    assert names(bridged) == [("v1beta1", True, False), ("v1", True, True)]
    assert bridged["spec"]["versions"][0]["schema"] == live["spec"]["versions"][0]["schema"]


def test_the_bridge_serves_every_version_until_the_objects_are_rewritten() -> None:
    live = crd("v1beta1", stored=("v1beta1",))
    release = crd("v1beta1", "v1")
    release["spec"]["versions"][0]["served"] = False

    assert names(bridge(release, live)) == [("v1beta1", True, False), ("v1", True, True)]


def test_a_release_that_rewrites_nothing_is_applied_at_once() -> None:
    live = _with_fields(crd("v1", stored=("v1",)), "v1", "size", "legacy")
    release = _with_fields(crd("v1"), "v1", "size")

    assert narrowed_versions(release, live) == []
    assert bridge(release, live)["spec"] == crd_to_apply(release)["spec"]


def test_the_way_back_keeps_new_stored_versions_out_of_sight() -> None:
    live = crd("v1beta1", "v1", stored=("v1beta1", "v1"))

    assert names(way_back(crd("v1beta1"), live)) == [("v1beta1", True, True), ("v1", False, False)]


def test_the_rollback_crd_keeps_the_webhook_that_converts_newer_objects() -> None:
    live = crd("v1beta1", "v1", stored=("v1beta1", "v1"))
    live["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "u"}}}

    assert way_back(crd("v1beta1"), live)["spec"]["conversion"]["strategy"] == "Webhook"


def test_server_fields_do_not_make_a_different_crd() -> None:
    noted = crd("v1", stored=("v1",))
    noted["metadata"]["managedFields"] = [{}]

    assert same_crd(crd("v1"), noted)
    assert not same_crd(crd("v1"), crd("v1", "v2"))
    assert not same_crd(crd("v1"), {**crd("v1"), "metadata": {"name": "ws.g"}})


def test_a_webhook_that_goes_is_noticed() -> None:
    hooked = crd("v1", conversion={"strategy": "Webhook", "webhook": {}})

    assert loses_webhook(crd("v1"), hooked)
    assert not loses_webhook(hooked, crd("v1"))
    assert not loses_webhook(hooked, hooked)
