"""Delete and deletecollection: options, preconditions, finalizers, what is answered."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest.support import Collection, failed

HOLD = {"finalizers": ["ex.com/hold"]}
SCHEME = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"


def test_an_immediate_delete_answers_success_without_a_code(foos: Collection) -> None:
    uid = foos.create("d1")["metadata"]["uid"]
    answer = foos.delete("d1")
    assert answer.status == 200
    details = {"name": "d1", "group": foos.group, "kind": "foos", "uid": uid}
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
    assert list(answer.json) == ["kind", "apiVersion", "metadata", "status", "details"]
    failed(foos.delete("d1"), 404, "NotFound", foos.say('foos.ex.io "d1" not found'))


def test_finalizers_hold_an_object_which_is_answered(foos: Collection) -> None:
    before = foos.create("held", metadata=HOLD)["metadata"]
    first = foos.delete("held")
    assert (first.status, first.json["kind"]) == (200, "Foo")
    metadata = first.json["metadata"]
    assert metadata["deletionTimestamp"] >= before["creationTimestamp"]
    assert metadata["deletionGracePeriodSeconds"] == 0
    assert metadata["generation"] == 2
    again = foos.delete("held")
    assert (again.status, again.json) == (200, first.json)


@pytest.mark.parametrize(
    ("query", "finalizers"),
    [
        ("?propagationPolicy=Foreground", ["foregroundDeletion"]),
        ("?propagationPolicy=Orphan", ["orphan"]),
        ("?orphanDependents=true", ["orphan"]),
        ("?propagationPolicy=Background", None),
        ("", None),
    ],
)
def test_propagation_adds_its_finalizer(
    foos: Collection, query: str, finalizers: list[str] | None
) -> None:
    name = "prop-" + query.strip("?").replace("=", "-").lower()
    foos.create(name.rstrip("-"))
    answer = foos.delete(name.rstrip("-"), query)
    if finalizers is None:
        assert answer.json["status"] == "Success"
    else:
        assert answer.json["metadata"]["finalizers"] == finalizers


def test_a_propagation_policy_replaces_the_finalizer_of_another_policy(foos: Collection) -> None:
    foos.create("swap", metadata={"finalizers": ["orphan", "ex.com/hold"]})
    finalizers = foos.delete("swap", "?propagationPolicy=Foreground").json["metadata"]["finalizers"]
    assert sorted(finalizers) == ["ex.com/hold", "foregroundDeletion"]


def test_without_a_policy_the_objects_own_finalizer_is_respected(foos: Collection) -> None:
    foos.create("own", metadata={"finalizers": ["orphan"]})
    assert foos.delete("own").json["metadata"]["finalizers"] == ["orphan"]


def test_orphan_dependents_false_is_202_unless_it_goes_at_once(foos: Collection) -> None:
    foos.create("legacy", metadata=HOLD)
    assert foos.delete("legacy", "?orphanDependents=false").status == 202
    foos.create("legacy-2")
    assert foos.delete("legacy-2", "?orphanDependents=false").status == 200


def test_the_grace_period_has_no_effect(foos: Collection) -> None:
    foos.create("grace")
    answer = foos.delete("grace", "", {"gracePeriodSeconds": 300})
    assert answer.json["status"] == "Success"


def test_a_body_voids_the_query(foos: Collection) -> None:
    foos.create("void")
    assert foos.delete("void", "?dryRun=All", {"preconditions": {}}).status == 200
    assert foos.request("GET", "/void").status == 404


@pytest.mark.parametrize("group_version", ["", "v1", "meta.k8s.io/v1", "ex.io/v1"])
def test_versions_of_delete_options(foos: Collection, group_version: str) -> None:
    name = f"opts-{len(group_version)}"
    foos.create(name)
    body = {"kind": "DeleteOptions", "apiVersion": foos.say(group_version), "dryRun": ["All"]}
    if not group_version:
        body = {"dryRun": ["All"]}
    assert foos.delete(name, "", body).status == 200
    assert foos.request("GET", f"/{name}").status == 200


@pytest.mark.parametrize(
    ("query", "body", "code", "reason", "message"),
    [
        ("", '{"kind":"Foo","apiVersion":"ex.io/v1"}', 400, "BadRequest",
         f'no kind "Foo" is registered for version "ex.io/v1" in scheme "{SCHEME}"'),
        ("", "{bad", 400, "BadRequest", "couldn't get version/kind; json parse error: "
         "invalid character 'b' looking for beginning of object key string"),
        ("", '{"gracePeriodSeconds":"x"}', 400, "BadRequest",
         "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of "
         "type int64"),
        ("?gracePeriodSeconds=abc", None, 400, "BadRequest",
         'strconv.ParseInt: parsing "abc": invalid syntax'),
        ("?propagationPolicy=Bogus", None, 422, "Invalid",
         'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Bogus": '
         'supported values: "Foreground", "Background", "Orphan", "nil"'),
        ("", '{"propagationPolicy":"Foreground","orphanDependents":true}', 422, "Invalid",
         'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Foreground": '
         "orphanDependents and deletionPropagation cannot be both set"),
        ("?dryRun=Some", None, 422, "Invalid",
         'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported '
         'values: "All"'),
        ("?dryRun=", None, 422, "Invalid",
         'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: [""]: supported '
         'values: "All"'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("rest", ["/absent", ""])
def test_bad_options_come_before_existence(
    foos: Collection,
    rest: str,
    query: str,
    body: str | None,
    code: int,
    reason: str,
    message: str,
) -> None:
    answer = foos.request("DELETE", rest + query, body)
    details = failed(answer, code, reason, foos.say(message))
    if code == 422:
        assert (details["group"], details["kind"]) == ("meta.k8s.io", "DeleteOptions")


def test_preconditions_name_the_kind(foos: Collection) -> None:
    metadata = foos.create("pre")["metadata"]
    uid, revision = metadata["uid"], metadata["resourceVersion"]
    answer = foos.delete("pre", "", {"preconditions": {"uid": "bad"}})
    text = (
        f'Operation cannot be fulfilled on Foo.ex.io "pre": the UID in the precondition (bad) does '
        f"not match the UID in record ({uid}). The object might have been deleted and then "
        "recreated"
    )
    details = failed(answer, 409, "Conflict", foos.say(text))
    assert details == {"name": "pre", "group": foos.group, "kind": "Foo"}
    answer = foos.delete("pre", "", {"preconditions": {"resourceVersion": "1"}})
    text = (
        'Operation cannot be fulfilled on Foo.ex.io "pre": the ResourceVersion in the precondition '
        f"(1) does not match the ResourceVersion in record ({revision}). The object might have "
        "been modified"
    )
    failed(answer, 409, "Conflict", foos.say(text))
    good = {"preconditions": {"uid": uid, "resourceVersion": revision}}
    assert foos.delete("pre", "", good).status == 200


def test_order_of_checks_on_delete(foos: Collection) -> None:
    bad = {"Accept": "text/plain", "Content-Type": "text/plain"}
    answer = foos.request("DELETE", "/absent", "{", headers=bad)
    assert answer.status == 406
    answer = foos.request("DELETE", "/absent", "{", content_type="text/plain")
    assert answer.status == 415
    answer = foos.request("DELETE", "/absent", None, content_type="text/plain")
    assert answer.status == 404, "the content type of no body does not matter"


def test_dry_run_answers_as_usual_and_deletes_nothing(foos: Collection) -> None:
    before = foos.create("dry")
    assert foos.delete("dry", "?dryRun=All").json["status"] == "Success"
    assert foos.get("dry") == before
    before = foos.create("dry-held", metadata=HOLD)
    assert "deletionTimestamp" in foos.delete("dry-held", "?dryRun=All").json["metadata"]
    assert foos.get("dry-held") == before


# --- deletecollection ------------------------------------------------------------------------


@pytest.fixture
def space(foos: Collection, request: pytest.FixtureRequest) -> Collection:
    name = "dc-" + str(abs(hash(request.node.name)))
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert foos.server.request("POST", "/api/v1/namespaces", body).status == 201
    return foos.at(namespace=name)


def names(document: Any) -> list[str]:
    return [item["metadata"]["name"] for item in document["items"]]


def test_a_collection_is_answered_as_it_was_before(space: Collection) -> None:
    space.create("a")
    space.create("b", metadata=HOLD)
    answer = space.request("DELETE", "")
    assert (answer.status, answer.json["kind"]) == (200, "FooList")
    assert names(answer.json) == ["a", "b"]
    assert not any("deletionTimestamp" in item["metadata"] for item in answer.json["items"])
    left = space.request("GET", "").json["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]
    assert "deletionTimestamp" in left[0]["metadata"]


def test_an_empty_match_is_an_empty_list(space: Collection) -> None:
    answer = space.request("DELETE", "?labelSelector=a=b")
    assert (answer.status, answer.json["items"]) == (200, [])


def test_selectors_limit_and_dry_run_of_a_collection(space: Collection) -> None:
    for name in "abcd":
        space.create(name, spec={"a": name}, metadata={"labels": {"l": name}})
    assert names(space.request("DELETE", "?dryRun=All").json) == ["a", "b", "c", "d"]
    assert names(space.request("DELETE", "?labelSelector=l=c").json) == ["c"]
    assert names(space.request("DELETE", "?fieldSelector=spec.a=d").json) == ["d"]
    first = space.request("DELETE", "?limit=1").json
    assert names(first) == ["a"]
    assert first["metadata"]["continue"]
    assert names(space.request("GET", "").json) == ["b"]
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "x"}}
    assert space.request("DELETE", "", body).status == 409
