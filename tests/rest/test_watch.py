"""Watch: framing, starting points, selectors, bookmarks, how a stream ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest.support import PARTIAL, PARTIAL_LIST, TABLE, Collection, failed, make_crd, version
from tests.support.server import LiveServer

INVALID = 'ListOptions.meta.k8s.io "" is invalid: '
FORBIDDEN = "resourceVersionMatch: Forbidden: "
NEEDS_MATCH = FORBIDDEN + "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"


@pytest.fixture
def space(foos: Collection, request: pytest.FixtureRequest) -> Collection:
    name = "w-" + str(abs(hash(request.node.name)))
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert foos.server.request("POST", "/api/v1/namespaces", body).status == 201
    return foos.at(namespace=name)


def now(space: Collection) -> str:
    revision: str = space.request("GET", "").json["metadata"]["resourceVersion"]
    return revision


def brief(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(e["type"], e["object"]["metadata"].get("name", "")) for e in events]


def test_framing(space: Collection) -> None:
    space.create("a")
    with space.watch() as stream:
        line = stream.answer.readline()
    assert line.startswith(b'{"type":"ADDED","object":{"apiVersion":"')
    assert line.endswith(b"}\n")
    headers = stream.answer.headers
    assert headers["content-type"] == "application/json"
    assert headers["transfer-encoding"] == "chunked"
    assert headers["cache-control"] == "no-cache, private"


def test_a_life_in_events(space: Collection) -> None:
    with space.watch(f"&resourceVersion={now(space)}") as stream:
        created = space.create("a", spec={"a": "1"})
        patched = space.patch("a", {"spec": {"a": "2"}}).json
        space.delete("a")
        added, modified, deleted = stream.events(3)
    assert (added["type"], added["object"]) == ("ADDED", created)
    assert (modified["type"], modified["object"]) == ("MODIFIED", patched)
    assert deleted["type"] == "DELETED"
    assert deleted["object"]["spec"] == {"a": "2"}
    revision = int(deleted["object"]["metadata"]["resourceVersion"])
    assert revision > int(patched["metadata"]["resourceVersion"])


def test_changes_that_do_not_concern_a_resumed_watch_do_not_end_it(space: Collection) -> None:
    revision = now(space)
    space.at(namespace="default").create("elsewhere")
    with space.watch(f"&resourceVersion={revision}") as stream:
        space.create("here")
        assert brief(stream.events(1)) == [("ADDED", "here")]


@pytest.mark.parametrize("start", ["", "&resourceVersion=0"])
def test_the_present_comes_first_in_key_order(space: Collection, start: str) -> None:
    for name in ("b", "a", "c"):
        space.create(name)
    with space.watch(start) as stream:
        events = stream.events(3)
        assert brief(events) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
        revisions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
        assert len(set(revisions)) == 3
        space.create("d")
        assert brief(stream.events(1)) == [("ADDED", "d")]


@pytest.mark.parametrize(
    ("query", "initial"),
    [
        ("", True),
        ("&resourceVersion=0", True),
        ("&resourceVersion=N", False),
        ("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", True),
        ("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0", True),
        ("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=N", True),
        ("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1", True),
        ("&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", False),
        ("&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0", False),
        ("&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=N", False),
    ],
)
def test_starting_points(space: Collection, query: str, initial: bool) -> None:
    space.create("old")
    query = query.replace("Version=N", f"Version={now(space)}")
    with space.watch(f"{query}&allowWatchBookmarks=true") as stream:
        space.create("new")
        if initial:
            (event, bookmark, _) = stream.events(3)
            assert brief([event]) == [("ADDED", "old")]
            assert bookmark["type"] == "BOOKMARK"
            metadata = bookmark["object"]["metadata"]
            assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
            assert int(metadata["resourceVersion"]) >= int(
                event["object"]["metadata"]["resourceVersion"]
            )
            assert set(bookmark["object"]) == {"apiVersion", "kind", "metadata"}
            assert set(metadata) == {"annotations", "resourceVersion"}
        else:
            assert brief(stream.events(1)) == [("ADDED", "new")]


def test_without_bookmarks_there_is_no_end_mark(space: Collection) -> None:
    space.create("a")
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    with space.watch(query) as stream:
        stream.events(1)
        space.create("b")
        assert brief(stream.events(1)) == [("ADDED", "b")]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("resourceVersionMatch=NotOlderThan", FORBIDDEN + "resourceVersionMatch is forbidden for "
         "watch unless sendInitialEvents is provided"),
        ("sendInitialEvents=true", NEEDS_MATCH),
        ("sendInitialEvents=false", NEEDS_MATCH),
        ("sendInitialEvents=true&resourceVersionMatch=Exact",
         f'[{NEEDS_MATCH}, resourceVersionMatch: Unsupported value: "Exact": supported values: '
         '"NotOlderThan"]'),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(foos: Collection, query: str, message: str) -> None:
    answer = foos.request("GET", f"?watch=1&{query}")
    failed(answer, 422, "Invalid", INVALID + message)


def test_a_bad_number_is_upstreams_bare_500(foos: Collection) -> None:
    answer = foos.request("GET", "?watch=1&resourceVersion=abc")
    text = 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
    failed(answer, 500, "", text)


def test_the_future_is_silent(space: Collection) -> None:
    with space.watch("&resourceVersion=99999999&timeoutSeconds=1") as stream:
        space.create("a")
        assert stream.rest() == []


def test_the_future_with_initial_events_is_an_error_event(foos: Collection) -> None:
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999999"
    with foos.watch(query) as stream:
        assert stream.answer.status == 200
        (event,) = stream.rest()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 504)
    assert event["object"]["message"].startswith("Timeout: Too large resource version: 99999999")


def test_the_time_is_up_cleanly(space: Collection) -> None:
    with space.watch("&timeoutSeconds=1&timeout=1ms") as stream:
        assert stream.rest() == []


@pytest.mark.parametrize("selector", ["labelSelector=on=1", "fieldSelector=spec.a=1"])
def test_coming_and_going_under_a_selector(space: Collection, selector: str) -> None:
    def state(on: str) -> dict[str, Any]:
        return {"metadata": {"labels": {"on": on}}, "spec": {"a": on}}

    with space.watch(f"&resourceVersion={now(space)}&{selector}") as stream:
        space.create("a", **state("0"))
        space.create("never", **state("0"))
        entered = space.patch("a", state("1")).json
        space.patch("a", {"spec": {"n": 5}})
        left = space.patch("a", {**state("0"), "spec": {"a": "0", "n": 6}}).json
        space.patch("never", {"spec": {"n": 5}})
        space.patch("a", state("1"))
        space.delete("a")
        events = stream.events(5)
    assert [event["type"] for event in events] == [
        "ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED",
    ]  # fmt: skip
    assert events[0]["object"] == entered
    assert events[2]["object"]["spec"] == {"a": "1", "n": 5}, "the last content that matched"
    assert events[2]["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


def test_one_name_by_field_selector(space: Collection) -> None:
    with space.watch("&fieldSelector=metadata.name=b") as stream:
        space.create("a")
        space.create("b")
        assert brief(stream.events(1)) == [("ADDED", "b")]


def test_all_namespaces_and_other_versions_see_the_same_event(space: Collection) -> None:
    start = f"&resourceVersion={now(space)}"
    beta = space.at(version="v1beta1", namespace="")
    with beta.watch(start) as elsewhere, space.watch(start) as here:
        space.create("a")
        there, event = elsewhere.events(1)[0]["object"], here.events(1)[0]["object"]
    assert there["apiVersion"].endswith("/v1beta1")
    assert there["metadata"] == event["metadata"]


def test_too_old_is_an_error_event_that_ends_the_stream() -> None:
    from instar.server.registry.stored import backend  # noqa: F401 - the window is the backend's
    from tests.support.server import live_server

    with live_server(history_seconds=0.0) as server:
        server.create_crd(make_crd("old.ex.io", [version("v1", storage=True)]))
        foos = Collection(server, "old.ex.io")
        foos.create("a")
        with foos.watch("&resourceVersion=1") as stream:
            assert stream.answer.status == 200
            events = stream.rest()
    if events and events[0]["type"] == "ERROR":
        status = events[0]["object"]
        assert (status["reason"], status["code"]) == ("Expired", 410)
        assert status["message"].startswith("too old resource version: 1 (")
        assert len(events) == 1


def test_partial_metadata_events(space: Collection) -> None:
    space.create("a", spec={"a": "x"})
    with space.watch("&allowWatchBookmarks=true", accept=PARTIAL) as stream:
        event, bookmark = stream.events(2)
    obj = event["object"]
    assert list(obj) == ["kind", "apiVersion", "metadata"]
    assert (obj["kind"], obj["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert bookmark["object"]["kind"] == "PartialObjectMetadata"


def test_a_list_kind_requested_of_a_watch_applies_to_its_items(space: Collection) -> None:
    """Upstream opens the stream and drops it at the first event, which helps nobody."""
    space.create("a")
    with space.watch("", accept=PARTIAL_LIST) as stream:
        assert stream.events(1)[0]["object"]["kind"] == "PartialObjectMetadata"


def test_tables_name_their_columns_once(space: Collection) -> None:
    space.create("a")
    with space.watch("&allowWatchBookmarks=true&includeObject=None", accept=TABLE) as stream:
        first, bookmark = stream.events(2)
        space.create("b")
        (third,) = stream.events(1)
    assert [c["name"] for c in first["object"]["columnDefinitions"]] == ["Name", "Age"]
    assert bookmark["object"]["columnDefinitions"] is None
    assert third["object"]["columnDefinitions"] is None
    assert first["object"]["rows"][0]["object"] is None
    (row,) = bookmark["object"]["rows"]
    assert row["cells"][0] == ""
    assert row["cells"][1:] == [None]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert "k8s.io/initial-events-end" in row["object"]["metadata"]["annotations"]
    assert third["object"]["rows"][0]["cells"][0] == "b"


def test_yaml_watches_are_406_in_yaml(foos: Collection) -> None:
    answer = foos.request("GET", "?watch=1", headers={"Accept": "application/yaml"})
    assert answer.status == 406
    assert answer.header("content-type") == "application/yaml"
    text = (
        "only the following media types are accepted: application/json;stream=watch, "
        "application/vnd.kubernetes.protobuf;stream=watch"
    )
    assert text in answer.text.replace("\n  ", " ")


# --- CRD changes under a watch ---------------------------------------------------------------


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"


def crd_patch(server: LiveServer, name: str, patch: Any) -> None:
    answer = server.request("PATCH", f"{CRDS}/{name}", patch, content_type=MERGE)
    assert answer.status == 200, answer.text


def test_crd_metadata_does_not_end_a_watch_and_its_spec_does(server: LiveServer) -> None:
    group = "watched.ex.io"
    server.create_crd(make_crd(group, [version("v1", storage=True), version("v2")]))
    foos = Collection(server, group)
    name = f"foos.{group}"
    with foos.watch() as stream, foos.at(version="v2").watch() as other:
        crd_patch(server, name, {"metadata": {"labels": {"a": "b"}}})
        foos.create("a")
        assert brief(stream.events(1)) == brief(other.events(1)) == [("ADDED", "a")]
        crd_patch(server, name, {"spec": {"names": {"shortNames": ["fo"]}}})
        assert stream.rest() == other.rest() == [], "a clean end without an ERROR"


def test_a_version_that_is_no_longer_served_ends_its_watch(server: LiveServer) -> None:
    group = "unserved.ex.io"
    server.create_crd(make_crd(group, [version("v1", storage=True), version("v2")]))
    old = Collection(server, group, version="v2")
    versions = [version("v1", storage=True), version("v2", served=False)]
    with old.watch() as stream:
        crd_patch(server, f"foos.{group}", {"spec": {"versions": versions}})
        assert stream.rest() == []
    assert old.request("GET", "").text == "404 page not found\n"


def test_a_deleted_crd_shows_its_objects_going(server: LiveServer) -> None:
    group = "deleted.ex.io"
    server.create_crd(make_crd(group, [version("v1", storage=True)]))
    foos = Collection(server, group)
    foos.create("a")
    foos.create("b", metadata={"finalizers": ["ex.com/hold"]})
    with foos.watch(f"&resourceVersion={now(foos)}") as stream:
        assert server.request("DELETE", f"{CRDS}/foos.{group}").status == 200
        assert sorted(brief(stream.events(2))) == [("DELETED", "a"), ("MODIFIED", "b")]
        foos.patch("b", {"metadata": {"finalizers": None}})
        assert brief(stream.rest()) == [("DELETED", "b")]
    assert foos.request("GET", "").status == 404
