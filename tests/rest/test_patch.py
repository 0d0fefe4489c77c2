"""PATCH: media types, each way a patch can be wrong, preconditions inside a patch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rest.support import (
    APPLY,
    JSON_PATCH,
    MERGE,
    Collection,
    causes,
    failed,
    make_crd,
    version,
)
from tests.support.server import LiveServer

REJECTED = "the server rejected our request due to an error in our request"
DECODING = "error decoding patch: "


@pytest.fixture(scope="module")
def a1(foos: Collection) -> Collection:
    """The resource with an object ``a1`` that no test changes for good."""
    foos.create("a1", spec={"a": "x", "l": ["p", "q"]}, metadata={"labels": {"k": "v"}})
    return foos


@pytest.mark.parametrize(
    "media", ["application/strategic-merge-patch+json", "", "text/plain", "application/json"]
)
def test_other_patch_types_are_415(a1: Collection, media: str) -> None:
    answer = a1.patch("a1", "{}", media)
    text = (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    failed(answer, 415, "UnsupportedMediaType", text)


def test_parameters_of_the_media_type_are_cut_off(a1: Collection) -> None:
    assert a1.patch("a1", {}, f"{MERGE}; charset=utf-8").status == 200


@pytest.mark.parametrize(
    ("media", "body", "query", "code", "reason", "message"),
    [
        (MERGE, "{bad", "", 400, "BadRequest",
         DECODING + "invalid character 'b' looking for beginning of object key string"),
        (MERGE, "{bad", "?fieldValidation=Ignore", 400, "BadRequest", "Invalid JSON Patch"),
        (MERGE, "", "", 400, "BadRequest", DECODING + "unexpected end of JSON input"),
        (MERGE, "[]", "", 400, "BadRequest",
         DECODING + "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (JSON_PATCH, "{}", "", 400, "BadRequest",
         DECODING + "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (JSON_PATCH, "{}", "?fieldValidation=Ignore", 400, "BadRequest",
         "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        (JSON_PATCH, '[{"op":"test","path":"/spec/a","value":"no"}]', "", 422, "Invalid", REJECTED),
        (JSON_PATCH, '[{"op":"remove","path":"/spec/zz"}]', "", 422, "Invalid", REJECTED),
        (JSON_PATCH, '[{"op":"nope","path":"/spec/a"}]', "", 422, "Invalid", REJECTED),
        (JSON_PATCH, '[{"op":"add","path":"/no/where","value":1}]', "", 422, "Invalid", REJECTED),
        (JSON_PATCH, '[{"op":"replace","path":"/spec/l/9","value":1}]', "", 422, "Invalid",
         REJECTED),
        (MERGE, '{"metadata":{"name":"zz"}}', "", 400, "BadRequest",
         "the name of the object (zz) does not match the name on the URL (a1)"),
        (MERGE, '{"metadata":{"namespace":"zz"}}', "", 400, "BadRequest",
         "the namespace of the provided object does not match the namespace sent on the request"),
        (MERGE, '{"metadata":null}', "", 400, "BadRequest",
         "the name of the object (a1 based on URL) was undeterminable: name must be provided"),
        (MERGE, '{"kind":"x"}', "", 422, "Invalid",
         'x.ex.io "a1" is invalid: kind: Invalid value: "x": must be Foo'),
        (MERGE, '{"apiVersion":"ex.io/v2"}', "", 422, "Invalid",
         'Foo.ex.io "a1" is invalid: apiVersion: Invalid value: "ex.io/v2": must be ex.io/v1'),
        (MERGE, '{"spec":{"n":"s"}}', "", 422, "Invalid",
         'Foo.ex.io "a1" is invalid: spec.n: Invalid value: "string": spec.n in body must be of '
         'type integer: "string"'),
        (MERGE, '{"metadata":{"resourceVersion":"1"}}', "", 409, "Conflict",
         'Operation cannot be fulfilled on foos.ex.io "a1": the object has been modified; please '
         "apply your changes to the latest version and try again"),
        (MERGE, '{"metadata":{"resourceVersion":null}}', "", 422, "Invalid",
         'foos.ex.io "a1" is invalid: metadata.resourceVersion: Invalid value: 0: must be '
         "specified for an update"),
        (MERGE, "{}", "?force=true", 422, "Invalid",
         'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for '
         "non-apply patch"),
        (APPLY, "{}", "", 422, "Invalid",
         'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for '
         "apply patch"),
        (APPLY, "apiVersion: ex.io/v1\nkind: Foo\nmetadata: {name: aply}\nspec: {zzzz: 1}",
         "?fieldManager=m&fieldValidation=Ignore", 500, "",
         "failed to create typed patch object (/aply; ex.io/v1, Kind=Foo): .spec.zzzz: field not "
         "declared in schema"),
        (APPLY, "apiVersion: ex.io/v2\nkind: Foo\nmetadata: {name: a1}", "?fieldManager=m", 400,
         "BadRequest", "invalid object type: ex.io/v2, Kind=Foo"),
        (APPLY, "apiVersion: ex.io/v1\nkind: Foo\nmetadata: {name: a1, managedFields: [{}]}",
         "?fieldManager=m", 400, "BadRequest", "metadata.managedFields must be nil"),
    ],
)  # fmt: skip
def test_refused_patches(
    a1: Collection, media: str, body: str, query: str, code: int, reason: str, message: str
) -> None:
    before = a1.get("a1")
    name = "aply" if "aply" in body else "a1"
    answer = a1.patch(name, body, media, query)
    details = failed(answer, code, reason, a1.say(message))
    if message == REJECTED:
        assert answer.json["details"] == {}
        assert details == {}
    assert a1.get("a1") == before


def test_an_array_as_a_merge_patch_with_ignore_is_undecodable(a1: Collection) -> None:
    answer = a1.patch("a1", "[]", MERGE, "?fieldValidation=Ignore")
    assert answer.status == 422
    assert answer.json["message"].startswith(
        ' "" is invalid: patch: Invalid value: "[]": couldn\'t get version/kind; json parse error: '
    )


def test_a_result_that_is_not_an_object_of_the_kind_shows_the_patched_json(a1: Collection) -> None:
    answer = a1.patch("a1", {"metadata": {"labels": {"k": 1}}})
    status = answer.json
    assert (answer.status, status["reason"]) == (422, "Invalid")
    assert status["message"].startswith(' "" is invalid: patch: Invalid value: "{\\"apiVersion\\"')
    assert status["message"].endswith(
        '": json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string'
    )
    assert list(status["details"]) == ["causes"]
    assert [cause[2] for cause in causes(answer)] == ["patch"]


def test_patching_a_missing_object_is_404(a1: Collection) -> None:
    for media, body in ((MERGE, {}), (JSON_PATCH, [])):
        answer = a1.patch("absent", body, media)
        failed(answer, 404, "NotFound", a1.say('foos.ex.io "absent" not found'))


def test_apply_creates_with_201(a1: Collection) -> None:
    body = "apiVersion: ex.io/v1\nkind: Foo\nmetadata: {name: applied}\nspec: {a: x}"
    first = a1.patch("applied", body, APPLY, "?fieldManager=m")
    again = a1.patch("applied", body, APPLY, "?fieldManager=m")
    assert (first.status, again.status) == (201, 200)
    assert first.json == again.json


def test_apply_with_a_uid_does_not_create(a1: Collection) -> None:
    body = "apiVersion: ex.io/v1\nkind: Foo\nmetadata: {name: never, uid: '1'}"
    answer = a1.patch("never", body, APPLY, "?fieldManager=m")
    text = (
        'Operation cannot be fulfilled on foos.ex.io "never": uid mismatch: the provided object '
        "specified uid 1, and no existing object was found"
    )
    failed(answer, 409, "Conflict", a1.say(text))


def test_apply_conflicts_name_manager_and_field(a1: Collection) -> None:
    body = "apiVersion: ex.io/v1\nkind: Foo\nmetadata: {name: fought}\nspec: {a: %s}"
    a1.patch("fought", body % "x", APPLY, "?fieldManager=m")
    answer = a1.patch("fought", body % "z", APPLY, "?fieldManager=other")
    details = failed(
        answer, 409, "Conflict", 'Apply failed with 1 conflict: conflict with "m": .spec.a'
    )
    assert set(details) == {"causes"}
    assert causes(answer) == [("FieldManagerConflict", 'conflict with "m"', ".spec.a")]
    a1.create("updated", spec={"a": "x"})
    answer = a1.patch("updated", body.replace("fought", "updated") % "z", APPLY, "?fieldManager=m")
    assert "conflict with" in answer.json["message"]
    assert a1.say(" using ex.io/v1: .spec.a") in answer.json["message"]
    forced = a1.patch("fought", body % "z", APPLY, "?fieldManager=other&force=true")
    assert forced.json["spec"]["a"] == "z"


def test_replace_of_an_absent_key_adds_it(a1: Collection) -> None:
    a1.create("replace", spec={})
    answer = a1.patch("replace", [{"op": "replace", "path": "/spec/a", "value": "new"}], JSON_PATCH)
    assert (answer.status, answer.json["spec"]) == (200, {"a": "new"})


def test_an_empty_patch_changes_nothing(a1: Collection) -> None:
    before = a1.get("a1")
    assert a1.patch("a1", [], JSON_PATCH).json == before
    assert a1.patch("a1", {}).json == before


def test_too_many_operations_are_413(a1: Collection) -> None:
    operations = [{"op": "test", "path": "/kind", "value": "Foo"}] * 10_001
    answer = a1.patch("a1", operations, JSON_PATCH)
    text = (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got "
        "10001"
    )
    failed(answer, 413, "RequestEntityTooLarge", text)


def test_copies_may_not_grow_without_limit(a1: Collection) -> None:
    a1.create("grow", spec={"keep": {"v": "x" * 100_000}})
    copies = [{"op": "copy", "from": "/spec/keep/v", "path": f"/spec/keep/v{n}"} for n in range(40)]
    failed(a1.patch("grow", copies, JSON_PATCH), 422, "Invalid", REJECTED)


@pytest.mark.parametrize(
    ("operations", "spec"),
    [
        ([{"op": "add", "path": "/spec/l/-", "value": "z"}], {"l": ["a", "b", "z"]}),
        ([{"op": "add", "path": "/spec/l/0", "value": "z"}], {"l": ["z", "a", "b"]}),
        ([{"op": "remove", "path": "/spec/l/0"}], {"l": ["b"]}),
        ([{"op": "move", "from": "/spec/l/0", "path": "/spec/a"}], {"a": "a", "l": ["b"]}),
        ([{"op": "copy", "from": "/spec/l/1", "path": "/spec/a"}], {"a": "b", "l": ["a", "b"]}),
        ([{"op": "test", "path": "/spec/l/1", "value": "b"}], {"l": ["a", "b"]}),
    ],
)
def test_operations(a1: Collection, operations: list[Any], spec: dict[str, Any]) -> None:
    name = f"op-{abs(hash(json.dumps(operations)))}"
    a1.create(name, spec={"l": ["a", "b"]})
    answer = a1.patch(name, operations, JSON_PATCH)
    assert answer.json["spec"] == spec


def test_large_integers_survive_a_patch(a1: Collection) -> None:
    a1.create("bigint", spec={"n": 9223372036854775807})
    answer = a1.patch("bigint", {"spec": {"a": "x"}})
    assert '"n":9223372036854775807' in answer.text


def test_a_patch_is_pruned_and_warned_about(a1: Collection) -> None:
    a1.create("prune")
    answer = a1.patch("prune", {"spec": {"unk": 1, "a": "x"}})
    assert answer.json["spec"] == {"a": "x"}
    assert answer.warnings == ['299 - "unknown field \\"spec.unk\\""']


@pytest.mark.parametrize(
    ("media", "body", "text"),
    [
        (MERGE, '{"spec":{"a":"x","a":"y","unk":1}}',
         'strict decoding error: duplicate field "spec.a", unknown field "spec.unk"'),
        (JSON_PATCH, '[{"op":"add","path":"/spec/unk","value":1,"foo":1}]',
         'strict decoding error: json patch unknown field "[0].foo", unknown field "spec.unk"'),
        (JSON_PATCH, '[{"op":"add","op":"add","path":"/spec/a","value":"x"}]',
         'strict decoding error: json patch duplicate field "[0].op"'),
    ],
)  # fmt: skip
def test_strict_validation_refuses_the_patched_object(
    a1: Collection, media: str, body: str, text: str
) -> None:
    answer = a1.patch("a1", body, media, "?fieldValidation=Strict")
    status = answer.json
    assert (answer.status, status.get("reason")) == (422, "Invalid"), answer.text
    assert status["message"].startswith(' "" is invalid: patch: Invalid value: "{')
    assert status["message"].endswith(f'": {text}')
    assert list(status["details"]) == ["causes"]


def test_warn_lists_duplicates_first(a1: Collection) -> None:
    answer = a1.patch("a1", '{"spec":{"unk":1,"a":"y","a":"x"}}')
    assert answer.warnings == [
        '299 - "duplicate field \\"spec.a\\""',
        '299 - "unknown field \\"spec.unk\\""',
    ]


def test_apply_reports_duplicates_only(a1: Collection) -> None:
    body = "apiVersion: ex.io/v1\nkind: Foo\nmetadata:\n  name: dup\nspec:\n  a: x\n  a: z\n"
    answer = a1.patch("dup", body, APPLY, "?fieldManager=m&fieldValidation=Strict")
    assert answer.status == 400
    assert answer.json["message"].startswith("error strict decoding YAML: ")
    answer = a1.patch("dup", body, APPLY, "?fieldManager=m")
    assert answer.warnings == ['299 - "line 7: key \\"a\\" already set in map"']
    assert answer.json["spec"] == {"a": "z"}


def test_a_patch_defaults_what_it_left_alone_in_an_object_of_another_version(
    server: LiveServer,
) -> None:
    one, two = version("v1", storage=True), version("v2")
    text, filled = {"type": "string"}, {"type": "string", "default": "two"}
    for each, member in ((one, text), (two, filled)):
        spec = {"type": "object", "properties": {"a": text, "x": member}}
        each["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    server.create_crd(make_crd("defaulting.ex.io", [one, two]))
    foos = Collection(server, "defaulting.ex.io")
    foos.create("a", spec={"a": "1"})
    newer = foos.at(version="v2")
    assert newer.get("a")["spec"] == {"a": "1"}
    patched = newer.patch("a", {"metadata": {"labels": {"l": "1"}}}).json
    assert patched["spec"] == {"a": "1", "x": "two"}
    assert patched["metadata"]["generation"] == 2
