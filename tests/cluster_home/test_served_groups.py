"""CRDs of the chosen groups come from the main cluster, and nothing else is shown."""

from __future__ import annotations

import copy

from tests.support.main_cluster import GROUP, REPORTS, Aggregated, crd, report
from tests.support.waiting import eventually

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_objects_are_stored_here_and_not_in_the_main_cluster(both: Aggregated) -> None:
    made = both.proxied("POST", REPORTS, report("mine", 3))

    assert made.status == 201, made.text
    assert both.proxied("GET", f"{REPORTS}/mine").json["spec"] == {"size": 3}
    assert both.main.request("GET", f"{REPORTS}/mine").status == 404


def test_the_schema_of_the_main_cluster_is_enforced(both: Aggregated) -> None:
    refused = both.proxied("POST", REPORTS, {**report("bad"), "spec": {"size": "large"}})

    assert refused.status == 422
    assert "spec.size" in refused.text


def test_a_crd_of_another_group_is_not_served(both: Aggregated) -> None:
    both.main.create_crd(crd("others", "Other", "other.example.com"))
    both.main.create_crd(crd("seconds", "Second"))

    both.serves(f"/apis/{GROUP}/v1/namespaces/default/seconds")

    assert both.proxied("GET", "/apis/other.example.com/v1/others").status == 404


def test_a_labelled_crd_of_any_group_is_served_and_no_longer_without_the_label(
    both: Aggregated,
) -> None:
    labelled = crd("labels", "Label", "labelled.example.com")
    labelled["metadata"]["labels"] = {"instar.dev/served": "true"}
    both.main.create_crd(labelled)
    path = "/apis/labelled.example.com/v1/namespaces/default/labels"
    both.serves(path)

    both.main.request(
        "PATCH",
        f"{_CRDS}/labels.labelled.example.com",
        {"metadata": {"labels": {"instar.dev/served": None}}},
        content_type="application/merge-patch+json",
    )

    eventually(lambda: both.proxied("GET", path).status == 404)


def test_a_changed_schema_is_followed(both: Aggregated) -> None:
    made = both.main.create_crd(crd("changing", "Changing"))
    path = f"/apis/{GROUP}/v1/namespaces/default/changing"
    both.serves(path)
    obj = {**report("a"), "kind": "Changing", "spec": {"size": 1, "color": "red"}}
    pruned = both.proxied("POST", path, obj)
    assert pruned.json["spec"] == {"size": 1}

    changed = copy.deepcopy(both.main.request("GET", f"{_CRDS}/{made['metadata']['name']}").json)
    schema = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["color"] = {"type": "string"}
    assert both.main.request("PUT", f"{_CRDS}/changing.{GROUP}", changed).status == 200

    def kept() -> bool:
        put = both.proxied("PATCH", f"{path}/a", {"spec": {"color": "red"}}, content_type=_MERGE)
        return "color" in put.json.get("spec", {})

    eventually(kept)


_MERGE = "application/merge-patch+json"


def test_the_status_of_the_main_clusters_crd_is_left_alone(both: Aggregated) -> None:
    path = f"{_CRDS}/reports.{GROUP}"
    before = both.main.request("GET", path).json

    both.proxied("POST", REPORTS, report("another"))

    assert both.main.request("GET", path).json == before


def test_objects_of_a_deleted_crd_are_served_again_when_it_comes_back(both: Aggregated) -> None:
    made = crd("returning", "Returning")
    path = f"/apis/{GROUP}/v1/namespaces/default/returning"
    both.main.create_crd(made)
    both.serves(path)
    assert both.proxied("POST", path, {**report("kept"), "kind": "Returning"}).status == 201

    assert both.main.request("DELETE", f"{_CRDS}/returning.{GROUP}").status == 200
    eventually(lambda: both.proxied("GET", path).status == 404)
    eventually(lambda: both.main.request("GET", f"{_CRDS}/returning.{GROUP}").status == 404)
    both.main.create_crd(made)
    both.serves(path)

    assert both.proxied("GET", f"{path}/kept").status == 200


def test_discovery_shows_only_custom_groups(both: Aggregated) -> None:
    groups = [each["name"] for each in both.proxied("GET", "/apis").json["groups"]]
    found = both.proxied("GET", "/apis", headers=(("Accept", _AGGREGATED),)).json["items"]

    assert GROUP in groups
    assert not [name for name in groups if name.endswith(".k8s.io") or "." not in name]
    assert {each["metadata"]["name"] for each in found} == set(groups)
    resources = both.proxied("GET", f"/apis/{GROUP}/v1").json["resources"]
    assert "reports" in [each["name"] for each in resources]


def test_built_in_groups_are_neither_served_nor_documented(both: Aggregated) -> None:
    for path in ("/api", "/api/v1", "/api/v1/namespaces", "/apis/apps/v1", _CRDS):
        assert both.proxied("GET", path).status == 404, path
    listed = both.proxied("GET", "/openapi/v3").json["paths"]
    assert f"apis/{GROUP}/v1" in listed
    assert all(".example.com/" in path for path in listed), listed
    swagger = both.proxied("GET", "/openapi/v2").json
    assert all(".example.com/" in path for path in swagger["paths"]), list(swagger["paths"])
