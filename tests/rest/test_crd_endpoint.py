"""CustomResourceDefinitions as a resource: create, update, status, delete, and their refusals."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest.support import JSON_PATCH, MERGE, Collection, causes, failed, make_crd, version
from tests.support.server import LiveServer

CRD = "CustomResourceDefinition"
HANDLED = f'{CRD} in version "v1" cannot be handled as a {CRD}: '


@pytest.fixture(scope="module")
def crds(server: LiveServer) -> Collection:
    return Collection(
        server, "apiextensions.k8s.io", "customresourcedefinitions", CRD, namespace=""
    )


def crd(group: str, **more: Any) -> dict[str, Any]:
    return make_crd(group, more.pop("versions", [version("v1", storage=True)]), **more)


def made(crds: Collection, group: str, **more: Any) -> dict[str, Any]:
    answer = crds.request("POST", "", crd(group, **more))
    assert answer.status == 201, answer.text
    return crds.get(f"foos.{group}")


def test_the_answer_to_a_create_shows_an_empty_status(crds: Collection) -> None:
    sent = crd("empty.ex.io")
    sent["metadata"] |= {"namespace": "x", "generation": 7, "uid": "mine"}
    sent["status"] = {"storedVersions": ["v9"], "acceptedNames": {"plural": "x", "kind": "X"}}
    answer = crds.request("POST", "", sent)
    assert answer.status == 201
    obj = answer.json
    assert obj["metadata"]["generation"] == 1
    assert "namespace" not in obj["metadata"]
    assert obj["metadata"]["uid"] != "mine"
    assert obj["status"] == {
        "acceptedNames": {"kind": "", "plural": ""},
        "conditions": None,
        "storedVersions": ["v1"],
    }


def test_generate_name_fails_the_name_rule(crds: Collection) -> None:
    body = crd("generated.ex.io")
    body["metadata"] = {"generateName": "foos-"}
    answer = crds.request("POST", "", body)
    assert answer.status == 422
    assert any(field == "metadata.name" for *_, field in causes(answer))


def test_status_is_not_the_main_resources_to_change(crds: Collection) -> None:
    obj = made(crds, "keepstatus.ex.io")
    answer = crds.put({**obj, "status": {"storedVersions": ["v9"]}})
    assert (answer.status, answer.json["status"]) == (200, obj["status"])
    assert answer.json["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]


def test_generation_counts_changes_of_the_spec(crds: Collection) -> None:
    name = made(crds, "gencrd.ex.io")["metadata"]["name"]
    for patch, generation in (
        ({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}, 1),
        ({"spec": {"names": {"shortNames": ["fo"]}}}, 2),
        ({"spec": {"names": {"shortNames": ["fo"]}}}, 2),
        ({"spec": {"versions": [version("v1", storage=True), version("v2")]}}, 3),
        ({"spec": {"versions": [version("v2"), version("v1", storage=True)]}}, 4),
    ):
        answer = crds.patch(name, patch)
        assert answer.json["metadata"]["generation"] == generation, patch


def test_a_new_storage_version_is_appended_at_once(crds: Collection) -> None:
    versions = [version("v1", storage=True), version("v2")]
    name = made(crds, "stored.ex.io", versions=versions)["metadata"]["name"]
    moved = [version("v1"), version("v2", storage=True)]
    answer = crds.patch(name, {"spec": {"versions": moved}})
    assert answer.json["status"]["storedVersions"] == ["v1", "v2"]
    answer = crds.patch(name, {"spec": {"versions": [version("v2", storage=True)]}})
    text = (
        'Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, '
        "and must remain in spec.versions until a storage migration ensures no data remains "
        "persisted in v1 and removes v1 from status.storedVersions"
    )
    assert (answer.status, causes(answer)) == (
        422, [("FieldValueInvalid", text, "status.storedVersions[0]")],
    )  # fmt: skip
    assert crds.patch(name, {"status": {"storedVersions": ["v2"]}}, sub="/status").status == 200
    answer = crds.patch(name, {"spec": {"versions": [version("v2", storage=True)]}})
    assert answer.status == 200


def test_status_takes_metadata_and_leaves_the_spec(crds: Collection) -> None:
    name = made(crds, "viastatus.ex.io")["metadata"]["name"]
    patch = {
        "metadata": {"labels": {"l": "1"}, "finalizers": ["ex.com/f"]},
        "spec": {"scope": "Cluster"},
        "status": {"storedVersions": ["v1", "v99"]},
    }
    answer = crds.patch(name, patch, sub="/status")
    assert answer.status == 200, answer.text
    metadata = answer.json["metadata"]
    assert (metadata["labels"], metadata["finalizers"]) == ({"l": "1"}, ["ex.com/f"])
    assert metadata["generation"] == 1
    assert answer.json["spec"]["scope"] == "Namespaced"
    assert answer.json["status"]["storedVersions"] == ["v1", "v99"]
    spec = crds.patch(name, {"spec": {"names": {"shortNames": ["x"]}}})
    assert [field for *_, field in causes(spec)] == ["status.storedVersions[1]"]
    empty = crds.patch(name, {"status": {"storedVersions": []}}, sub="/status")
    assert empty.json["status"]["storedVersions"] == ["v1"], "defaulted from the spec"
    crds.patch(name, {"metadata": {"finalizers": None}})


def test_refusals_of_the_crd_resource(crds: Collection) -> None:
    name = made(crds, "refuse.ex.io")["metadata"]["name"]
    full = f'customresourcedefinitions.apiextensions.k8s.io "{name}"'
    details = failed(
        crds.request("POST", "", crd("refuse.ex.io")),
        409,
        "AlreadyExists",
        f"{full} already exists",
    )
    assert details["kind"] == "customresourcedefinitions"
    for method in ("GET", "DELETE"):
        answer = crds.request(method, "/x.y.z")
        text = 'customresourcedefinitions.apiextensions.k8s.io "x.y.z" not found'
        failed(answer, 404, "NotFound", text)
    obj = crds.get(name)
    stale = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "1"}}
    stale["spec"] = {**obj["spec"], "names": {**obj["spec"]["names"], "shortNames": ["s"]}}
    text = (
        f"Operation cannot be fulfilled on {full}: the object has been modified; please apply "
        "your changes to the latest version and try again"
    )
    failed(crds.put(stale), 409, "Conflict", text)
    without = {**obj, "metadata": {"name": name}}
    text = (
        f"{full} is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an "
        "update"
    )
    details = failed(crds.put(without), 422, "Invalid", text)
    assert details["kind"] == "customresourcedefinitions"
    answer = crds.request("PUT", "/other.ex.io", obj)
    text = f"the name of the object ({name}) does not match the name on the URL (other.ex.io)"
    failed(answer, 400, "BadRequest", text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"apiVersion": "apiextensions.k8s.io/v9"},
         "the API version in the data (apiextensions.k8s.io/v9) does not match the expected API "
         "version (apiextensions.k8s.io/v1)"),
        ({"spec": {"versions": "x"}},
         HANDLED + "json: cannot unmarshal string into Go struct field "
         "CustomResourceDefinitionSpec.spec.versions of type []v1.CustomResourceDefinitionVersion"),
    ],
)  # fmt: skip
def test_bodies_that_are_not_a_crd_are_refused(
    crds: Collection, change: dict[str, Any], message: str
) -> None:
    answer = crds.request("POST", "", {**crd("body.ex.io"), **change})
    failed(answer, 400, "BadRequest", message)


def test_another_kind_is_not_registered(crds: Collection) -> None:
    answer = crds.request("POST", "", {**crd("kind.ex.io"), "kind": "Foo"})
    assert answer.status == 400
    assert answer.json["message"].startswith(
        f'Foo in version "v1" cannot be handled as a {CRD}: no kind "Foo" is registered for '
        'version "apiextensions.k8s.io/v1" in scheme "'
    )


def test_post_to_a_name_is_405(crds: Collection) -> None:
    answer = crds.request("POST", "/foos.x.io", crd("x.io"))
    text = "the server does not allow this method on the requested resource"
    assert failed(answer, 405, "MethodNotAllowed", text) == {}
    assert answer.json["details"] == {}


def test_a_bad_patch_type_of_a_crd_has_a_message_of_its_own(crds: Collection) -> None:
    name = made(crds, "patchtype.ex.io")["metadata"]["name"]
    answer = crds.patch(name, {}, "text/plain")
    failed(answer, 415, "UnsupportedMediaType", "415: Unsupported Media Type")
    assert crds.patch(name, [], JSON_PATCH).status == 200


def test_unknown_fields_of_a_crd(crds: Collection) -> None:
    body = crd("unknown.ex.io")
    body["spec"]["foo"] = 1
    schema = {"type": "object", "bogus": 1}
    body["spec"]["versions"] = [version("v1", storage=True, schema=schema)]
    strict = crds.request("POST", "?fieldValidation=Strict", body)
    text = (
        "strict decoding error: unknown field "
        '"spec.versions[0].schema.openAPIV3Schema.bogus", unknown field "spec.foo"'
    )
    failed(strict, 400, "BadRequest", HANDLED + text)
    answer = crds.request("POST", "", body)
    assert answer.warnings == [
        '299 - "unknown field \\"spec.versions[0].schema.openAPIV3Schema.bogus\\""',
        '299 - "unknown field \\"spec.foo\\""',
    ]
    quiet = crds.request(
        "POST", "?fieldValidation=Ignore&dryRun=All", crd("quiet.ex.io") | {"x": 1}
    )
    assert (quiet.status, quiet.warnings) == (201, [])


def test_unrecognized_formats_warn_once(crds: Collection) -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "format": "made-up"},
            "b": {"type": "integer", "format": "int32"},
        },
    }
    versions = [version("v1", storage=True, schema=schema)]
    answer = crds.request("POST", "", crd("formats.ex.io", versions=versions))
    assert answer.warnings == ['299 - "unrecognized format \\"made-up\\""']
    patched = crds.patch("foos.formats.ex.io", {"spec": {"names": {"shortNames": ["f"]}}})
    assert (patched.status, patched.warnings) == (200, [])


# --- delete ----------------------------------------------------------------------------------


def test_delete_answers_the_crd_on_its_way_out(crds: Collection) -> None:
    name = made(crds, "going.ex.io")["metadata"]["name"]
    foos = Collection(crds.server, "going.ex.io")
    foos.create("held", metadata={"finalizers": ["ex.com/hold"]})
    dry = crds.delete(name, "?dryRun=All")
    assert "deletionTimestamp" in dry.json["metadata"]
    assert "deletionTimestamp" not in crds.get(name)["metadata"]
    answer = crds.delete(name, "?propagationPolicy=Foreground")
    assert (answer.status, answer.json["kind"]) == (200, CRD)
    metadata = answer.json["metadata"]
    assert "deletionGracePeriodSeconds" not in metadata
    assert metadata["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert metadata["generation"] == 1
    (condition,) = [c for c in answer.json["status"]["conditions"] if c["type"] == "Terminating"]
    assert (condition["status"], condition["reason"]) == ("True", "InstanceDeletionPending")
    again = crds.delete(name)
    assert (again.status, again.json["metadata"]["deletionGracePeriodSeconds"]) == (200, 0)
    text = (
        f'object is being deleted: customresourcedefinitions.apiextensions.k8s.io "{name}" '
        "already exists"
    )
    failed(crds.request("POST", "", crd("going.ex.io")), 409, "AlreadyExists", text)
    answer = crds.patch(name, {"metadata": {"finalizers": [*metadata["finalizers"], "new.com/f"]}})
    body = (
        "Forbidden: no new finalizers can be added if the object is being deleted, found new "
        'finalizers []string{"new.com/f"}'
    )
    assert causes(answer) == [("FieldValueForbidden", body, "metadata.finalizers")] * 2
    foos.patch("held", {"metadata": {"finalizers": None}})


def test_delete_preconditions_of_a_crd(crds: Collection) -> None:
    obj = made(crds, "precond.ex.io")
    name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
    answer = crds.delete(name, "", {"preconditions": {"uid": "nope"}})
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")
    assert (
        f"Precondition failed: UID in precondition: nope, UID in object meta: {uid}"
        in answer.json["message"]
    )
    answer = crds.delete(name, "", {"preconditions": {"resourceVersion": "1"}})
    assert (
        "Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: "
        in answer.json["message"]
    )


def test_a_crd_that_was_never_established_goes(crds: Collection) -> None:
    crds.request("POST", "", make_crd("clash.ex.io", [version("v1", storage=True)]))
    second = make_crd("clash.ex.io", [version("v1", storage=True)], plural="bars", kind="Foo")
    crds.request("POST", "", second)
    conditions = {
        c["type"]: c["status"] for c in crds.get("bars.clash.ex.io")["status"]["conditions"]
    }
    assert conditions == {"NamesAccepted": "False", "Established": "False"}
    assert crds.server.request("GET", "/apis/clash.ex.io/v1/bars").status == 404
    assert crds.delete("bars.clash.ex.io").status == 200


def test_patches_by_media_type(crds: Collection) -> None:
    name = made(crds, "media.ex.io")["metadata"]["name"]
    strategic = "application/strategic-merge-patch+json"
    for media in (MERGE, strategic):
        answer = crds.patch(name, {"spec": {"names": {"categories": [media[12:15]]}}}, media)
        assert answer.json["spec"]["names"]["categories"] == [media[12:15]]


def test_established_that_a_client_removes_is_computed_again(crds: Collection) -> None:
    obj = made(crds, "established.again.ex.io")
    name, conditions = obj["metadata"]["name"], obj["status"]["conditions"]
    kept = [each for each in conditions if each["type"] != "Established"]

    answer = crds.request(
        "PATCH", f"/{name}/status", {"status": {"conditions": kept}}, content_type=MERGE
    )

    assert answer.status == 200
    now = {each["type"]: each["status"] for each in crds.get(name)["status"]["conditions"]}
    assert now == {"NamesAccepted": "True", "Established": "True"}


def test_a_schema_that_becomes_structural_loses_the_condition(crds: Collection) -> None:
    group, old = "structural.again.ex.io", crds.at(version="v1beta1")
    body = {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": CRD,
        "metadata": {"name": f"foos.{group}"},
        "spec": {
            "group": group,
            "version": "v1",
            "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "preserveUnknownFields": True,
            "validation": {"openAPIV3Schema": {"properties": {"a": {"type": "string"}}}},
        },
    }
    assert old.request("POST", "", body).status == 201
    before = crds.get(f"foos.{group}")
    assert "NonStructuralSchema" in str(before["status"]["conditions"])
    before["spec"] |= {"preserveUnknownFields": False}
    before["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"] = "object"

    assert crds.put(before).status == 200

    after = crds.get(f"foos.{group}")
    assert "NonStructuralSchema" not in str(after["status"]["conditions"])
