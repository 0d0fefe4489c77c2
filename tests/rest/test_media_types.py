"""Accept and Content-Type, pretty printing, response headers, compression."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from tests.rest.support import PARTIAL, TABLE, Collection, failed

ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
ONLY = f"only the following media types are accepted: {ACCEPTED}"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.fixture(scope="module")
def a1(foos: Collection) -> Collection:
    foos.create("a1", spec={"a": "<&>", "m": {"z": "1", "a": "2"}})
    return foos


@pytest.mark.parametrize("media", ["", "application/json", "application/json;charset=utf-8"])
def test_json_bodies(a1: Collection, media: str) -> None:
    name = f"body-{len(media)}"
    assert a1.request("POST", "", a1.obj(name), content_type=media).status == 201


@pytest.mark.parametrize("media", ["application/yaml", "application/yaml; charset=utf-8"])
def test_yaml_bodies(a1: Collection, media: str) -> None:
    body = "apiVersion: ex.io/v1\nkind: Foo\nmetadata:\n  generateName: yaml-\nspec: {a: x}\n"
    answer = a1.request("POST", "", body, content_type=media)
    assert (answer.status, answer.json["spec"]) == (201, {"a": "x"})


@pytest.mark.parametrize("media", ["text/plain", "application/cbor", "nonsense"])
def test_other_bodies_are_415(a1: Collection, media: str) -> None:
    text = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{ACCEPTED}"
    )
    for method, rest in (("POST", ""), ("PUT", "/a1"), ("DELETE", "/a1")):
        answer = a1.request(method, rest, "{}", content_type=media)
        failed(answer, 415, "UnsupportedMediaType", text)
        assert "details" not in answer.json


def test_a_protobuf_body_of_a_custom_resource_is_refused(a1: Collection) -> None:
    """Upstream drops the connection."""
    for body in ("{}", "k8s\x00junk"):
        answer = a1.request("POST", "", body, content_type=PROTOBUF)
        assert answer.status in (400, 415), answer.text


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("application/json", "application/json"),
        ("application/json;charset=utf-8", "application/json"),
        ("application/json;bogus=1", "application/json"),
        ("application/yaml", "application/yaml"),
        ("text/plain, application/yaml", "application/yaml"),
        ("application/yaml;q=0.5, application/json;q=0.9", "application/json"),
        ("*/*, application/yaml", "application/yaml"),
        (f"{PROTOBUF},application/json", "application/json"),
    ],
)
def test_which_type_is_answered(a1: Collection, accept: str, media: str) -> None:
    answer = a1.request("GET", "/a1", headers={"Accept": accept})
    assert (answer.status, answer.header("content-type")) == (200, media)
    if media == "application/yaml":
        assert answer.text.startswith("apiVersion: ")


@pytest.mark.parametrize(
    "accept",
    [
        "text/plain",
        PROTOBUF,
        "application/json;as=Table",
        "application/json;as=Table;g=meta.k8s.io;v=v2",
        "application/json;as=Bogus;g=meta.k8s.io;v=v1",
        f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1",
    ],
)
def test_nothing_acceptable_is_406(a1: Collection, accept: str) -> None:
    answer = a1.request("GET", "/a1", headers={"Accept": accept})
    assert answer.status == 406
    if accept == PROTOBUF:
        assert answer.header("content-type") == PROTOBUF
        assert answer.body.startswith(b"k8s\x00")
        assert ONLY.encode() in answer.body
    else:
        failed(answer, 406, "NotAcceptable", ONLY)
        assert "details" not in answer.json


def test_a_wildcard_with_parameters_is_transformed(a1: Collection) -> None:
    accept = "*/*;as=Table;g=meta.k8s.io;v=v1"
    assert a1.request("GET", "/a1", headers={"Accept": accept}).json["kind"] == "Table"


def test_fallback_clauses_as_kubectl_sends_them(a1: Collection) -> None:
    accept = (
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;"
        "g=meta.k8s.io,application/json"
    )
    answer = a1.request("GET", "", headers={"Accept": accept})
    assert answer.json["apiVersion"] == "meta.k8s.io/v1"
    assert answer.header("content-type") == "application/json"


def test_errors_are_written_in_the_requested_media_type(a1: Collection) -> None:
    answer = a1.request("GET", "/absent", headers={"Accept": "application/yaml"})
    assert answer.header("content-type") == "application/yaml"
    assert "kind: Status\n" in answer.text
    for accept in ("text/plain", TABLE, PARTIAL, "*/*"):
        answer = a1.request("GET", "/absent", headers={"Accept": accept})
        assert answer.json["kind"] == "Status"
    answer = a1.request("GET", "/absent", headers={"Accept": f"{PARTIAL},{PROTOBUF}"})
    assert answer.json["code"] == 404


def test_keys_are_sorted_and_html_is_escaped(a1: Collection) -> None:
    text = a1.request("GET", "/a1").text
    assert text.endswith("}\n")
    assert '"spec":{"a":"\\u003c\\u0026\\u003e","m":{"a":"2","z":"1"}}' in text
    assert list(json.loads(text)) == ["apiVersion", "kind", "metadata", "spec"]
    status = a1.request("GET", "/absent").text
    assert status.startswith('{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure"')


@pytest.mark.parametrize(
    ("query", "agent", "pretty"),
    [
        ("?pretty=true", "x", True),
        ("?pretty=1", "x", True),
        ("?pretty=T", "x", True),
        ("?pretty=maybe", "x", False),
        ("?pretty=false", "curl/8", False),
        ("?pretty=", "curl/8", True),
        ("", "curl/8", True),
        ("", "Wget/1", True),
        ("", "Mozilla/5.0 (X11)", True),
        ("", "kubectl/v1.36", False),
    ],
)
def test_pretty_printing(a1: Collection, query: str, agent: str, pretty: bool) -> None:
    for rest in ("/a1", "", "/absent"):
        answer = a1.request("GET", rest + query, headers={"User-Agent": agent})
        if pretty:
            assert answer.text.startswith('{\n  "'), answer.text[:80]
            assert not answer.text.endswith("\n")
        else:
            assert "\n" not in answer.text[:-1]


def test_headers_of_every_answer(a1: Collection) -> None:
    for rest in ("/a1", "/absent", "", "/a1/bogus"):
        answer = a1.request("GET", rest)
        assert answer.header("cache-control") == "no-cache, private"
        uuid = r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}"
        assert re.fullmatch(uuid, answer.header("audit-id") or "")
        assert answer.header("date")


def test_an_audit_id_of_the_client_is_kept(a1: Collection) -> None:
    answer = a1.request("GET", "/a1", headers={"Audit-ID": "mine-1"})
    assert answer.header("audit-id") == "mine-1"


def test_large_responses_are_compressed_when_accepted(a1: Collection) -> None:
    a1.create("large", spec={"keep": {"v": "x" * 140_000}})
    for rest in ("/large", ""):
        answer = a1.request("GET", rest, headers={"Accept-Encoding": "br, gzip;q=0.5"})
        assert answer.header("content-encoding") == "gzip"
        assert answer.header("vary") == "Accept-Encoding"
        assert answer.body[8] == 4, "level 1"
        plain = a1.request("GET", rest)
        assert gzip.decompress(answer.body) == plain.body
        assert plain.header("content-encoding") is None
    small = a1.request("GET", "/a1", headers={"Accept-Encoding": "gzip"})
    assert small.header("content-encoding") is None
