"""What clients see first, pinned to what kube-apiserver answers."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from instar.kube.api import discovery
from instar.kube.api.names import by_priority
from tests.openapi.make import builtin, custom
from tests.support.crds import version


def test_storage_version_hash_matches_the_known_vectors() -> None:
    assert discovery.storage_version_hash("example.com", "v1beta2", "Foo") == "DHvGuLhiGFE="
    assert discovery.storage_version_hash("", "v1", "Pod") == "xPOwRZ+Yhw8="


def test_api_names_the_core_version_and_the_server_address() -> None:
    assert discovery.legacy_versions("10.0.0.1:6443") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": "10.0.0.1:6443"}
        ],
    }


def test_a_group_lists_served_versions_by_priority_and_prefers_the_first() -> None:
    resource = custom(
        version("v1beta2"),
        version("v10", deprecated=True),
        version("v2", served=False),
    )

    found = discovery.group([resource], "example.com")

    assert found == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "example.com",
        "versions": [
            {"groupVersion": "example.com/v10", "version": "v10"},
            {"groupVersion": "example.com/v1beta2", "version": "v1beta2"},
        ],
        "preferredVersion": {"groupVersion": "example.com/v10", "version": "v10"},
    }


def test_the_versions_of_a_group_come_from_all_its_resources() -> None:
    other = {"plural": "bars", "kind": "Bar", "listKind": "BarList"}
    resources = [custom(version("v1")), custom(version("v2"), names=other)]

    found = discovery.group(resources, "example.com")

    assert found is not None
    assert [item["version"] for item in found["versions"]] == ["v2", "v1"]


def test_unknown_and_unserved_groups_and_versions_have_no_document() -> None:
    unserved = custom(version(served=False))

    assert discovery.group([unserved], "example.com") is None
    assert discovery.group([custom()], "other.com") is None
    assert discovery.group([custom(group="")], "") is None
    assert discovery.resource_list([unserved], "example.com", "v1") is None
    assert discovery.resource_list([custom()], "example.com", "v2") is None


def test_a_group_is_listed_before_its_resource_is_established() -> None:
    pending = custom(conditions=("NamesAccepted",))

    assert [g["name"] for g in discovery.group_list([pending])["groups"]] == ["example.com"]
    assert discovery.resource_list([pending], "example.com", "v1") is None
    assert discovery.aggregated_discovery([pending], legacy=False)["items"] == []


def test_builtin_groups_come_first_and_custom_ones_by_version_then_name() -> None:
    resources = [
        custom(version("v1beta1"), group="a.io"),
        custom(version("v1"), group="z.io"),
        custom(version("v1"), group="b.io"),
        builtin("storagemigration.k8s.io", "storageversionmigrations", "StorageVersionMigration"),
        builtin("coordination.k8s.io", "leases", "Lease"),
        builtin("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition"),
        builtin("events.k8s.io", "events", "Event"),
        builtin("", "configmaps", "ConfigMap"),
    ]

    listed = [item["name"] for item in discovery.group_list(resources)["groups"]]
    aggregated = discovery.aggregated_discovery(resources, legacy=False)["items"]

    builtins = [
        "events.k8s.io",
        "apiextensions.k8s.io",
        "coordination.k8s.io",
        "storagemigration.k8s.io",
    ]
    assert listed == [*builtins, "b.io", "z.io", "a.io"]
    assert [item["metadata"]["name"] for item in aggregated] == [*builtins, "a.io", "b.io", "z.io"]


def test_entries_of_one_resource_follow_each_other_with_their_verbs() -> None:
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
    names = {
        "plural": "foos",
        "singular": "foo",
        "kind": "Foo",
        "shortNames": ["f"],
        "categories": ["all"],
    }
    resource = custom(version("v1", subresources={"status": {}, "scale": scale}), names=names)

    found = discovery.resource_list([resource], "example.com", "v1")

    subresource = {
        "singularName": "",
        "namespaced": True,
        "verbs": ["get", "patch", "update"],
    }
    assert found is not None
    assert found["groupVersion"] == "example.com/v1"
    assert found["resources"] == [
        {
            "name": "foos",
            "singularName": "foo",
            "namespaced": True,
            "kind": "Foo",
            "verbs": [
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "create",
                "update",
                "watch",
            ],
            "shortNames": ["f"],
            "categories": ["all"],
            "storageVersionHash": discovery.storage_version_hash("example.com", "v1", "Foo"),
        },
        {**subresource, "name": "foos/status", "kind": "Foo"},
        {
            **subresource,
            "name": "foos/scale",
            "group": "autoscaling",
            "version": "v1",
            "kind": "Scale",
        },
    ]


def test_a_version_shows_only_its_own_subresources() -> None:
    resource = custom(version("v1"), version("v2", subresources={"status": {}}))

    first = discovery.resource_list([resource], "example.com", "v1")
    second = discovery.resource_list([resource], "example.com", "v2")

    assert first is not None
    assert second is not None
    assert [item["name"] for item in first["resources"]] == ["foos"]
    assert [item["name"] for item in second["resources"]] == ["foos", "foos/status"]


def test_the_hash_is_that_of_the_storage_version_everywhere_and_absent_if_it_is_unserved() -> None:
    served = custom(version("v1"), version("v1beta2", storage=True))
    unserved = custom(version("v1"), version("v1beta2", storage=True, served=False))

    for name in ("v1", "v1beta2"):
        found = discovery.resource_list([served], "example.com", name)
        assert found is not None
        assert found["resources"][0]["storageVersionHash"] == "DHvGuLhiGFE="
    hidden = discovery.resource_list([unserved], "example.com", "v1")
    assert hidden is not None
    assert "storageVersionHash" not in hidden["resources"][0]


def test_a_terminating_resource_keeps_only_verbs_that_do_not_write() -> None:
    resource = custom(
        version(subresources={"status": {}}), conditions=("Established", "Terminating")
    )

    found = discovery.resource_list([resource], "example.com", "v1")

    assert found is not None
    verbs = [item["verbs"] for item in found["resources"]]
    assert verbs == [
        ["delete", "deletecollection", "get", "list", "watch"],
        ["get", "patch", "update"],
    ]


def test_names_are_those_that_were_accepted() -> None:
    resource = custom()
    accepted = custom(names={"plural": "foos", "singular": "", "kind": "Accepted"}).crd.accepted
    renamed = discovery.DiscoveryResource(replace(resource.crd, accepted=accepted))

    found = discovery.resource_list([renamed], "example.com", "v1")

    assert found is not None
    entry = found["resources"][0]
    assert (entry["kind"], entry["singularName"]) == ("Accepted", "")
    assert entry["storageVersionHash"] == discovery.storage_version_hash("example.com", "v1", "Foo")


def test_builtins_have_sorted_verbs_and_those_that_are_not_stored_have_no_hash() -> None:
    resources = [
        builtin("", "configmaps", "ConfigMap"),
        builtin("", "reviews", "Review", verbs=("create",)),
    ]

    found = discovery.resource_list(resources, "", "v1")

    assert found is not None
    assert found["groupVersion"] == "v1"
    stored, asked = found["resources"]
    assert stored["verbs"] == sorted(stored["verbs"])
    assert stored["storageVersionHash"] == discovery.storage_version_hash("", "v1", "ConfigMap")
    assert asked["verbs"] == ["create"]
    assert "storageVersionHash" not in asked


def test_aggregated_discovery_tells_everything_at_once() -> None:
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
    resource = custom(
        version("v1", subresources={"status": {}, "scale": scale}),
        version("v2"),
        scope="Cluster",
    )

    found = discovery.aggregated_discovery([resource], legacy=False)

    assert found["kind"] == "APIGroupDiscoveryList"
    assert found["apiVersion"] == "apidiscovery.k8s.io/v2"
    assert found["metadata"] == {}
    (item,) = found["items"]
    assert item["metadata"] == {"name": "example.com"}
    assert [v["version"] for v in item["versions"]] == ["v2", "v1"]
    assert {v["freshness"] for v in item["versions"]} == {"Current"}
    kind = {"group": "example.com", "version": "v1", "kind": "Foo"}
    verbs = ["get", "patch", "update"]
    assert item["versions"][1]["resources"] == [
        {
            "resource": "foos",
            "responseKind": kind,
            "scope": "Cluster",
            "singularResource": "foo",
            "verbs": list(discovery.CUSTOM_VERBS),
            "subresources": [
                {"subresource": "status", "responseKind": kind, "verbs": verbs},
                {
                    "subresource": "scale",
                    "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                    "verbs": verbs,
                },
            ],
        }
    ]
    assert "subresources" not in item["versions"][0]["resources"][0]


def test_aggregated_discovery_of_the_core_group_is_apart() -> None:
    resources = [custom(), builtin("", "configmaps", "ConfigMap")]

    (item,) = discovery.aggregated_discovery(resources, legacy=True)["items"]

    assert item["metadata"] == {}
    assert [entry["resource"] for entry in item["versions"][0]["resources"]] == ["configmaps"]


def test_the_entity_tag_is_the_quoted_upper_case_sha512() -> None:
    assert discovery.etag(b"{}") == f'"{hashlib.sha512(b"{}").hexdigest().upper()}"'


@given(st.sets(st.from_regex(r"v[1-9]((alpha|beta)[1-9])?", fullmatch=True), min_size=1))
def test_all_documents_agree_on_the_versions_of_a_group(names: set[str]) -> None:
    resource = custom(*(version(name) for name in names))

    listed = discovery.group([resource], "example.com")
    (item,) = discovery.aggregated_discovery([resource], legacy=False)["items"]

    assert listed is not None
    expected = by_priority(names)
    assert [v["version"] for v in listed["versions"]] == expected
    assert [v["version"] for v in item["versions"]] == expected
    assert all(discovery.resource_list([resource], "example.com", name) for name in names)


def test_builtin_kinds_are_named_without_their_group_and_parts_are_sorted() -> None:
    """As kube-apiserver 1.36.4 answers; clients take the group version from around it."""
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
    own = custom(version("v1", subresources={"status": {}, "scale": scale}))

    found = discovery.aggregated_discovery([own._replace(builtin=True)], legacy=False)

    [resource] = found["items"][0]["versions"][0]["resources"]
    kind = {"group": "", "version": "", "kind": "Foo"}
    assert resource["responseKind"] == kind
    assert [each["subresource"] for each in resource["subresources"]] == ["scale", "status"]
    assert resource["subresources"][1]["responseKind"] == kind
