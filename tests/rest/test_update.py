"""PUT: preconditions, what is kept, generation, writes that change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest.support import Collection, causes, failed

MODIFIED = (
    'Operation cannot be fulfilled on foos.ex.io "{}": the object has been modified; please apply '
    "your changes to the latest version and try again"
)


def changed(obj: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


def test_put_never_creates(foos: Collection) -> None:
    for extra in ({}, {"uid": "x"}, {"resourceVersion": "1"}):
        answer = foos.put(foos.obj("absent", metadata=extra))
        details = failed(answer, 404, "NotFound", foos.say('foos.ex.io "absent" not found'))
        assert details == {"name": "absent", "group": foos.group, "kind": "foos"}


@pytest.mark.parametrize("revision", [None, "0", ""])
def test_a_resource_version_is_mandatory(foos: Collection, revision: str | None) -> None:
    name = f"norv{revision}".lower()
    foos.create(name)
    extra = {} if revision is None else {"resourceVersion": revision}
    answer = foos.put(foos.obj(name, metadata=extra))
    body = "Invalid value: 0: must be specified for an update"
    text = f'foos.ex.io "{name}" is invalid: metadata.resourceVersion: {body}'
    details = failed(answer, 422, "Invalid", foos.say(text))
    assert details["kind"] == "foos"
    assert causes(answer) == [("FieldValueInvalid", body, "metadata.resourceVersion")]


def test_a_stale_resource_version_is_a_conflict(foos: Collection) -> None:
    first = foos.create("stale", spec={"a": "1"})
    assert foos.put({**first, "spec": {"a": "2"}}).status == 200
    details = failed(
        foos.put({**first, "spec": {"a": "3"}}), 409, "Conflict", foos.say(MODIFIED.format("stale"))
    )
    assert details == {"name": "stale", "group": foos.group, "kind": "foos"}


def test_a_resource_version_that_is_not_a_number_is_upstreams_bare_500(foos: Collection) -> None:
    obj = foos.create("rv-text")
    answer = foos.put(changed(obj, resourceVersion="abc"))
    failed(answer, 500, "", 'strconv.ParseUint: parsing "abc": invalid syntax')


def test_a_foreign_uid_is_a_conflict(foos: Collection) -> None:
    obj = foos.create("uid")
    real = obj["metadata"]["uid"]
    text = (
        'Operation cannot be fulfilled on foos.ex.io "uid": StorageError: invalid object, Code: 4, '
        "Key: /registry/ex.io/foos/default/uid, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: nope, UID in object meta: {real}"
    )
    failed(foos.put(changed(obj, uid="nope")), 409, "Conflict", foos.say(text))
    patched = foos.patch("uid", {"metadata": {"uid": "x"}})
    assert patched.status == 422
    assert (
        "FieldValueInvalid",
        'Invalid value: "x": field is immutable',
        "metadata.uid",
    ) in causes(patched)
    without = changed(obj)
    del without["metadata"]["uid"]
    assert foos.put(without).json["metadata"]["uid"] == real


def test_the_body_must_carry_the_urls_name_and_namespace(foos: Collection) -> None:
    obj = foos.create("a1")
    answer = foos.request("PUT", "/a1", changed(obj, name="zz"))
    text = "the name of the object (zz) does not match the name on the URL (a1)"
    failed(answer, 400, "BadRequest", text)
    nameless = changed(obj)
    del nameless["metadata"]["name"]
    text = "the name of the object (a1 based on URL) was undeterminable: name must be provided"
    failed(foos.request("PUT", "/a1", nameless), 400, "BadRequest", text)
    text = "the namespace of the provided object does not match the namespace sent on the request"
    failed(foos.request("PUT", "/a1", changed(obj, namespace="zz")), 400, "BadRequest", text)


def test_names_are_checked_before_existence(foos: Collection) -> None:
    assert foos.request("PUT", "/absent", foos.obj("other")).status == 400


def test_server_fields_are_kept(foos: Collection) -> None:
    obj = foos.create("kept")
    sent = changed(obj, creationTimestamp="2001-01-01T00:00:00Z", generation=99)
    answer = foos.put({**sent, "spec": {"a": "x"}}).json
    assert answer["metadata"]["creationTimestamp"] == obj["metadata"]["creationTimestamp"]
    assert answer["metadata"]["generation"] == 2


def test_a_deletion_timestamp_cannot_be_added(foos: Collection) -> None:
    obj = foos.create("no-delete")
    answer = foos.put(changed(obj, deletionTimestamp="2001-01-01T00:00:00Z"))
    cause = (
        "FieldValueInvalid",
        'Invalid value: "2001-01-01T00:00:00Z": field is immutable',
        "metadata.deletionTimestamp",
    )
    assert answer.status == 422
    assert cause in causes(answer)


def test_generate_name_may_change(foos: Collection) -> None:
    obj = foos.create("regen", metadata={"generateName": "a-"})
    answer = foos.put(changed(obj, generateName="b-"))
    assert answer.json["metadata"]["generateName"] == "b-"


def test_metadata_errors_are_listed_for_each_check_and_explained_once(foos: Collection) -> None:
    obj = foos.create("twice")
    answer = foos.put(changed(obj, labels={"-bad": "x"}))
    found = causes(answer)
    assert found == [found[0]] * 3
    message = answer.json["message"]
    assert message == foos.say(f'Foo.ex.io "twice" is invalid: metadata.labels: {found[0][1]}')


def test_finalizers_cannot_be_added_while_deleting(foos: Collection) -> None:
    foos.create("closing", metadata={"finalizers": ["ex.com/hold"]})
    foos.delete("closing")
    obj = foos.get("closing")
    answer = foos.put(changed(obj, finalizers=["ex.com/hold", "new.io/f"]))
    body = (
        "Forbidden: no new finalizers can be added if the object is being deleted, found new "
        'finalizers []string{"new.io/f"}'
    )
    text = f'Foo.ex.io "closing" is invalid: metadata.finalizers: {body}'
    failed(answer, 422, "Invalid", foos.say(text))
    assert causes(answer) == [("FieldValueForbidden", body, "metadata.finalizers")] * 2


def test_the_last_finalizer_gone_the_object_goes(foos: Collection) -> None:
    foos.create("last", metadata={"finalizers": ["ex.com/hold"]})
    foos.delete("last")
    obj = foos.get("last")
    answer = foos.put(changed(obj, finalizers=[]))
    assert answer.status == 200
    assert answer.json["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]
    assert "finalizers" not in answer.json["metadata"]
    assert foos.request("GET", "/last").status == 404


def test_a_write_that_changes_nothing_is_not_stored(foos: Collection) -> None:
    obj = foos.create("noop", spec={"a": "x"})
    with foos.watch(f"&resourceVersion={obj['metadata']['resourceVersion']}") as stream:
        answer = foos.put(obj)
        assert (answer.status, answer.json) == (200, obj)
        assert foos.patch("noop", {}).json == obj
        assert foos.patch("noop", {"spec": {"a": "x"}}).json == obj
        assert foos.patch("noop", {"spec": {"a": "y"}}).status == 200
        event = stream.event()
        assert event is not None
        assert event["object"]["spec"] == {"a": "y"}


def test_generation_counts_changes_outside_metadata(foos: Collection) -> None:
    obj = foos.create("gen", spec={"a": "x"}, metadata={"finalizers": ["ex.com/hold"]})
    steps: list[tuple[Any, int]] = [
        ({"metadata": {"labels": {"l": "1"}}}, 1),
        ({"spec": {"a": "y"}}, 2),
        ({"status": {"s": "ignored"}}, 2),
        ({"spec": None}, 3),
    ]
    assert obj["metadata"]["generation"] == 1
    for patch, generation in steps:
        assert foos.patch("gen", patch).json["metadata"]["generation"] == generation
    status = {**foos.get("gen"), "status": {"s": "x"}}
    assert foos.put(status, sub="/status").json["metadata"]["generation"] == 3
    assert foos.delete("gen").json["metadata"]["generation"] == 4
    assert foos.delete("gen").json["metadata"]["generation"] == 4


def test_without_the_subresource_status_is_ordinary_content(foos: Collection) -> None:
    beta = foos.at(version="v1beta1")
    beta.create("gen-beta")
    patched = beta.patch("gen-beta", {"status": {"s": "x"}}).json
    assert (patched["status"], patched["metadata"]["generation"]) == ({"s": "x"}, 2)


def test_status_is_put_back_or_removed_on_a_main_write(foos: Collection) -> None:
    obj = foos.create("back")
    assert "status" not in foos.put({**obj, "status": {"s": "x"}}).json
    foos.put({**obj, "status": {"s": "kept"}}, sub="/status")
    obj = foos.get("back")
    assert foos.put({**obj, "status": {"s": "other"}, "spec": {"a": "1"}}).json["status"] == {
        "s": "kept"
    }


def test_order_of_checks_on_update(foos: Collection) -> None:
    """name, Accept, options, Content-Type, decode, apiVersion, namespace, name match, store."""
    bad: dict[str, str] = {"Accept": "text/plain", "Content-Type": "text/plain"}
    steps: list[tuple[int, str, dict[str, str], Any]] = [
        (406, "/x?dryRun=x", bad, "{"),
        (422, "/x?dryRun=x", {"Content-Type": "text/plain"}, "{"),
        (415, "/x", {"Content-Type": "text/plain"}, "{"),
        (400, "/x", {}, "{"),
        (400, "/x", {}, {**foos.obj("y"), "apiVersion": "v9"}),
        (404, "/x", {}, foos.obj("x")),
    ]
    assert foos.request("PUT", "", "{", headers=bad).status == 400
    for status, rest, headers, body in steps:
        answer = foos.request("PUT", rest, body, headers=headers)
        assert answer.status == status, answer.text


def test_a_resource_version_beyond_all_numbers(foos: Collection) -> None:
    obj = foos.create("beyond")
    obj["metadata"]["resourceVersion"] = "9" * 5000
    answer = foos.put(obj)
    assert answer.status == 500
    assert answer.json["message"].endswith(": value out of range")
