"""The CRDs an upgrade writes on its way, without a cluster."""

from __future__ import annotations

from instar.base.json_values import Object
from instar.tools.upgrader.transition_crds import (
    bridge,
    crd_to_apply,
    loses_webhook,
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
