"""Events of the core group and of events.k8s.io are the same events."""

from __future__ import annotations

import json
from typing import Any

from tests.support.server import LiveServer

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
REGARDING = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "namespace": "default"}


def new_event(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name},
        "eventTime": "2026-11-15T10:00:00.000000Z",
        "regarding": REGARDING,
        "note": "it was changed",
        "reason": "Changed",
        "action": "Update",
        "type": "Normal",
        "reportingController": "example.com/controller",
        "reportingInstance": "controller-1",
        **fields,
    }


def core_event(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": REGARDING,
        "message": "it was changed",
        "reason": "Changed",
        "type": "Normal",
        "count": 3,
        "source": {"component": "old"},
        **fields,
    }


def done(server: LiveServer, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    answer = server.request(method, path, body)
    assert answer.status == status, answer.text
    return answer.json


def test_an_event_written_at_one_group_is_read_at_the_second_group(
    fresh_server: LiveServer,
) -> None:
    made = done(fresh_server, "POST", NEW, new_event("a"), 201)
    assert made["apiVersion"] == "events.k8s.io/v1"

    seen = done(fresh_server, "GET", f"{CORE}/a")
    assert (seen["apiVersion"], seen["kind"]) == ("v1", "Event")
    assert seen["involvedObject"] == REGARDING
    assert (seen["message"], seen["reportingComponent"]) == (made["note"], "example.com/controller")
    assert seen["metadata"]["uid"] == made["metadata"]["uid"]
    assert not {"note", "regarding", "reportingController"} & seen.keys()
    assert done(fresh_server, "GET", f"{NEW}/a") == made


def test_core_events_are_shown_by_the_newer_group(fresh_server: LiveServer) -> None:
    done(fresh_server, "POST", CORE, core_event("b"), 201)

    [seen] = done(fresh_server, "GET", NEW)["items"]
    assert "apiVersion" not in seen
    assert (seen["regarding"], seen["note"]) == (REGARDING, "it was changed")
    assert (seen["deprecatedCount"], seen["deprecatedSource"]) == (3, {"component": "old"})
    assert not {"message", "involvedObject", "count", "source"} & seen.keys()


def test_a_change_at_one_group_is_seen_at_the_second_group(fresh_server: LiveServer) -> None:
    made = done(fresh_server, "POST", NEW, new_event("c"), 201)
    again = {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}
    made["series"] = again
    changed = done(fresh_server, "PUT", f"{NEW}/c", made)
    seen = done(fresh_server, "GET", f"{CORE}/c")
    assert seen["series"] == again
    assert seen["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]

    seen["series"]["count"] = 3
    done(fresh_server, "PUT", f"{CORE}/c", seen)
    assert done(fresh_server, "GET", f"{NEW}/c")["series"]["count"] == 3

    done(fresh_server, "DELETE", f"{NEW}/c")
    assert fresh_server.request("GET", f"{CORE}/c").status == 404


def test_a_watch_of_one_group_shows_writes_at_the_second_group(fresh_server: LiveServer) -> None:
    revision = done(fresh_server, "GET", CORE)["metadata"]["resourceVersion"]
    done(fresh_server, "POST", NEW, new_event("d"), 201)

    query = f"?watch=1&resourceVersion={revision}&timeoutSeconds=1"
    lines = [fresh_server.request("GET", path + query).text for path in (CORE, NEW)]
    core, new = (json.loads(text.splitlines()[0]) for text in lines)
    assert (core["type"], core["object"]["message"]) == ("ADDED", "it was changed")
    assert (new["type"], new["object"]["note"]) == ("ADDED", "it was changed")


def test_selectors_of_the_core_group_find_what_the_newer_one_wrote(
    fresh_server: LiveServer,
) -> None:
    done(fresh_server, "POST", NEW, new_event("e"), 201)
    done(fresh_server, "POST", NEW, new_event("f", regarding={**REGARDING, "name": "x"}), 201)

    found = done(fresh_server, "GET", f"{CORE}?fieldSelector=involvedObject.name=settings")
    assert [item["metadata"]["name"] for item in found["items"]] == ["e"]


def test_it_lies_in_the_store_once_in_the_core_form(fresh_server: LiveServer) -> None:
    done(fresh_server, "POST", NEW, new_event("g"), 201)

    stored = fresh_server.stored("core/events/default/g")
    assert stored["apiVersion"] == "v1"
    assert stored["message"] == "it was changed"


def test_only_the_newer_form_is_offered_by_its_group(fresh_server: LiveServer) -> None:
    group = done(fresh_server, "GET", "/apis/events.k8s.io")
    assert [version["version"] for version in group["versions"]] == ["v1"]
    assert fresh_server.request("GET", "/apis/events.k8s.io/core/events").status == 404


def test_a_namespace_takes_its_events_along(fresh_server: LiveServer) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}}
    done(fresh_server, "POST", "/api/v1/namespaces", body, 201)
    where = NEW.replace("/default/", "/gone/")
    done(fresh_server, "POST", where, new_event("h", metadata={"name": "h"}), 201)

    done(fresh_server, "DELETE", "/api/v1/namespaces/gone")

    assert fresh_server.request("GET", f"{where}/h").status == 404


def test_core_events_are_selected_by_source_or_reporting_controller(
    fresh_server: LiveServer,
) -> None:
    done(fresh_server, "POST", CORE, core_event("old"), 201)
    done(fresh_server, "POST", NEW, new_event("new"), 201)

    def selected(source: str) -> list[str]:
        found = done(fresh_server, "GET", f"{CORE}?fieldSelector=source={source}")
        return [item["metadata"]["name"] for item in found["items"]]

    assert (selected("old"), selected("example.com/controller")) == (["old"], ["new"])
