"""Get and list: resourceVersion and match, paging, tokens, selectors."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from tests.rest.support import Collection, failed
from tests.support.server import Answer, LiveServer

INVALID = 'ListOptions.meta.k8s.io "" is invalid: '
TOKEN = "invalid continue token: continue key is not valid"


def token(**members: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(members).encode()).rstrip(b"=").decode()


def names(document: Any) -> list[str]:
    return [item["metadata"]["name"] for item in document["items"]]


def make_namespace(server: LiveServer, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert server.request("POST", "/api/v1/namespaces", body).status == 201


@pytest.fixture(scope="module")
def five(foos: Collection) -> Collection:
    """l1 … l5 in a namespace of their own, each labelled and with a value."""
    make_namespace(foos.server, "list-five")
    space = foos.at(namespace="list-five")
    for number in range(1, 6):
        spec: dict[str, Any] = {"n": number, "a": f"v{number}", "b": number % 2 == 0}
        if number == 5:
            spec = {}
        labels = {"n": str(number), **({"odd": "yes"} if number % 2 else {})}
        space.create(f"l{number}", spec=spec, metadata={"labels": labels})
    return space


# --- get -------------------------------------------------------------------------------------


def test_get_by_resource_version(foos: Collection) -> None:
    obj = foos.create("get")
    revision = obj["metadata"]["resourceVersion"]
    for query in ("", "?resourceVersion=0", f"?resourceVersion={revision}"):
        assert foos.request("GET", f"/get{query}").json == obj
    answer = foos.request("GET", "/get?resourceVersion=abc")
    text = 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
    failed(answer, 500, "", text)


# --- the list's shape ------------------------------------------------------------------------


def test_the_shape_of_a_list(five: Collection) -> None:
    answer = five.request("GET", "")
    document = answer.json
    assert list(document) == ["apiVersion", "items", "kind", "metadata"]
    assert (document["apiVersion"], document["kind"]) == (five.api_version, "FooList")
    assert document["metadata"]["continue"] == ""
    assert set(document["metadata"]) == {"continue", "resourceVersion"}
    assert {item["kind"] for item in document["items"]} == {"Foo"}
    assert {item["apiVersion"] for item in document["items"]} == {five.api_version}
    newest = max(int(item["metadata"]["resourceVersion"]) for item in document["items"])
    assert int(document["metadata"]["resourceVersion"]) >= newest


def test_a_namespace_that_is_not_there_lists_empty(foos: Collection) -> None:
    answer = foos.at(namespace="nowhere").request("GET", "")
    assert answer.status == 200
    assert '"items":[]' in answer.text


def test_order_is_by_namespace_then_name_bytewise(foos: Collection) -> None:
    for space in ("list-b", "list-b-1", "list-a"):
        make_namespace(foos.server, space)
        for name in ("b", "a.b", "a-b", "a0"):
            foos.at(namespace=space).create(name, metadata={"labels": {"order": "1"}})
    found = foos.at(namespace="").request("GET", "?labelSelector=order=1").json["items"]
    keys = [f"{i['metadata']['namespace']}/{i['metadata']['name']}" for i in found]
    assert keys == sorted(keys)
    assert len(keys) == 12


# --- resourceVersion and match ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("resourceVersionMatch=Exact", "resourceVersionMatch: Forbidden: resourceVersionMatch is "
         "forbidden unless resourceVersion is provided"),
        ("resourceVersion=0&resourceVersionMatch=Exact", "resourceVersionMatch: Forbidden: "
         'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
        ("resourceVersion=1&resourceVersionMatch=Bogus", "resourceVersionMatch: Unsupported value: "
         '"Bogus": supported values: "Exact", "NotOlderThan", ""'),
        ("resourceVersion=1&resourceVersionMatch=Exact&continue=x", "resourceVersionMatch: "
         "Forbidden: resourceVersionMatch is forbidden when continue is provided"),
        ("sendInitialEvents=true", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden "
         "for list"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(five: Collection, query: str, message: str) -> None:
    answer = five.request("GET", f"?{query}")
    details = failed(answer, 422, "Invalid", INVALID + message)
    assert (details["group"], details["kind"]) == ("meta.k8s.io", "ListOptions")


def test_bad_numbers(five: Collection) -> None:
    answer = five.request("GET", "?resourceVersion=abc")
    text = (
        'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: '
        'parsing "abc": invalid syntax'
    )
    failed(answer, 400, "BadRequest", text)
    text = 'strconv.ParseInt: parsing "abc": invalid syntax'
    failed(five.request("GET", "?limit=abc"), 400, "BadRequest", text)
    answer = five.request("GET", "?watch=1&timeoutSeconds=abc")
    failed(answer, 400, "BadRequest", text)


def test_states_of_the_past(foos: Collection) -> None:
    make_namespace(foos.server, "list-past")
    past = foos.at(namespace="list-past")
    past.create("a")
    then = past.request("GET", "").json["metadata"]["resourceVersion"]
    past.create("b")
    table: list[tuple[str, list[str]]] = [
        (f"resourceVersion={then}", ["a", "b"]),
        (f"resourceVersion={then}&limit=5", ["a"]),
        (f"resourceVersion={then}&resourceVersionMatch=Exact", ["a"]),
        (f"resourceVersion={then}&resourceVersionMatch=NotOlderThan&limit=5", ["a", "b"]),
        ("resourceVersion=0&limit=1", ["a", "b"]),
        ("resourceVersion=0&resourceVersionMatch=NotOlderThan&limit=1", ["a", "b"]),
        (f"resourceVersion={then}&resourceVersionMatch=NotOlderThan&limit=1", ["a"]),
    ]
    for query, wanted in table:
        document = past.request("GET", f"?{query}").json
        assert names(document) == wanted, query
        if wanted == ["a"] and "NotOlder" not in query:
            assert document["metadata"]["resourceVersion"] == then


def test_the_future_is_504_after_a_while(foos: Collection) -> None:
    future = "resourceVersion=99999999"
    asked = (f"?{future}", f"?{future}&resourceVersionMatch=Exact", f"/get-x?{future}")
    with ThreadPoolExecutor() as pool:
        for answer in pool.map(lambda rest: foos.request("GET", rest), asked):
            _too_large(answer)


def _too_large(answer: Answer) -> None:
    status = answer.json
    assert answer.status == 504
    assert status["reason"] == "Timeout"
    assert status["message"].startswith("Timeout: Too large resource version: 99999999, current: ")
    assert status["details"] == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    assert answer.header("retry-after") == "1"


# --- paging ----------------------------------------------------------------------------------


def test_pages_share_one_state(five: Collection) -> None:
    first = five.request("GET", "?limit=2").json
    assert first["metadata"]["remainingItemCount"] == 3
    five.create("l2-late")
    second = five.request("GET", f"?limit=2&continue={first['metadata']['continue']}").json
    third = five.request("GET", f"?limit=2&continue={second['metadata']['continue']}").json
    five.delete("l2-late")
    assert [names(first), names(second), names(third)] == [["l1", "l2"], ["l3", "l4"], ["l5"]]
    assert second["metadata"]["remainingItemCount"] == 1
    assert third["metadata"]["continue"] == ""
    assert "remainingItemCount" not in third["metadata"]
    revisions = {page["metadata"]["resourceVersion"] for page in (first, second, third)}
    assert len(revisions) == 1


def test_the_token_is_upstreams(five: Collection) -> None:
    first = five.request("GET", "?limit=2").json["metadata"]
    text = first["continue"] + "=" * (-len(first["continue"]) % 4)
    document = json.loads(base64.urlsafe_b64decode(text))
    assert document["v"] == "meta.k8s.io/v1"
    assert str(document["rv"]) == first["resourceVersion"]
    assert document["start"].removeprefix("/") == "l2\x00"
    for start in ("/l2\x00", "l2\x00"):
        for revision in (document["rv"], -1):
            given = token(v="meta.k8s.io/v1", rv=revision, start=start)
            assert names(five.request("GET", f"?continue={given}").json) == ["l3", "l4", "l5"]


@pytest.mark.parametrize("limit", ["-1", "0", "9"])
def test_no_limit(five: Collection, limit: str) -> None:
    assert len(five.request("GET", f"?limit={limit}").json["items"]) == 5


def test_a_page_with_a_selector_is_full_and_tells_no_rest(five: Collection) -> None:
    document = five.request("GET", "?limit=2&labelSelector=odd=yes").json
    assert names(document) == ["l1", "l3"]
    assert "remainingItemCount" not in document["metadata"]
    rest = five.request(
        "GET", f"?limit=2&labelSelector=odd=yes&continue={document['metadata']['continue']}"
    ).json
    assert (names(rest), rest["metadata"]["continue"]) == (["l5"], "")


def test_continue_with_a_resource_version(five: Collection) -> None:
    first = five.request("GET", "?limit=2").json["metadata"]["continue"]
    answer = five.request("GET", f"?continue={first}&resourceVersion=5")
    text = "specifying resource version is not allowed when using continue"
    failed(answer, 400, "BadRequest", text)
    assert five.request("GET", f"?continue={first}&resourceVersion=0").status == 200


@pytest.mark.parametrize(
    ("given", "detail"),
    [
        ("%21%21", ": illegal base64 data at input byte 0"),
        (base64.urlsafe_b64encode(b"invalid").rstrip(b"=").decode(),
         ": invalid character 'i' looking for beginning of value"),
        (token(v="bad", rv=1, start="x"), ": server does not recognize this encoded version bad"),
        (token(v="meta.k8s.io/v1", rv=0, start="x"),
         ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
        (token(v="meta.k8s.io/v1", rv=1, start=""),
         ": encoded start key empty (version meta.k8s.io/v1)"),
        (token(v="meta.k8s.io/v1", rv=1, start="../x"), ": ../x"),
        (token(v="meta.k8s.io/v1", rv=1, start="a/../../x"), ": a/../../x"),
    ],
)  # fmt: skip
def test_bad_tokens(five: Collection, given: str, detail: str) -> None:
    answer = five.request("GET", f"?continue={given}")
    failed(answer, 400, "BadRequest", TOKEN + detail)


def test_weird_tokens_never_fail(five: Collection) -> None:
    for document in (b"5", b"null", b"[]", b'{"v":1}', b'{"v":"meta.k8s.io/v1","rv":"x"}',
                     b'{"v":"meta.k8s.io/v1","rv":1,"start":5}', b'{"rv":1e400}'):  # fmt: skip
        given = base64.urlsafe_b64encode(document).rstrip(b"=").decode()
        assert five.request("GET", f"?continue={given}").status == 400


# --- selectors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("odd", "135"), ("!odd", "24"), ("n=1", "1"), ("n==1", "1"), ("n!=1", "2345"),
        ("odd!=yes", "24"), ("n in (1,2)", "12"), ("n notin (1,2)", "345"),
        ("odd notin (yes)", "24"), ("n>3", "45"), ("n<2", "1"), ("odd,n!=1", "35"),
        ("n in (1, 2),odd", "1"), ("", "12345"), ("absent=", ""), ("absent!=x", "12345"),
    ],
)  # fmt: skip
def test_label_selectors(five: Collection, selector: str, wanted: str) -> None:
    found = names(five.request("GET", f"?labelSelector={quote(selector)}").json)
    assert found == [f"l{number}" for number in wanted]


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("-a=b", 'unable to parse requirement: <nil>: Invalid value: "-a": name part must consist '
         "of alphanumeric characters, '-', '_' or '.', and must start and end with an "
         "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
         "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
        ("a=" + "x" * 64, 'unable to parse requirement: values[0][a]: Invalid value: "'
         + "x" * 64 + '": must be no more than 63 bytes'),
        ("a>x", 'unable to parse requirement: values[0]: Invalid value: "x": for \'Gt\', \'Lt\' '
         "operators, the value must be an integer"),
    ],
)  # fmt: skip
def test_bad_label_selectors(five: Collection, selector: str, message: str) -> None:
    for query in ("?labelSelector=", "?watch=1&labelSelector="):
        failed(five.request("GET", query + quote(selector)), 400, "BadRequest", message)
    failed(five.request("DELETE", f"?labelSelector={quote(selector)}"), 400, "BadRequest", message)


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("metadata.name=l2", "2"), ("metadata.name==l2", "2"), ("metadata.name!=l2", "1345"),
        ("metadata.namespace=list-five", "12345"), ("metadata.namespace=x", ""),
        ("spec.a=v1", "1"), ("spec.n=3", "3"), ("spec.b=true", "24"), ("spec.b=false", "13"),
        ("spec.a=", "5"), ("spec.a!=v1", "2345"), ("spec.a=v1,spec.n=1", "1"),
        ("spec.a=v1,spec.n=2", ""), ("metadata.name=l2,spec.n=2", "2"), ("", "12345"),
        ("metadata.name=absent", ""),
    ],
)  # fmt: skip
def test_field_selectors(five: Collection, selector: str, wanted: str) -> None:
    found = names(five.request("GET", f"?fieldSelector={quote(selector)}").json)
    assert found == [f"l{number}" for number in wanted]


def test_escapes_in_field_selectors(foos: Collection) -> None:
    foos.create("escaped", spec={"a": r"a,b=c\d"})
    selector = quote(r"spec.a=a\,b\=c\\d")
    assert names(foos.request("GET", f"?fieldSelector={selector}").json) == ["escaped"]


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("spec.zzz=1", "field label not supported: spec.zzz"),
        ("metadata.labels=1", "field label not supported: metadata.labels"),
        ("bogus", "invalid selector: 'bogus'; can't understand 'bogus'"),
        ("spec.a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_bad_field_selectors(five: Collection, selector: str, message: str) -> None:
    answer = five.request("GET", f"?fieldSelector={quote(selector)}")
    failed(answer, 400, "BadRequest", message)


def test_selectable_fields_belong_to_a_version(five: Collection, bars: Collection) -> None:
    beta = five.at(version="v1beta1")
    answer = beta.request("GET", "?fieldSelector=spec.a=v1")
    failed(answer, 400, "BadRequest", "field label not supported: spec.a")
    answer = bars.request("GET", "?fieldSelector=metadata.namespace=x")
    failed(answer, 400, "BadRequest", "field label not supported: metadata.namespace")


def test_a_path_name_and_another_selected_name(five: Collection) -> None:
    path = f"{five.root}/watch/namespaces/list-five/foos/l1?fieldSelector=metadata.name=l2"
    text = "fieldSelector metadata.name doesn't match requested name"
    failed(five.server.request("GET", path), 400, "BadRequest", text)
