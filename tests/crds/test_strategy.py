"""What the server writes into a CRD by itself."""

from __future__ import annotations

from instar.base.json_values import Object
from instar.kube.api.crd_codec import from_internal
from instar.kube.crds.strategy import (
    mark_deleting,
    prepare_for_create,
    prepare_for_update,
    prepare_status_update,
)
from tests.crds.make import NOW, created, internal, update_problems, written
from tests.support.crds import crd, version


def two(storage: str) -> Object:
    return crd(*(version(name, storage=name == storage) for name in ("v1", "v2")))


def stored(obj: Object, *versions: str) -> Object:
    return {**obj, "status": {**obj["status"], "storedVersions": list(versions)}}


MISSING = (
    "missing from spec.versions; v1 was previously a storage version, and must remain in "
    "spec.versions until a storage migration ensures no data remains persisted in v1 and "
    "removes v1 from status.storedVersions"
)


def test_create_loses_the_clients_status_and_starts_generation_at_one() -> None:
    obj = {**crd(), "status": {"storedVersions": ["v9"], "conditions": [{"type": "X"}]}}
    obj["metadata"]["generation"] = 7
    out = prepare_for_create(internal(obj))
    assert out["metadata"]["generation"] == 1
    assert out["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }


def test_update_keeps_status_and_bumps_generation_with_the_spec_only() -> None:
    old = created(crd())
    labelled = internal(crd())
    labelled["metadata"]["labels"] = {"a": "b"}
    assert prepare_for_update(labelled, old)["metadata"]["generation"] == 1

    changed = internal(crd(scope="Cluster"))
    changed["status"] = {"storedVersions": ["v9"]}
    out = prepare_for_update(changed, old)
    assert out["metadata"]["generation"] == 2
    assert out["status"] == old["status"]


def test_reordering_versions_is_a_change_of_the_spec() -> None:
    old = created(two("v1"))
    swapped = crd(version("v2"), version("v1", storage=True))
    assert prepare_for_update(internal(swapped), old)["metadata"]["generation"] == 2


def test_empty_and_absent_collections_are_the_same_spec() -> None:
    spelled = crd(names={"plural": "foos", "kind": "Foo", "shortNames": [], "categories": []})
    spelled["spec"]["versions"][0]["additionalPrinterColumns"] = []
    assert prepare_for_update(internal(spelled), created(crd()))["metadata"]["generation"] == 1


def test_one_and_true_are_not_the_same_default() -> None:
    def defaulting(value: object) -> Object:
        node = {"x-kubernetes-preserve-unknown-fields": True, "default": value}
        return crd(version(schema={"type": "object", "properties": {"a": node}}))

    old = created(defaulting(1))
    assert prepare_for_update(internal(defaulting(True)), old)["metadata"]["generation"] == 2


def test_storage_switch_appends_to_stored_versions() -> None:
    out = prepare_for_update(internal(two("v2")), created(two("v1")))
    assert out["status"]["storedVersions"] == ["v1", "v2"]
    back = prepare_for_update(internal(two("v1")), out)
    assert back["status"]["storedVersions"] == ["v1", "v2"]


def test_stored_version_cannot_be_removed_from_the_spec() -> None:
    gone = crd(version("v2"))
    assert update_problems(gone, two("v1")) == [
        f'status.storedVersions[0]: Invalid value: "v1": {MISSING}'
    ]


def test_version_never_stored_can_be_removed() -> None:
    assert update_problems(crd(version("v1")), two("v1")) == []


def test_status_update_restores_spec_but_takes_metadata_and_any_stored_versions() -> None:
    old = created(two("v1"))
    new = stored(internal(crd(scope="Cluster")), "v99")
    new["metadata"]["finalizers"] = ["a.b/c"]
    out = prepare_status_update(new, old)
    assert out["spec"] == old["spec"]
    assert out["metadata"]["finalizers"] == ["a.b/c"]
    assert out["metadata"]["generation"] == 1
    assert out["status"]["storedVersions"] == ["v99"]


def test_empty_stored_versions_are_defaulted_from_the_body() -> None:
    body = from_internal(created(two("v2")), "v1")
    body["status"]["storedVersions"] = []
    assert internal(body)["status"]["storedVersions"] == ["v2"]


def test_mark_deleting_sets_date_finalizer_and_condition() -> None:
    out = mark_deleting(written(crd()), NOW)
    assert out["metadata"]["deletionTimestamp"] == NOW
    assert out["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert out["metadata"]["generation"] == 1
    assert out["status"]["conditions"] == [
        {
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": NOW,
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; "
            "CustomResource deletion will begin soon",
        }
    ]
    assert mark_deleting(out, NOW)["metadata"]["finalizers"] == out["metadata"]["finalizers"]
