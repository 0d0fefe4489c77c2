"""Create: decoding, metadata, names, namespaces, what already exists."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.rest.support import APPLY, Collection, causes, failed
from tests.support.server import LiveServer

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
UNRECOGNISED = "the object provided is unrecognized (must be of type Foo): "
HANDLED = 'Foo in version "v1" cannot be handled as a Foo: '


def test_a_new_object_is_201_with_what_the_server_owns(foos: Collection) -> None:
    answer = foos.request("POST", "", foos.obj("plain", spec={"a": "x"}))
    assert answer.status == 201
    obj = answer.json
    metadata = obj["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
                        metadata["uid"])  # fmt: skip
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert metadata["generation"] == 1
    assert metadata["resourceVersion"].isdigit()
    assert metadata["namespace"] == "default"
    assert [entry["operation"] for entry in metadata["managedFields"]] == ["Update"]
    assert obj["spec"] == {"a": "x"}
    assert foos.get("plain") == obj


def test_metadata_the_server_owns_is_wiped(foos: Collection) -> None:
    sent = {
        "uid": "mine",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "selfLink": "/x",
        "generation": 77,
    }
    metadata = foos.create("wiped", metadata=sent)["metadata"]
    assert metadata["uid"] != "mine"
    assert not metadata["creationTimestamp"].startswith("2001")
    assert {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}.isdisjoint(metadata)
    assert metadata["generation"] == 1


def test_status_is_dropped_only_where_the_version_has_the_subresource(foos: Collection) -> None:
    assert "status" not in foos.create("status-v1", status={"s": "x"})
    beta = foos.at(version="v1beta1")
    assert beta.create("status-beta", status={"s": "x"})["status"] == {"s": "x"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", UNRECOGNISED + "couldn't get version/kind; json parse error: "
         "unexpected end of JSON input (<empty>)"),
        ("{bad", UNRECOGNISED + "couldn't get version/kind; json parse error: "
         "invalid character 'b' looking for beginning of object key string ({bad)"),
        ("[]", UNRECOGNISED + "couldn't get version/kind; json parse error: json: cannot "
         'unmarshal array into Go value of type struct { APIVersion string '
         '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" } (5b5d)'),
        ("{}", UNRECOGNISED + "Object 'Kind' is missing in '{}' ({})"),
        ('{"apiVersion":"ex.io/v1","metadata":{}}',
         UNRECOGNISED + "Object 'Kind' is missing in "
         "'{\"apiVersion\":\"ex.io/v1\",\"metadata\":{}}' ({\"apiVersion\":\"create.ex.io/v1 ...)"),
        ('{"kind":"Foo","metadata":{"name":"x"}}',
         "the API version in the data () does not match the expected API version (ex.io/v1)"),
        ('{"kind":"Foo","apiVersion":"ex.io/v2","metadata":{"name":"x"}}',
         "the API version in the data (ex.io/v2) does not match the expected API version "
         "(ex.io/v1)"),
        ('{"kind":"Foo","apiVersion":"other/v1","metadata":{"name":"x"}}',
         "the API version in the data (other/v1) does not match the expected API version "
         "(ex.io/v1)"),
        ('{"kind":"Foo","apiVersion":"ex.io/v1","metadata":{"labels":{"a":1}}}',
         HANDLED + "json: cannot unmarshal number into Go struct field ObjectMeta.labels of "
         "type string"),
        ('{"kind":"Foo","apiVersion":"ex.io/v1","metadata":5}',
         HANDLED + "json: cannot unmarshal number into Go value of type v1.ObjectMeta"),
        ('{"kind":"Foo","apiVersion":"ex.io/v1","metadata":{"deletionTimestamp":"bad"}}',
         HANDLED + 'parsing time "bad" as "2006-01-02T15:04:05Z07:00": cannot parse "bad" as '
         '"2006"'),
        ('{"kind":"Foo"}{', UNRECOGNISED + "couldn't get version/kind; json parse error: "
         "invalid character '{' after top-level value ({\"kind\":\"Foo\"}{)"),
    ],
)  # fmt: skip
def test_a_body_that_cannot_be_decoded_is_400(foos: Collection, body: str, message: str) -> None:
    answer = foos.request("POST", "", body)
    wanted = foos.say(message).replace("create.create.", "create.")
    failed(answer, 400, "BadRequest", wanted)


def test_another_kind_is_invalid_under_the_kind_that_was_sent(foos: Collection) -> None:
    for kind in ("Other", "FooList"):
        answer = foos.request("POST", "", {**foos.obj("k"), "kind": kind})
        text = f'{kind}.ex.io "k" is invalid: kind: Invalid value: "{kind}": must be Foo'
        details = failed(answer, 422, "Invalid", foos.say(text))
        assert details["kind"] == kind


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("1.0", "1"),
        ("1e3", "1000"),
        ("123456789012345678901234567890", "1.2345678901234568e+29"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808", "9223372036854776000"),
        ("18446744073709551615", "18446744073709552000"),
        ("0.1", "0.1"),
        ("1e21", "1e+21"),
        ("100000000000000000000", "100000000000000000000"),
    ],
)
def test_numbers_are_printed_as_go_prints_them(foos: Collection, sent: str, kept: str) -> None:
    name = "num-" + str(abs(hash(sent)))
    body = json.dumps(foos.obj(name, spec={"keep": {"v": "@"}})).replace('"@"', sent)
    answer = foos.request("POST", "", body.encode())
    assert answer.status == 201, answer.text
    assert f'"keep":{{"v":{kept}}}' in answer.text
    assert f'"keep":{{"v":{kept}}}' in foos.request("GET", f"/{name}").text


def test_metadata_passes_through_its_type(foos: Collection) -> None:
    created = foos.create("typed", metadata={"annotations": {}, "labels": {}, "zzz": 1})
    assert {"annotations", "labels", "zzz"}.isdisjoint(created["metadata"])
    answer = foos.request("POST", "", {**foos.obj(), "metadata": None})
    failed(answer, 422, "Invalid", foos.say(
        'Foo.ex.io "" is invalid: metadata.name: Required value: name or generateName is required'
    ))  # fmt: skip


def test_a_resource_version_on_create_is_upstreams_bare_500(foos: Collection) -> None:
    text = "resourceVersion should not be set on objects to be created"
    answer = foos.request("POST", "", foos.obj("rv", metadata={"resourceVersion": "5"}))
    failed(answer, 500, "", text)
    assert foos.create("rv", metadata={"resourceVersion": "0"})


@pytest.mark.parametrize(("namespace", "status"), [("", 201), ("default", 201), ("other", 400)])
def test_the_bodys_namespace_must_be_the_urls(
    foos: Collection, namespace: str, status: int
) -> None:
    answer = foos.request(
        "POST", "", foos.obj(f"ns-{namespace}x", metadata={"namespace": namespace})
    )
    if status == 400:
        text = (
            "the namespace of the provided object does not match the namespace sent on the request"
        )
        failed(answer, 400, "BadRequest", text)
    else:
        assert answer.json["metadata"]["namespace"] == "default"


def test_a_namespace_in_a_cluster_scoped_body_is_removed(bars: Collection) -> None:
    assert "namespace" not in bars.create("b", metadata={"namespace": "x"})["metadata"]


def test_a_missing_namespace_is_404_before_validation(foos: Collection) -> None:
    answer = foos.at(namespace="nope").request("POST", "", foos.obj("Bad_Name"))
    details = failed(answer, 404, "NotFound", 'namespaces "nope" not found')
    assert details == {"name": "nope", "kind": "namespaces"}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"name": "Bad_Name"},
         [("FieldValueInvalid", f'Invalid value: "Bad_Name": {SUBDOMAIN}', "metadata.name")]),
        ({"name": "a" * 254},
         [("FieldValueInvalid", f'Invalid value: "{"a" * 254}": must be no more than 253 '
           "characters", "metadata.name")]),
        ({}, [("FieldValueRequired", "Required value: name or generateName is required",
               "metadata.name")]),
        ({"name": "big-notes", "annotations": {"a": "x" * 262144}},
         [("FieldValueTooLong", "Too long: may not be more than 262144 bytes",
           "metadata.annotations")]),
        ({"name": "owner", "ownerReferences": [
            {"apiVersion": "", "kind": "", "name": "", "uid": ""}]},
         [("FieldValueInvalid", 'Invalid value: "": version must not be empty',
           "metadata.ownerReferences.apiVersion"),
          ("FieldValueInvalid", 'Invalid value: "": must not be empty',
           "metadata.ownerReferences.kind"),
          ("FieldValueInvalid", 'Invalid value: "": must not be empty',
           "metadata.ownerReferences.name"),
          ("FieldValueInvalid", 'Invalid value: "": must not be empty',
           "metadata.ownerReferences.uid")]),
        ({"name": "fin", "finalizers": ["orphan", "foregroundDeletion"]},
         [("FieldValueInvalid", 'Invalid value: ["orphan","foregroundDeletion"]: finalizer '
           "orphan and foregroundDeletion cannot be both set", "metadata.finalizers")]),
    ],
)  # fmt: skip
def test_metadata_rules(
    foos: Collection, metadata: dict[str, Any], expected: list[tuple[str, str, str]]
) -> None:
    answer = foos.request("POST", "", foos.obj(metadata=metadata))
    assert (answer.status, causes(answer)) == (422, expected)
    shown = ", ".join(f"{field}: {message}" for _, message, field in expected)
    shown = f"[{shown}]" if len(expected) > 1 else shown
    name = metadata.get("name", "")
    details = failed(answer, 422, "Invalid", foos.say(f'Foo.ex.io "{name}" is invalid: {shown}'))
    assert details["kind"] == "Foo"


@pytest.mark.parametrize("labels", [{"-bad": "x"}, {"good": "-bad"}, {"good": "x" * 64}])
def test_label_errors_point_at_all_labels(foos: Collection, labels: dict[str, str]) -> None:
    answer = foos.request("POST", "", foos.obj("labels", metadata={"labels": labels}))
    assert [field for *_, field in causes(answer)] == ["metadata.labels"]


def test_bad_finalizers_are_invalid(foos: Collection) -> None:
    answer = foos.request("POST", "", foos.obj("f", metadata={"finalizers": ["not ok!"]}))
    assert answer.status == 422
    assert {field for *_, field in causes(answer)} == {"metadata.finalizers[0]"} or {
        field for *_, field in causes(answer)
    } == {"metadata.finalizers"}


def test_finalizers_without_a_domain_warn_in_order(foos: Collection) -> None:
    finalizers = ["plain", "ex.com", "ex.com/ok", "kubernetes", "orphan", "another"]
    answer = foos.request("POST", "", foos.obj("fin-warn", metadata={"finalizers": finalizers}))
    advice = (
        "prefer a domain-qualified finalizer name {}to avoid accidental conflicts with other "
        "finalizer writers"
    )
    assert answer.warnings == [
        f'299 - "metadata.finalizers: \\"another\\": {advice.format("")}"',
        f'299 - "metadata.finalizers: \\"ex.com\\": {advice.format("including a path (/) ")}"',
        f'299 - "metadata.finalizers: \\"plain\\": {advice.format("")}"',
    ]


def test_repeated_owners_are_removed_with_a_warning(foos: Collection) -> None:
    owner = {"apiVersion": "no.where/v1", "kind": "Nobody", "name": "c", "uid": "U1"}
    owners = [owner, {**owner, "uid": "U2"}, owner, {**owner, "uid": "U2"}]
    answer = foos.request("POST", "", foos.obj("owners", metadata={"ownerReferences": owners}))
    assert answer.json["metadata"]["ownerReferences"] == owners[:2]
    text = (
        ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner "
        "references in 1.20+, and may reject such requests as early as 1.24; please fix your "
        "requests; duplicate UID(s) observed: U1, U2"
    )
    assert answer.warnings == [f'299 - "{text.format("")}"']
    patch = {"metadata": {"ownerReferences": owners}}
    answer = foos.patch("owners", patch)
    assert answer.warnings == [f'299 - "{text.format(" after mutating admission happens")}"']


# --- generateName ----------------------------------------------------------------------------


def test_a_generated_name_has_five_safe_characters(foos: Collection) -> None:
    answer = foos.request("POST", "", foos.obj(metadata={"generateName": "gen-"}))
    metadata = answer.json["metadata"]
    assert re.fullmatch(r"gen-[bcdfghjklmnpqrstvwxz2456789]{5}", metadata["name"])
    assert metadata["generateName"] == "gen-"


def test_a_generated_name_is_at_most_63_long(foos: Collection) -> None:
    answer = foos.request("POST", "", foos.obj(metadata={"generateName": "g" * 80}))
    assert len(answer.json["metadata"]["name"]) == 63


def test_generate_name_is_only_used_without_a_name(foos: Collection) -> None:
    assert foos.create("named", metadata={"generateName": "gen-"})["metadata"]["name"] == "named"


def test_a_bad_base_is_reported_for_both_names(foos: Collection) -> None:
    answer = foos.request("POST", "", foos.obj(metadata={"generateName": "Bad_"}))
    fields = [field for *_, field in causes(answer)]
    assert fields == ["metadata.generateName", "metadata.name"]


def test_eight_collisions_are_409_with_a_retry(
    foos: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def unlucky(self: Any, base: str) -> str:
        asked.append(base)
        return base + "taken"

    monkeypatch.setattr("instar.server.registry.resources.context.Context.generated_name", unlucky)
    foos.create("gen-taken")
    answer = foos.request("POST", "", foos.obj(metadata={"generateName": "gen-"}))
    text = (
        'foos.ex.io "gen-taken" already exists, the server was not able to generate a unique '
        "name for the object"
    )
    details = failed(answer, 409, "AlreadyExists", foos.say(text))
    assert details["retryAfterSeconds"] == 1
    assert answer.header("retry-after") == "1"
    assert len(asked) == 8


# --- exists, terminating ---------------------------------------------------------------------


def test_a_name_that_exists_is_409(foos: Collection) -> None:
    foos.create("twice")
    answer = foos.request("POST", "", foos.obj("twice"))
    details = failed(answer, 409, "AlreadyExists", foos.say('foos.ex.io "twice" already exists'))
    assert details == {"name": "twice", "group": foos.group, "kind": "foos"}


def test_a_name_that_is_on_its_way_out_says_so(foos: Collection) -> None:
    foos.create("going", metadata={"finalizers": ["ex.com/hold"]})
    foos.delete("going")
    answer = foos.request("POST", "", foos.obj("going"))
    text = 'object is being deleted: foos.ex.io "going" already exists'
    failed(answer, 409, "AlreadyExists", foos.say(text))


def test_validation_comes_before_existence(foos: Collection) -> None:
    foos.create("first")
    assert foos.request("POST", "", foos.obj("first", spec={"n": "x"})).status == 422


def test_nothing_is_created_while_the_crd_terminates(server: LiveServer) -> None:
    from tests.rest.support import foo_crd

    group = "terminating.ex.io"
    server.create_crd(foo_crd(group))
    foos = Collection(server, group)
    foos.create("held", metadata={"finalizers": ["ex.com/hold"]})
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert server.request("DELETE", f"{crds}/foos.{group}").status == 200
    text = (
        'foos.ex.io "{}" is forbidden: create not allowed while custom resource definition is '
        "terminating"
    )
    answer = foos.request("POST", "", foos.obj("new"))
    failed(answer, 403, "Forbidden", foos.say(text.format("new")))
    applied = "apiVersion: ex.io/v1\nkind: Foo\nmetadata: {name: new}\n"
    answer = foos.patch("new", applied, APPLY, "?fieldManager=m")
    failed(answer, 403, "Forbidden", foos.say(text.format("new")))
    held = foos.get("held")
    assert foos.put(held).status == 200
    assert foos.request("GET", "").status == 200
    assert foos.patch("held", {"metadata": {"finalizers": None}}).status == 200


# --- order of checks -------------------------------------------------------------------------


def test_order_of_checks_on_create(foos: Collection) -> None:
    """Each line mends the first thing wrong and so meets the next."""
    steps: list[tuple[int, dict[str, str], str, Any]] = [
        (406, {"Accept": "text/plain"}, "?dryRun=x", "{"),
        (415, {"Content-Type": "text/plain"}, "?dryRun=x", "{"),
        (422, {}, "?dryRun=x", "{"),
        (400, {}, "", "{"),
        (422, {}, "", {**foos.obj("Bad_Name"), "kind": "Foo"}),
    ]
    for status, headers, query, body in steps:
        answer = foos.request("POST", query, body, headers=headers)
        assert answer.status == status, answer.text
    nowhere = foos.at(namespace="nope")
    assert nowhere.request("POST", "", {**foos.obj("x"), "apiVersion": "v9"}).status == 400
    assert nowhere.request("POST", "", foos.obj("Bad_Name")).status == 404
