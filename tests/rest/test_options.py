"""dryRun, fieldValidation, fieldManager, size, timeouts: what every write can be asked."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

import pytest

from instar.server.rest.deadlines import duration
from instar.wire.storage.store import ValueTooLarge
from tests.rest.support import JSON_PATCH, MERGE, Collection, failed, foo_crd
from tests.support.server import Answer, live_server
from tests.support.storages import chosen_engine

HANDLED = 'Foo in version "v1" cannot be handled as a Foo: '
UNSUPPORTED = "Unsupported value: "


def write(foos: Collection, kind: str, query: str, body: Any = None) -> Answer:
    """One write of the options' kind, which fails on its options or not at all."""
    name = foos.request("POST", "", foos.obj(metadata={"generateName": "opt-"})).json["metadata"]
    obj = foos.get(name["name"])
    match kind:
        case "CreateOptions":
            return foos.request("POST", query, body or foos.obj(metadata={"generateName": "n-"}))
        case "UpdateOptions":
            return foos.put(body or obj, query)
        case _:
            return foos.patch(name["name"], body or {}, MERGE, query)


KINDS = pytest.mark.parametrize("kind", ["CreateOptions", "UpdateOptions", "PatchOptions"])


@KINDS
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("dryRun=Some", f'dryRun: {UNSUPPORTED}["Some"]: supported values: "All"'),
        ("dryRun=", f'dryRun: {UNSUPPORTED}[""]: supported values: "All"'),
        ("dryRun=All&dryRun=x", f'dryRun: {UNSUPPORTED}["All","x"]: supported values: "All"'),
        ("fieldValidation=Bogus", f'fieldValidation: {UNSUPPORTED}"Bogus": supported values: "", '
         '"Ignore", "Strict", "Warn"'),
        ("fieldManager=" + "m" * 129, "fieldManager: Too long: may not be more than 128 bytes"),
        ("fieldManager=a%0Ab", 'fieldManager: Invalid value: "a\\nb": invalid character U+000A '
         "(at position 1)"),
    ],
)  # fmt: skip
def test_bad_options(foos: Collection, kind: str, query: str, message: str) -> None:
    answer = write(foos, kind, f"?{query}")
    text = f'{kind}.meta.k8s.io "" is invalid: {message}'
    details = failed(answer, 422, "Invalid", text)
    assert (details["group"], details["kind"]) == ("meta.k8s.io", kind)


# --- dry run ---------------------------------------------------------------------------------


def test_a_dry_create_has_no_revision_and_stores_nothing(foos: Collection) -> None:
    answer = foos.request("POST", "?dryRun=All&dryRun=All", foos.obj("dry", spec={"a": "x"}))
    metadata = answer.json["metadata"]
    assert answer.status == 201
    assert {"uid", "creationTimestamp", "generation"} <= set(metadata)
    assert "resourceVersion" not in metadata
    assert foos.request("GET", "/dry").status == 404
    given = foos.obj("dry", metadata={"resourceVersion": "77"})
    answer = foos.request("POST", "?dryRun=All", given)
    assert "resourceVersion" not in answer.json["metadata"], "upstream echoes it, to no end"
    foos.create("dry")
    assert foos.request("POST", "?dryRun=All", foos.obj("dry")).status == 409


def test_dry_updates_show_what_would_be(foos: Collection) -> None:
    obj = foos.create("dry-up", spec={"a": "x"})
    for answer in (
        foos.put({**obj, "spec": {"a": "y"}}, "?dryRun=All"),
        foos.patch("dry-up", {"spec": {"a": "y"}}, MERGE, "?dryRun=All"),
    ):
        assert answer.status == 200
        assert answer.json["spec"] == {"a": "y"}
        assert answer.json["metadata"]["generation"] == 2
        assert answer.json["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]
    assert foos.get("dry-up") == obj
    assert foos.patch("dry-up", {"spec": {"n": "x"}}, MERGE, "?dryRun=All").status == 422


# --- field validation ------------------------------------------------------------------------

MESSY = (
    '{"apiVersion":"ex.io/v1","kind":"Foo","top":1,"metadata":{"name":"%s","zzz":1,"labels":{}},'
    '"spec":{"a":"1","a":"2","unk":1,"e":[{"y":1}],"keep":{"any":1}},"Spec":{}}'
)
PROBLEMS = [
    'duplicate field "spec.a"',
    'unknown field "metadata.zzz"',
    'unknown field "Spec"',
    'unknown field "spec.e[0].y"',
    'unknown field "spec.unk"',
    'unknown field "top"',
]


def test_unknown_fields_warn_in_order(foos: Collection) -> None:
    answer = foos.request("POST", "", MESSY % "warn")
    assert answer.status == 201
    texts = [warning.removeprefix('299 - "').removesuffix('"') for warning in answer.warnings]
    assert [text.replace("\\", "") for text in texts] == PROBLEMS
    assert answer.json["spec"] == {"a": "2", "e": [{}], "keep": {"any": 1}}


def test_unknown_fields_are_refused_by_strict(foos: Collection) -> None:
    answer = foos.request("POST", "?fieldValidation=Strict", MESSY % "strict")
    text = HANDLED + "strict decoding error: " + ", ".join(PROBLEMS)
    failed(answer, 400, "BadRequest", text)


def test_unknown_fields_pass_in_silence_by_ignore(foos: Collection) -> None:
    answer = foos.request("POST", "?fieldValidation=Ignore", MESSY % "ignore")
    assert (answer.status, answer.warnings) == (201, [])
    assert answer.json["spec"] == {"a": "2", "e": [{}], "keep": {"any": 1}}


YAML_BODY = (
    "apiVersion: ex.io/v1\nkind: Foo\nmetadata:\n  name: %s\nspec:\n  a: x\n  a: y\n  zz: 1\n"
)


def test_yaml_duplicates_name_their_line(foos: Collection) -> None:
    media = "application/yaml"
    answer = foos.request("POST", "", YAML_BODY % "yaml-dup", content_type=media)
    assert answer.warnings == [
        '299 - "line 7: key \\"a\\" already set in map"',
        '299 - "unknown field \\"spec.zz\\""',
    ]
    answer = foos.request("POST", "?fieldValidation=Strict", YAML_BODY % "x", content_type=media)
    text = (
        HANDLED + "strict decoding error: yaml: unmarshal errors:\n"
        '  line 7: key "a" already set in map, unknown field "spec.zz"'
    )
    failed(answer, 400, "BadRequest", text)


def test_warnings_come_with_errors_too(foos: Collection) -> None:
    answer = foos.request("POST", "", foos.obj("Bad_Name", spec={"unk": 1}))
    assert answer.status == 422
    assert answer.warnings == ['299 - "unknown field \\"spec.unk\\""']


def test_too_many_warnings_are_cut(foos: Collection) -> None:
    spec = {f"{index:03d}" + "x" * 300: 1 for index in range(30)}
    answer = foos.request("POST", "", foos.obj("many", spec=spec))
    texts = [warning.removeprefix('299 - "').removesuffix('"') for warning in answer.warnings]
    assert all(len(text.replace("\\", "")) == 256 for text in texts)
    assert len(texts) == 16


def test_warnings_with_control_characters_are_dropped(foos: Collection) -> None:
    answer = foos.request("POST", "", foos.obj("control", spec={"a\nb": 1, "ok": 1}))
    assert answer.warnings == ['299 - "unknown field \\"spec.ok\\""']


def test_texts_beyond_ascii_travel_as_utf8(foos: Collection) -> None:
    answer = foos.request("POST", "", foos.obj("utf", spec={"größe": 1}))
    assert answer.warnings[0].encode("latin-1").decode() == '299 - "unknown field \\"spec.größe\\""'


# --- field manager ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "agent", "manager"),
    [
        ("", "kubectl/v1.36 (linux)", "kubectl"),
        ("", "plain", "plain"),
        ("", "", "unknown"),
        ("?fieldManager=me", "kubectl/v1", "me"),
    ],
)
def test_the_manager_of_a_write(foos: Collection, query: str, agent: str, manager: str) -> None:
    body = foos.obj(metadata={"generateName": "m-"}, spec={"a": "x"})
    answer = foos.request("POST", query, body, headers={"User-Agent": agent})
    assert answer.json["metadata"]["managedFields"][0]["manager"] == manager


def test_broken_managed_fields_are_discarded_and_an_empty_one_clears(foos: Collection) -> None:
    obj = foos.create("managed", spec={"a": "x"})
    broken = {**obj, "metadata": {**obj["metadata"], "managedFields": [{"operation": "Bogus"}]}}
    answer = foos.put(broken)
    assert answer.status == 200
    assert answer.json["metadata"]["managedFields"] == obj["metadata"]["managedFields"]
    cleared = foos.patch("managed", {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in cleared.json["metadata"]


# --- size ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "rest", "media"),
    [
        ("POST", "", "application/json"),
        ("POST", "", "application/yaml"),
        ("PUT", "/x", "application/json"),
        ("PATCH", "/x", MERGE),
        ("PATCH", "/x", JSON_PATCH),
        ("DELETE", "/x", "application/json"),
    ],
)
def test_bodies_over_3_mib_are_413(foos: Collection, method: str, rest: str, media: str) -> None:
    answer = foos.request(method, rest, b" " * 3_145_729, content_type=media)
    text = "Request entity too large: limit is 3145728"
    failed(answer, 413, "RequestEntityTooLarge", text)


def test_size_is_judged_after_types(foos: Collection) -> None:
    big = b" " * 3_145_729
    assert foos.request("POST", "", big, headers={"Accept": "text/plain"}).status == 406
    assert foos.request("POST", "", big, content_type="text/plain").status == 415
    assert foos.request("PATCH", "/x", big, content_type="text/plain").status == 415


def test_an_object_that_fits_in_a_body_fits_in_the_store(foos: Collection) -> None:
    """etcd holds 1.5 MiB a value; memory and SQLite hold whatever may be sent."""
    value = {"v": "x" * 3_000_000}
    if chosen_engine() == "etcd":
        answer = foos.request("POST", "", foos.obj("huge", spec={"keep": value}))
        failed(answer, 500, "", "etcdserver: request is too large")
        return
    foos.create("huge", spec={"keep": value})
    assert foos.get("huge")["spec"]["keep"] == value
    assert foos.delete("huge").status == 200


def test_an_object_too_large_for_the_storage_is_upstreams_bare_500(
    foos: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: Any, write: Any) -> int:
        raise ValueTooLarge("no")

    store = foos.server.running.machinery.backend.store
    monkeypatch.setattr(type(store), "commit", refuse)
    failed(foos.request("POST", "", foos.obj("no")), 500, "", "etcdserver: request is too large")
    monkeypatch.undo()
    assert foos.request("GET", "/no").status == 404


# --- timeouts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("abc", 'invalid duration "abc"'),
        ("5", 'missing unit in duration "5"'),
        ("5x", 'unknown unit "x" in duration "5x"'),
        (".s", 'invalid duration ".s"'),
    ],
)
def test_bad_timeouts(foos: Collection, given: str, why: str) -> None:
    text = f"invalid timeout specified in the request URL - time: {why}"
    failed(foos.request("GET", f"?timeout={quote(given)}"), 400, "BadRequest", text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1), ("1m30s", 90), ("1.5h", 5400), ("100ms", 0.1), ("0", 0), ("-1s", -1), ("+2s", 2)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == pytest.approx(seconds)


def test_an_answer_that_takes_too_long_is_504(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any) -> None:
        await asyncio.Event().wait()

    with live_server(request_timeout=0.3) as server:
        server.create_crd(foo_crd("slow.ex.io"))
        foos = Collection(server, "slow.ex.io")
        foos.create("a")
        monkeypatch.setattr("instar.server.registry.stored.backend.Backend.consistent", never)
        monkeypatch.setattr("instar.server.registry.stored.backend.Backend.put", never)
        answer = foos.request("GET", "")
        text = "Timeout: request did not complete within the allotted timeout"
        failed(answer, 504, "Timeout", text)
        answer = foos.request("POST", "?timeout=50ms", foos.obj("b"))
        text = (
            "Timeout: request did not complete within requested timeout - context deadline exceeded"
        )
        failed(answer, 504, "Timeout", text)
        monkeypatch.undo()
        assert json.loads(foos.request("GET", "").body)["items"][0]["metadata"]["name"] == "a"


@pytest.mark.parametrize("query", ["", "watch=1&"])
def test_a_resource_version_beyond_64_bits_is_refused(foos: Collection, query: str) -> None:
    answer = foos.request("GET", f"?{query}resourceVersion={'9' * 5000}")
    assert answer.json["message"].endswith("value out of range")
