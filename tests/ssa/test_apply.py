"""Server-side apply as a client sees it, whatever the store and the conversion."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.ssa.support import APPLY, Things


def test_apply_creates_then_merges_and_owns_only_what_it_says(things: Things) -> None:
    first = things.apply("a", {"image": "one"})
    again = things.apply("a", {"image": "one", "replicas": 3})

    assert (first.status, again.status) == (201, 200)
    assert things.get("a")["spec"] == {"image": "one", "replicas": 3}
    assert things.owners("a") == {
        ("alice", "Apply", "v1", ""): {"f:spec": {"f:image": {}, "f:replicas": {}}}
    }


def test_a_default_is_set_but_not_owned(things: Things) -> None:
    things.apply("a", {"image": "one"})

    assert things.get("a")["spec"]["replicas"] == 1
    assert "f:replicas" not in str(things.owners("a"))


def test_applying_the_same_again_writes_nothing(things: Things) -> None:
    before = things.apply("a", {"image": "one", "tags": ["x"]}).json
    after = things.apply("a", {"image": "one", "tags": ["x"]}).json

    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert after == before


def test_a_field_no_longer_applied_is_removed_unless_another_manager_owns_it(
    things: Things,
) -> None:
    things.apply("a", {"image": "one", "tags": ["x", "y"], "maybe": "m"})
    things.apply("a", {"maybe": "m"}, manager="carol")

    things.apply("a", {"tags": ["x"]})

    spec = things.get("a")["spec"]
    assert "image" not in spec
    assert spec["tags"] == ["x"]
    assert spec["maybe"] == "m"


def test_a_conflict_names_manager_and_field_and_force_takes_over(things: Things) -> None:
    things.apply("a", {"image": "one"})

    refused = things.apply("a", {"image": "two"}, manager="carol")
    forced = things.apply("a", {"image": "two"}, manager="carol", force=True)

    assert (refused.status, refused.json["reason"]) == (409, "Conflict")
    assert refused.json["message"] == (
        'Apply failed with 1 conflict: conflict with "alice": .spec.image'
    )
    assert refused.json["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "alice"',
            "field": ".spec.image",
        }
    ]
    assert forced.status == 200
    assert things.get("a")["spec"]["image"] == "two"
    assert list(things.owners("a")) == [("carol", "Apply", "v1", "")]


def test_conflicts_with_an_updater_say_its_version(things: Things) -> None:
    things.apply("a", {"image": "one", "maybe": "m"})
    things.merge("a", {"spec": {"image": "two", "maybe": "n"}})

    refused = things.apply("a", {"image": "one", "maybe": "m"})

    assert refused.json["message"] == (
        'Apply failed with 2 conflicts: conflicts with "bob" using '
        f"{things.group}/v1:\n- .spec.image\n- .spec.maybe"
    )


def test_equal_values_are_shared(things: Things) -> None:
    things.apply("a", {"image": "one"})
    shared = things.apply("a", {"image": "one"}, manager="carol")

    assert shared.status == 200
    assert set(things.owners("a")) == {
        ("alice", "Apply", "v1", ""),
        ("carol", "Apply", "v1", ""),
    }


def test_map_lists_merge_by_key_with_defaulted_keys(things: Things) -> None:
    things.apply("a", {"ports": [{"port": 80, "name": "http"}]})
    things.apply("a", {"ports": [{"port": 443, "name": "https"}]}, manager="carol")

    assert things.get("a")["spec"]["ports"] == [
        {"port": 80, "protocol": "TCP", "name": "http"},
        {"port": 443, "protocol": "TCP", "name": "https"},
    ]
    assert 'k:{"port":443,"protocol":"TCP"}' in str(things.owners("a"))


def test_atomic_lists_and_maps_are_owned_whole(things: Things) -> None:
    things.apply("a", {"args": ["x"], "frozen": {"a": "1"}})

    refused = things.apply("a", {"args": ["y"], "frozen": {"b": "2"}}, manager="carol")

    assert refused.json["message"] == (
        'Apply failed with 2 conflicts: conflicts with "alice":\n- .spec.args\n- .spec.frozen'
    )


def test_preserved_content_is_granular(things: Things) -> None:
    things.apply("a", {"free": {"deep": {"x": 1}}})
    things.apply("a", {"free": {"deep": {"y": [1, 2]}}}, manager="carol")

    assert things.get("a")["spec"]["free"] == {"deep": {"x": 1, "y": [1, 2]}}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"zzz": 1}, ".spec.zzz: field not declared in schema"),
        ({"replicas": "x"}, ".spec.replicas: expected numeric (int or float), got string"),
        (
            {"ports": [{"port": 1}, {"port": 1}]},
            '.spec.ports: duplicate entries for key [port=1,protocol="TCP"]',
        ),
    ],
)
def test_a_config_that_does_not_fit_the_schema_is_refused(
    single: Things, spec: dict[str, Any], problem: str
) -> None:
    answer = single.apply("a", spec)

    assert answer.status == 500
    assert "reason" not in answer.json
    assert answer.json["message"] == (
        f"failed to create typed patch object (/a; {single.group}/v1, Kind=Thing): {problem}"
    )


def test_apply_to_status_owns_status_alone(things: Things) -> None:
    things.apply("a", {"image": "one"})

    answer = things.apply("a", None, manager="ctrl", sub="status", status={"phase": "Up"})

    assert answer.status == 200, answer.text
    assert things.get("a")["status"] == {"phase": "Up"}
    assert things.owners("a")[("ctrl", "Apply", "v1", "status")] == {"f:status": {"f:phase": {}}}


def test_apply_to_a_subresource_never_creates(single: Things) -> None:
    assert single.apply("nope", None, sub="status", status={"phase": "Up"}).status == 404


def test_apply_through_scale_owns_replicas(single: Things) -> None:
    single.apply("a", {"replicas": 2, "image": "one"})
    body = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a"},
        "spec": {"replicas": 5},
    }
    path = single.path("a", sub="scale")

    refused = single.server.request("PATCH", f"{path}?fieldManager=hpa", body, content_type=APPLY)
    forced = single.server.request(
        "PATCH", f"{path}?fieldManager=hpa&force=true", body, content_type=APPLY
    )

    assert refused.status == 409
    assert forced.status == 200, forced.text
    assert forced.json["spec"] == {"replicas": 5}
    owners = single.owners("a")
    assert owners[("hpa", "Apply", "v1", "scale")] == {"f:spec": {"f:replicas": {}}}
    assert owners[("alice", "Apply", "v1", "")] == {"f:spec": {"f:image": {}}}


def test_first_apply_on_an_untracked_object_meets_before_first_apply(single: Things) -> None:
    single.apply("a", {"image": "one"})
    single.merge("a", {"metadata": {"managedFields": [{}]}})
    assert single.owners("a") == {}

    refused = single.apply("a", {"image": "two"}, manager="carol")

    assert '"before-first-apply" using' in refused.json["message"]


def test_kubectls_client_side_apply_migrates_without_conflict(single: Things) -> None:
    applied = {
        "apiVersion": f"{single.group}/v1",
        "kind": "Thing",
        "metadata": {"annotations": {}, "name": "a", "namespace": "default"},
        "spec": {"image": "one"},
    }
    config = json.dumps(applied, separators=(",", ":")) + "\n"
    body = {
        "apiVersion": f"{single.group}/v1",
        "kind": "Thing",
        "metadata": {
            "name": "a",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": config},
        },
        "spec": {"image": "one"},
    }
    base = f"/apis/{single.group}/v1/namespaces/default/things"
    single.server.request("POST", f"{base}?fieldManager=kubectl-client-side-apply", body)

    migrated = single.apply("a", {"image": "two"}, manager="kubectl")

    assert migrated.status == 200, migrated.text
    annotation = migrated.json["metadata"]["annotations"][
        "kubectl.kubernetes.io/last-applied-configuration"
    ]
    assert '"image":"two"' in annotation


def test_apply_works_on_crds_and_core_objects(single: Things) -> None:
    server = single.server
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"cm-{single.group}"},
        "data": {"a": "1"},
    }
    path = f"/api/v1/namespaces/default/configmaps/cm-{single.group}"

    made = server.request("PATCH", f"{path}?fieldManager=alice", config, content_type=APPLY)
    config["data"] = {"b": "2"}
    changed = server.request("PATCH", f"{path}?fieldManager=alice", config, content_type=APPLY)

    assert (made.status, changed.status) == (201, 200)
    assert changed.json["data"] == {"b": "2"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{single.group}", "labels": {"team": "x"}},
    }
    crd_path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{single.group}"
    labelled = server.request(
        "PATCH", f"{crd_path}?fieldManager=alice", definition, content_type=APPLY
    )
    assert labelled.status == 200, labelled.text
    assert labelled.json["metadata"]["labels"] == {"team": "x"}
    assert labelled.json["spec"]["group"] == single.group


@pytest.mark.parametrize(
    ("query", "body", "code", "text"),
    [
        ("", {}, 422, "fieldManager: Required value: is required for apply patch"),
        ("?fieldManager=x", {"kind": "Other"}, 400, "invalid object type: "),
        ("?fieldManager=x", {"metadata": {"name": "other"}}, 400, "does not match the name on"),
        (
            "?fieldManager=x",
            {"metadata": {"name": "a", "managedFields": [{"manager": "m"}]}},
            400,
            "metadata.managedFields must be nil",
        ),
        ("?fieldManager=x", {"metadata": {"name": "a", "uid": "1"}}, 409, "uid mismatch"),
    ],
)
def test_refusals_of_apply(
    single: Things, query: str, body: dict[str, Any], code: int, text: str
) -> None:
    document = {
        "apiVersion": f"{single.group}/v1",
        "kind": "Thing",
        "metadata": {"name": "a"},
        **body,
    }

    answer = single.server.request("PATCH", single.path("a") + query, document, content_type=APPLY)

    assert answer.status == code
    assert text in answer.json["message"]
