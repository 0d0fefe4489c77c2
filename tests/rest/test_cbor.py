"""CBOR behind its gate, as kube-apiserver 1.36.4 with CBORServingAndStorage answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from instar.base.json_values import Object
from instar.kube.api.encoding.cbor_reading import items, read_cbor
from instar.kube.api.encoding.cbor_writing import SELF_DESCRIBED, Encoded, write_cbor
from tests.rest.support import Collection, failed
from tests.support.server import Answer, LiveServer, live_server

CBOR, SEQUENCE = "application/cbor", "application/cbor-seq"
APPLY = "application/apply-patch+cbor"
ACCEPTED = f"application/json, application/yaml, application/vnd.kubernetes.protobuf, {CBOR}"
PARTIAL = f"{CBOR};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = f"{CBOR};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = f"{CBOR};as=Table;g=meta.k8s.io;v=v1"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(cbor=True) as running:
        yield running


@pytest.fixture(scope="module")
def secrets(server: LiveServer) -> Collection:
    made = Collection(server, "", "secrets", "Secret")
    made.create("one", data={"a": "aGk="})
    return made


@pytest.fixture(scope="module")
def a1(foos: Collection) -> Collection:
    foos.create("a1", spec={"a": "x", "n": 1, "f": 1.5, "keep": {"big": 2**62, "no": None}})
    return foos


def _ask(at: Collection, method: str, rest: str = "", body: Any = None, **how: Any) -> Answer:
    sent = body if body is None or isinstance(body, bytes) else write_cbor(body)
    headers = {"Accept": how.get("accept", CBOR)}
    media = how.get("content_type", CBOR)
    return at.request(method, rest, sent, content_type=media, headers=headers)


def _told(answer: Answer) -> Any:
    assert answer.header("content-type") == CBOR
    assert answer.body.startswith(SELF_DESCRIBED)
    return read_cbor(answer.body)


@pytest.mark.parametrize("rest", ["/a1", "", "/a1/status", "/a1/scale", "/none", "?limit=1"])
def test_a_custom_resource_is_the_same_in_cbor_and_json(a1: Collection, rest: str) -> None:
    answer = _ask(a1, "GET", rest)

    assert _told(answer) == a1.request("GET", rest).json


@pytest.mark.parametrize("rest", ["/one", "", "/none", "?limit=1"])
def test_a_built_in_kind_is_the_same_in_cbor_and_json(secrets: Collection, rest: str) -> None:
    answer = _ask(secrets, "GET", rest)

    assert _told(answer) == secrets.request("GET", rest).json


def test_binary_fields_are_sent_as_bytes_that_a_text_is_encoded_from(secrets: Collection) -> None:
    assert b"\xd6\x42hi" in _ask(secrets, "GET", "/one").body


@pytest.mark.parametrize(("accept", "rest"), [(PARTIAL, "/a1"), (PARTIAL_LIST, "")])
def test_metadata_alone_can_be_had(a1: Collection, accept: str, rest: str) -> None:
    told = _told(_ask(a1, "GET", rest, accept=accept))

    one = told["items"][0] if "items" in told else told
    assert sorted(one) == ["apiVersion", "kind", "metadata"]


@pytest.mark.parametrize("accept", [TABLE, SEQUENCE])
def test_other_forms_are_406(a1: Collection, secrets: Collection, accept: str) -> None:
    only = f"only the following media types are accepted: {ACCEPTED}"
    router = f"406: Not Acceptable\n\nAvailable representations: {ACCEPTED}"

    failed(_ask(a1, "GET", accept=accept), 406, "NotAcceptable", only)
    refused = _ask(secrets, "GET", accept=accept)
    failed(refused, 406, "NotAcceptable", only if accept == TABLE else router)


@pytest.mark.parametrize("path", ["/apis", "/api/v1", "/apis/apps", "/version"])
def test_discovery_has_no_cbor(server: LiveServer, path: str) -> None:
    assert server.request("GET", path, headers={"Accept": CBOR}).status == 406


def test_a_written_object_is_stored_as_from_json(a1: Collection) -> None:
    obj = a1.obj("written", spec={"a": "x", "f": 1.0, "keep": {"t": Encoded(b"\xc1\x00")}})

    created = _told(_ask(a1, "POST", "", obj))
    created["spec"]["a"] = "y"
    updated = _told(_ask(a1, "PUT", "/written", created))

    assert updated == a1.request("GET", "/written").json
    assert updated["spec"] == {"a": "y", "f": 1, "keep": {"t": "1970-01-01T00:00:00Z"}}


@pytest.mark.parametrize("value", [b"hi", "aGk="])
def test_binary_fields_are_read_from_bytes_and_from_base64(
    secrets: Collection, value: bytes | str
) -> None:
    obj = {"metadata": {"name": f"of-{len(value)}"}, "data": {"a": value}}

    assert _told(_ask(secrets, "POST", "", obj))["data"] == {"a": "aGk="}


def test_an_apply_in_cbor_owns_fields(a1: Collection) -> None:
    rest = "/applied?fieldManager=m"

    created = _ask(a1, "PATCH", rest, a1.obj("applied", spec={"a": "x"}), content_type=APPLY)
    again = _ask(a1, "PATCH", rest, a1.obj("applied", spec={"n": 2}), content_type=APPLY)

    assert (created.status, again.status) == (201, 200)
    assert _told(again)["spec"] == {"n": 2}
    assert [entry["operation"] for entry in _told(again)["metadata"]["managedFields"]] == ["Apply"]


def test_a_scale_is_written_in_cbor(a1: Collection) -> None:
    a1.create("scaled", spec={"replicas": 1})
    scale = _told(_ask(a1, "GET", "/scaled/scale"))

    updated = _told(_ask(a1, "PUT", "/scaled/scale", {**scale, "spec": {"replicas": 2}}))
    applied = _ask(
        a1,
        "PATCH",
        "/scaled/scale?fieldManager=m&force=true",
        {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 3}},
        content_type=APPLY,
    )

    assert updated["spec"] == {"replicas": 2}
    assert _told(applied)["spec"] == {"replicas": 3}


def test_other_patches_have_no_form_in_cbor(a1: Collection, secrets: Collection) -> None:
    media = "application/merge-patch+cbor"

    for at, name in ((a1, "/a1"), (secrets, "/one")):
        assert _ask(at, "PATCH", name, {}, content_type=media).status == 415


def test_options_of_a_deletion_are_read(a1: Collection) -> None:
    a1.create("goes")
    stale = {"preconditions": {"uid": "other"}}

    assert _ask(a1, "DELETE", "/goes", stale).status == 409
    assert _told(_ask(a1, "DELETE", "/goes", {"gracePeriodSeconds": 0}))["status"] == "Success"
    refused = _told(_ask(a1, "DELETE", "/goes", b"\xff"))
    assert refused["message"] == (
        'unable to determine group/version/kind: cbor: unexpected "break" code'
    )


_UNRECOGNISED = "the object provided is unrecognized (must be of type Foo): "


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "unable to determine group/version/kind: EOF (<empty>)"),
        (b"{}", "unable to determine group/version/kind: unexpected EOF ({})"),
        (
            b"\xa2\x44kind\x43Foo\x44kind\x43Foo",
            "unable to determine group/version/kind: cbor: found duplicate map key "
            '"kind" at map element index 1 (a2446b696e6443466f6f446b696e6443466f6f)',
        ),
        (
            b"\xa1\x44kind\x40",
            "Object 'Kind' is missing in 'a1446b696e6440' (a1446b696e6440)",
        ),
    ],
)
def test_a_body_that_is_no_object_is_400(a1: Collection, body: bytes, message: str) -> None:
    answer = _ask(a1, "POST", "", body)

    assert answer.status == 400
    assert _told(answer)["message"] == _UNRECOGNISED + message


def test_a_value_that_json_lacks_is_400(a1: Collection) -> None:
    answer = _ask(a1, "POST", "", a1.obj("undefined", spec=Encoded(b"\xf7")))

    assert answer.status == 400
    assert _told(answer)["message"] == (
        'Foo in version "v1" cannot be handled as a Foo: cbor: data item of cbor type '
        "primitives is not accepted by protocol: simple value 23 is not recognized"
    )


def test_an_applied_configuration_that_is_no_object_is_400(a1: Collection) -> None:
    answer = _ask(a1, "PATCH", "/a1?fieldManager=m", b"\x80", content_type=APPLY)

    assert answer.status == 400
    assert _told(answer)["message"] == (
        "error decoding YAML: cbor: cannot unmarshal array into Go value of type "
        "map[string]interface {}"
    )


def test_unknown_fields_are_reported_by_field_validation(a1: Collection) -> None:
    obj = a1.obj("strict", other=1)

    assert _ask(a1, "POST", "?fieldValidation=Strict", obj).status == 400
    assert _ask(a1, "POST", "", obj).status == 201


@pytest.mark.parametrize("accept", [CBOR, f"{CBOR};stream=watch", PARTIAL])
def test_a_watch_is_a_sequence_of_events(a1: Collection, accept: str) -> None:
    watched = "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=a1"

    answer = _ask(a1, "GET", watched, accept=accept)

    assert answer.header("content-type") == SEQUENCE
    [event] = (read_cbor(item) for item in items(answer.body))
    whole: Object = a1.request("GET", "/a1").json
    expected = whole if accept != PARTIAL else {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": whole["metadata"],
    }  # fmt: skip
    assert event == {"type": "ADDED", "object": expected}
    assert answer.body.count(SELF_DESCRIBED) == 2


@pytest.mark.parametrize("accept", [SEQUENCE, TABLE])
def test_a_watch_in_another_form_is_406(a1: Collection, accept: str) -> None:
    text = f"only the following media types are accepted: {ACCEPTED}"

    failed(_ask(a1, "GET", "?watch=1", accept=accept), 406, "NotAcceptable", text)


def test_a_client_that_accepts_two_forms_gets_the_one_that_is_offered(a1: Collection) -> None:
    answer = _ask(a1, "GET", "/a1", accept=f"{SEQUENCE}, {CBOR};q=0.9, application/json;q=0.5")

    assert _told(answer)["metadata"]["name"] == "a1"
