"""The status and scale subresources."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest.support import (
    APPLY,
    JSON_PATCH,
    TABLE,
    Collection,
    causes,
    failed,
    make_crd,
    version,
)
from tests.support.server import LiveServer

HANDLED = 'Scale in version "v1" cannot be handled as a Scale: '


def test_get_status_is_the_whole_object(foos: Collection) -> None:
    obj = foos.create("whole", spec={"a": "x"})
    assert foos.request("GET", "/whole/status").json == obj


def test_only_status_is_taken_from_a_put(foos: Collection) -> None:
    obj = foos.create("taken", spec={"a": "x"}, metadata={"labels": {"l": "1"}})
    wanted = {
        **obj,
        "spec": {"a": "changed"},
        "status": {"s": "new"},
        "metadata": {**obj["metadata"], "labels": {"l": "2"}, "finalizers": ["plain"]},
    }
    answer = foos.put(wanted, sub="/status")
    assert answer.status == 200
    assert answer.json["spec"] == {"a": "x"}
    assert answer.json["status"] == {"s": "new"}
    assert answer.json["metadata"]["labels"] == {"l": "1"}
    assert "finalizers" not in answer.json["metadata"]
    assert answer.warnings == [], "no finalizer warnings here"
    entries = answer.json["metadata"]["managedFields"]
    assert [entry.get("subresource", "") for entry in entries] == ["", "status"]


def test_a_status_patch_of_other_fields_changes_nothing(foos: Collection) -> None:
    obj = foos.create("noop")
    answer = foos.patch("noop", {"metadata": {"labels": {"l": "1"}}}, sub="/status")
    assert (answer.status, answer.json) == (200, obj)


def test_no_status_removes_it(foos: Collection) -> None:
    foos.create("gone")
    foos.patch("gone", {"status": {"s": "x"}}, sub="/status")
    assert "status" not in foos.patch("gone", {"status": None}, sub="/status").json
    foos.patch("gone", {"status": {"s": "x"}}, sub="/status")
    obj = foos.get("gone")
    del obj["status"]
    assert "status" not in foos.put(obj, sub="/status").json


def test_put_status_needs_what_put_needs(foos: Collection) -> None:
    obj = foos.create("needs")
    without = {**obj, "metadata": {"name": "needs"}}
    assert foos.put(without, sub="/status").status == 422
    other = {**obj, "metadata": {**obj["metadata"], "name": "zz"}}
    assert foos.request("PUT", "/needs/status", other).status == 400
    kind = foos.put({**obj, "kind": "Bar"}, sub="/status")
    text = 'Bar.ex.io "needs" is invalid: kind: Invalid value: "Bar": must be Foo'
    failed(kind, 422, "Invalid", foos.say(text))
    stale = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "1"}, "status": {"s": "x"}}
    assert foos.put(stale, sub="/status").status == 409
    absent = foos.put(foos.obj("absent", metadata={"resourceVersion": "1"}), sub="/status")
    assert absent.status == 404


def test_only_the_status_schema_is_checked_with_its_own_texts(foos: Collection) -> None:
    foos.create("check")
    answer = foos.patch("check", {"status": {"s": 1}}, sub="/status")
    body = 'Invalid value: "integer": s in body must be of type string: "integer"'
    text = foos.say(f'Foo.ex.io "check" is invalid: status.s: {body}')
    failed(answer, 422, "Invalid", text)
    assert causes(answer) == [("FieldValueTypeInvalid", body, "status.s")]


def test_unknown_fields_warn_in_status_too(foos: Collection) -> None:
    foos.create("warn")
    answer = foos.patch("warn", {"spec": {"unk": 1}, "status": {"zz": 1}}, sub="/status")
    assert answer.warnings == [
        '299 - "unknown field \\"spec.unk\\""',
        '299 - "unknown field \\"status.zz\\""',
    ]


def test_a_default_of_the_status_shows_as_soon_as_the_object_is_there(server: LiveServer) -> None:
    status = {"type": "object", "default": {"s": "new"}, "properties": {"s": {"type": "string"}}}
    schema = {"type": "object", "properties": {"status": status}}
    served = version("v1", storage=True, schema=schema, subresources={"status": {}})
    server.create_crd(make_crd("filled.ex.io", [served]))
    filled = Collection(server, "filled.ex.io")

    created, read = filled.create("a"), filled.get("a")

    assert created["status"] == read["status"] == {"s": "new"}
    assert "status" not in server.stored("filled.ex.io/foos/default/a")


def test_apply_to_a_subresource_never_creates(foos: Collection) -> None:
    body = "apiVersion: ex.io/v1\nkind: Foo\nmetadata: {name: never}\nstatus: {s: x}"
    answer = foos.patch("never", body, APPLY, "?fieldManager=m", sub="/status")
    failed(answer, 404, "NotFound", foos.say('foos.ex.io "never" not found'))


# --- scale -----------------------------------------------------------------------------------


def scale_of(foos: Collection, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": name, "namespace": foos.namespace},
        "spec": spec,
    }


def test_scale_shows_the_declared_paths(foos: Collection) -> None:
    obj = foos.create("s1", spec={"replicas": 3}, metadata={"labels": {"l": "1"}})
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    wanted = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: obj["metadata"][name] for name in kept},
        "spec": {"replicas": 3},
        "status": {"replicas": 0},
    }
    answer = foos.request("GET", "/s1/scale")
    assert answer.json == wanted
    assert list(answer.json) == ["kind", "apiVersion", "metadata", "spec", "status"]
    foos.patch("s1", {"status": {"replicas": 2, "selector": "a=b"}}, sub="/status")
    assert foos.request("GET", "/s1/scale").json["status"] == {"replicas": 2, "selector": "a=b"}


def test_zero_replicas_print_as_an_empty_spec(foos: Collection) -> None:
    foos.create("s0", spec={"replicas": 0})
    assert foos.request("GET", "/s0/scale").json["spec"] == {}


def test_without_the_field_get_is_500_and_an_idle_patch_400(foos: Collection) -> None:
    foos.create("bare", spec={})
    text = 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'
    failed(foos.request("GET", "/bare/scale"), 500, "InternalError", text)
    text = 'the spec replicas field ".spec.replicas" cannot be empty'
    failed(foos.patch("bare", {}, sub="/scale"), 400, "BadRequest", text)
    patched = foos.patch("bare", {"spec": {"replicas": 2}}, sub="/scale")
    assert patched.json["spec"] == {"replicas": 2}


def test_put_scale_sets_only_replicas(foos: Collection) -> None:
    foos.create("put", spec={"replicas": 1, "a": "x"})
    body = {**scale_of(foos, "put", replicas=5), "status": {"replicas": 99}}
    body["metadata"]["labels"] = {"l": "1"}
    answer = foos.request("PUT", "/put/scale", body)
    assert (answer.status, answer.json["kind"], answer.json["spec"]) == (
        200,
        "Scale",
        {"replicas": 5},
    )
    obj = foos.get("put")
    assert obj["spec"] == {"replicas": 5, "a": "x"}
    assert obj["metadata"]["generation"] == 2
    assert "labels" not in obj["metadata"]
    assert "status" not in obj
    scaler, creator = obj["metadata"]["managedFields"]
    assert (scaler["subresource"], scaler["fieldsV1"]) == ("scale", {"f:spec": {"f:replicas": {}}})
    assert "time" not in scaler, "as upstream, which sorts it first therefore"
    assert creator["fieldsV1"] == {"f:spec": {".": {}, "f:a": {}}}
    assert foos.request("PUT", "/put/scale", scale_of(foos, "put")).json["spec"] == {}
    assert foos.get("put")["spec"]["replicas"] == 0


def test_the_revision_of_a_scale_is_optional_but_checked(foos: Collection) -> None:
    foos.create("rev", spec={"replicas": 1})
    body = scale_of(foos, "rev", replicas=2)
    body["metadata"]["resourceVersion"] = "1"
    assert foos.request("PUT", "/rev/scale", body).status == 409
    del body["metadata"]["resourceVersion"]
    assert foos.request("PUT", "/rev/scale", body).status == 200


@pytest.mark.parametrize(
    ("change", "code", "reason", "message"),
    [
        ({"apiVersion": "ex.io/v1"}, 400, "BadRequest",
         "the API version in the data (ex.io/v1) does not match the expected API version "
         "(autoscaling/v1)"),
        ({"spec": {"replicas": "x"}}, 400, "BadRequest",
         HANDLED + "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of "
         "type int32"),
        ({"spec": {"replicas": -3}}, 422, "Invalid",
         'Foo.ex.io "bad" is invalid: .spec.replicas: Invalid value: -3: should be a non-negative '
         "integer"),
        ({"metadata": {"name": "zz"}}, 400, "BadRequest",
         "the name of the object (zz) does not match the name on the URL (bad)"),
        ({"metadata": {"name": "bad", "uid": "zz"}}, 409, "Conflict", None),
    ],
)  # fmt: skip
def test_bad_scales(
    foos: Collection, change: dict[str, Any], code: int, reason: str, message: str | None
) -> None:
    if foos.request("GET", "/bad").status == 404:
        foos.create("bad", spec={"replicas": 1})
    body = {**scale_of(foos, "bad", replicas=1), **change}
    if "apiVersion" in change:
        body["apiVersion"] = foos.say(change["apiVersion"])
    answer = foos.request("PUT", "/bad/scale", body)
    if message is None:
        assert (answer.status, answer.json["reason"]) == (code, reason)
    else:
        failed(answer, code, reason, foos.say(message))


def test_unknown_fields_of_a_scale_follow_field_validation(foos: Collection) -> None:
    foos.create("unk", spec={"replicas": 1})
    body = scale_of(foos, "unk", replicas=1, zz=1)
    answer = foos.request("PUT", "/unk/scale", body)
    assert answer.warnings == ['299 - "unknown field \\"spec.zz\\""']
    answer = foos.request("PUT", "/unk/scale?fieldValidation=Strict", body)
    text = HANDLED + 'strict decoding error: unknown field "spec.zz"'
    failed(answer, 400, "BadRequest", text)
    answer = foos.patch("unk", {"spec": {"zz": 1}}, query="?fieldValidation=Strict", sub="/scale")
    assert answer.status == 422
    assert answer.json["message"].endswith('strict decoding error: unknown field "spec.zz"')


def test_an_undecodable_patched_scale_is_422(foos: Collection) -> None:
    foos.create("undec", spec={"replicas": 1})
    answer = foos.patch("undec", {"spec": {"replicas": "x"}}, sub="/scale")
    assert answer.status == 422
    message = answer.json["message"]
    assert message.startswith(' "" is invalid: patch: Invalid value: "{')
    assert message.endswith(
        "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32"
    )


def test_a_json_patch_of_scale(foos: Collection) -> None:
    foos.create("jp", spec={"replicas": 1})
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 7}]
    answer = foos.patch("jp", operations, JSON_PATCH, sub="/scale")
    assert answer.json["spec"] == {"replicas": 7}
    before = foos.get("jp")["metadata"]["resourceVersion"]
    assert foos.patch("jp", operations, JSON_PATCH, sub="/scale").status == 200
    assert foos.get("jp")["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    ("spec", "status", "causes_"),
    [
        ({"replicas": -3}, {},
         [("FieldValueInvalid", "Invalid value: -3: should be a non-negative integer",
           ".spec.replicas")]),
        ({"replicas": 2147483648}, {},
         [("FieldValueInvalid", "Invalid value: 2147483648: should be less than or equal to "
           "2147483647", ".spec.replicas")]),
    ],
)  # fmt: skip
def test_ordinary_writes_respect_the_range(
    foos: Collection, spec: Any, status: Any, causes_: list[tuple[str, str, str]]
) -> None:
    answer = foos.request("POST", "", foos.obj("range", spec=spec))
    assert (answer.status, causes(answer)) == (422, causes_)


def test_a_wrong_type_is_reported_by_schema_and_scale(foos: Collection) -> None:
    answer = foos.request("POST", "", foos.obj("wrong", spec={"replicas": "x"}))
    last = (
        "FieldValueInvalid",
        "Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64",
        ".spec.replicas",
    )
    assert causes(answer)[-1] == last
    assert [cause[0] for cause in causes(answer)] == ["FieldValueTypeInvalid", "FieldValueInvalid"]


def test_scale_as_a_table(foos: Collection) -> None:
    foos.create("table", spec={"replicas": 4})
    answer = foos.request("GET", "/table/scale", headers={"Accept": TABLE})
    table = answer.json
    columns = [(column["name"], column["type"]) for column in table["columnDefinitions"]]
    assert columns == [("Name", "string"), ("Desired", "integer"), ("Available", "integer"),
                       ("Age", "date")]  # fmt: skip
    described = [column["description"] for column in table["columnDefinitions"]]
    assert described[1:3] == ["Number of desired replicas", "Number of actual replicas"]
    assert described[3].startswith("CreationTimestamp is a timestamp")
    assert table["rows"][0]["cells"][:3] == ["table", 4, 0]
