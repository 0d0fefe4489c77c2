"""Whatever a client sends, it gets a 4xx with a reason, never a 500, and nothing is half done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rest.support import APPLY, JSON_PATCH, MERGE, Collection, KeptAlive, foo_crd
from tests.support.server import Answer, LiveServer

UNRECOGNISED = "the object provided is unrecognized (must be of type Foo): "
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "spec", "name", "labels", "a", "status", "op", "path", "n"]
            )
            | st.text(max_size=6),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
RELAXED = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
EXPECTED_500 = (
    "resourceVersion should not be set on objects to be created",
    "strconv.ParseUint: parsing ",
    "failed to create typed patch object",
    "failed to create manager for existing fields",
)


@pytest.fixture(scope="module")
def foos(server: LiveServer) -> Iterator[Collection]:
    group = "bad-input.ex.io"
    server.create_crd(foo_crd(group))
    kept = KeptAlive(server)
    yield Collection(kept, group)
    kept.close()


def never_our_fault(answer: Answer) -> None:
    """500 only where upstream is documented to say 500, with its very text."""
    if answer.status == 500:
        assert answer.json["message"].startswith(EXPECTED_500), answer.text
    assert 200 <= answer.status <= 500


@RELAXED
@given(body=JSON)
def test_any_json_as_a_body(foos: Collection, body: Any) -> None:
    text = json.dumps(body).encode()
    never_our_fault(foos.request("POST", "", text))
    never_our_fault(foos.request("PUT", "/x", text))
    never_our_fault(foos.request("DELETE", "/x", text))
    never_our_fault(foos.request("PATCH", "/x?fieldManager=m", text, content_type=APPLY))


@RELAXED
@given(metadata=JSON, spec=JSON, status=JSON)
def test_any_json_inside_an_object(foos: Collection, metadata: Any, spec: Any, status: Any) -> None:
    body = {**foos.obj(), "metadata": metadata, "spec": spec, "status": status}
    never_our_fault(foos.request("POST", "?dryRun=All", body))
    named = metadata if isinstance(metadata, dict) else {}
    body["metadata"] = {**named, "name": "target"}
    if foos.request("GET", "/target").status == 404:
        foos.create("target", spec={"replicas": 1})
    never_our_fault(foos.request("PUT", "/target?dryRun=All", body))
    never_our_fault(foos.request("PUT", "/target/status?dryRun=All", body))
    scale = {**body, "apiVersion": "autoscaling/v1", "kind": "Scale"}
    never_our_fault(foos.request("PUT", "/target/scale?dryRun=All", scale))
    text = json.dumps(body)
    never_our_fault(foos.patch("target", text, APPLY, "?fieldManager=m&dryRun=All"))


@RELAXED
@given(patch=JSON)
def test_any_json_as_a_patch(foos: Collection, patch: Any) -> None:
    if foos.request("GET", "/patched").status == 404:
        foos.create("patched", spec={"a": "x", "l": ["p"], "replicas": 1})
    text = json.dumps(patch)
    for sub in ("", "/status", "/scale"):
        never_our_fault(foos.patch("patched", text, MERGE, "?dryRun=All", sub))
        never_our_fault(foos.patch("patched", text, JSON_PATCH, "?dryRun=All", sub))
        operations = json.dumps([patch, {"op": "add", "path": "/spec/a", "value": patch}])
        never_our_fault(foos.patch("patched", operations, JSON_PATCH, "?dryRun=All", sub))


@RELAXED
@given(text=st.text(max_size=30))
def test_any_text_as_yaml(foos: Collection, text: str) -> None:
    media = "application/yaml"
    never_our_fault(foos.request("POST", "", text.encode(), content_type=media))
    whole = f"apiVersion: {foos.api_version}\nkind: Foo\nmetadata: {{name: y}}\nspec:\n  a: {text}"
    never_our_fault(foos.request("POST", "?dryRun=All", whole.encode(), content_type=media))
    never_our_fault(
        foos.request("PATCH", "/y?fieldManager=m&dryRun=All", whole.encode(), content_type=APPLY)
    )


@RELAXED
@given(data=st.binary(max_size=40))
def test_any_bytes(foos: Collection, data: bytes) -> None:
    for media in ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf"):
        answer = foos.request("POST", "", data, content_type=media)
        assert 400 <= answer.status < 500, answer.text


@RELAXED
@given(value=st.text(max_size=12), name=st.sampled_from([
    "labelSelector", "fieldSelector", "limit", "continue", "resourceVersion",
    "resourceVersionMatch", "timeoutSeconds", "timeout", "sendInitialEvents", "pretty", "watch",
    "includeObject", "allowWatchBookmarks", "export", "dryRun", "gracePeriodSeconds",
]))  # fmt: skip
def test_any_query_value(foos: Collection, name: str, value: str) -> None:
    from urllib.parse import quote

    if name == "watch" or (name == "resourceVersion" and value.isdigit()):
        return
    answer = foos.request("GET", f"?{name}={quote(value)}")
    assert answer.status < 500, answer.text
    assert foos.request("DELETE", f"/absent?{name}={quote(value)}").status < 500


@RELAXED
@given(path=st.text(max_size=20))
def test_any_path(foos: Collection, path: str) -> None:
    from urllib.parse import quote

    for method in ("GET", "PUT", "DELETE"):
        answer = foos.server.request(method, "/" + quote(path))
        assert answer.status < 500, answer.text
        answer = foos.request(method, "/x" + quote(path, safe=""))
        assert answer.status < 500, answer.text


# --- nesting ---------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [200, 1500, 20_000, 250_000])
@pytest.mark.parametrize("shape", ["list", "map"])
def test_deep_nesting_is_refused_or_kept(foos: Collection, depth: int, shape: str) -> None:
    nested = "[" * depth + "]" * depth if shape == "list" else '{"a":' * depth + "1" + "}" * depth
    body = (
        f'{{"apiVersion":"{foos.api_version}","kind":"Foo","metadata":{{"generateName":"deep-"}},'
        f'"spec":{{"keep":{{"v":{nested}}}}}}}'
    )
    for method, rest, media in (
        ("POST", "", "application/json"),
        ("PUT", "/x", "application/json"),
        ("PATCH", "/x", MERGE),
        ("PATCH", "/x?fieldManager=m", APPLY),
        ("DELETE", "/x", "application/json"),
    ):
        answer = foos.request(method, rest, body.encode(), content_type=media)
        assert answer.status in (200, 201, 400, 404, 413, 422), (method, answer.text[-300:])
    assert foos.request("GET", "?limit=1").status == 200


def test_too_deep_says_so(foos: Collection) -> None:
    answer = foos.request("POST", "", b"[" * 20_000 + b"]" * 20_000)
    assert answer.status == 400
    assert "json parse error: exceeded max depth" in answer.json["message"]


@pytest.mark.parametrize("depth", [100, 2_000, 100_000])
def test_deep_yaml_is_refused(foos: Collection, depth: int) -> None:
    for text in ("[" * depth + "]" * depth, "- " * depth + "x", "{a: " * depth + "}" * depth):
        answer = foos.request("POST", "", text.encode(), content_type="application/yaml")
        assert answer.status == 400, answer.text[-300:]


def test_a_yaml_bomb_is_refused(foos: Collection) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    answer = foos.request("POST", "", "\n".join(lines).encode(), content_type="application/yaml")
    assert answer.status == 400


# --- wrong in one place ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "start"),
    [
        (b"\xff\xfe", "couldn't get version/kind; json parse error: invalid character"),
        (b'"text"', "couldn't get version/kind; json parse error: json: cannot unmarshal string"),
        (b"5", "couldn't get version/kind; json parse error: json: cannot unmarshal number"),
        (b"null", "Object 'Kind' is missing in 'null'"),
        (b'{"kind":5}', "couldn't get version/kind; json parse error: json: cannot unmarshal "
         "number"),
        (b'{"kind":"Foo","apiVersion":[]}', "couldn't get version/kind; json parse error: json: "
         "cannot unmarshal array"),
        (b'{"kind":"Foo",}', "couldn't get version/kind; json parse error: invalid character '}'"),
        (b"{'kind':1}", "couldn't get version/kind; json parse error: invalid character '\\''"),
        (b'{"kind":"Foo"', "couldn't get version/kind; json parse error: unexpected end of JSON"),
        (b'{"kind":"F\x00"}', "couldn't get version/kind; json parse error: invalid character"),
        (b"NaN", "couldn't get version/kind; json parse error: invalid character 'N'"),
        (b'{"kind":01}', "couldn't get version/kind; json parse error: invalid character '1'"),
    ],
)  # fmt: skip
def test_malformed_json(foos: Collection, body: bytes, start: str) -> None:
    answer = foos.request("POST", "", body)
    assert answer.status == 400
    assert answer.json["message"].startswith(UNRECOGNISED + start), answer.text


@pytest.mark.parametrize("name", ["..", ".", "a%2Fb", "%00", "%ff", "a%0Ab", "x" * 300])
def test_strange_names_in_the_url(foos: Collection, name: str) -> None:
    for method in ("GET", "DELETE"):
        assert foos.request(method, f"/{name}").status in (400, 404)
    body = foos.obj("x", metadata={"resourceVersion": "1"})
    assert foos.request("PUT", f"/{name}", body).status in (400, 404)


def test_a_refused_write_leaves_nothing_behind(foos: Collection) -> None:
    before = foos.request("GET", "").json["metadata"]["resourceVersion"]
    foos.request("POST", "", foos.obj("Bad_Name"))
    foos.request("POST", "", foos.obj("half", spec={"n": "x"}))
    assert foos.request("GET", "/half").status == 404
    assert foos.request("GET", "").json["metadata"]["resourceVersion"] == before


def test_lone_surrogates_do_not_break_anything(foos: Collection) -> None:
    body = b'{"apiVersion":"%s","kind":"Foo","metadata":{"name":"lone"},"spec":{"a":"\\ud800"}}'
    answer = foos.request("POST", "", body % foos.api_version.encode())
    assert answer.status in (201, 400)
    assert foos.request("GET", "").status == 200


def test_big_numbers_are_floats_or_refused(foos: Collection) -> None:
    for number in ("1" * 400, "1e400", "-1e400", "1e-400"):
        body = json.dumps(foos.obj(metadata={"generateName": "b-"}, spec={"keep": {"v": "@"}}))
        answer = foos.request("POST", "", body.replace('"@"', number).encode())
        assert answer.status in (201, 400), answer.text
    assert foos.request("GET", "").status == 200


def test_a_built_in_kinds_wrong_fields_are_reported_in_the_order_of_the_body(
    server: LiveServer,
) -> None:
    body = '{"metadata":{"name":"o","odd":1},"data":{"a":"1"},"strange":1,"data":{"a":"2"}}'

    answer = server.request(
        "POST", "/api/v1/namespaces/default/configmaps?fieldValidation=Strict&dryRun=All", body
    )

    told = 'unknown field "metadata.odd", unknown field "strange", duplicate field "data"'
    assert (answer.status, answer.json["message"].partition("error: ")[2]) == (400, told)
