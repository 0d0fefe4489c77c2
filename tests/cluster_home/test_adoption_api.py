"""The API that puts a group's objects below the API, with the history that its clients then see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.kube.api.adoption import HOME, SERVED_BY, SERVED_BY_INSTAR, group_path
from tests.support.main_cluster import GROUP, REPORTS, Aggregated, aggregated, report
from tests.support.waiting import eventually

_ABOVE = 5_000_000


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Aggregated]:
    with aggregated(tmp_path) as found:
        found.serves(REPORTS)
        yield found


def _ask(both: Aggregated, method: str, action: str, body: Any = None) -> Any:
    answer = both.proxied(method, group_path(GROUP, action), body)
    assert answer.status == 200, answer.text
    return answer.json


def _captured(name: str, revision: int = 4711) -> dict[str, Any]:
    obj = report(name, 3)
    obj["metadata"] |= {
        "uid": f"uid-of-{name}",
        "creationTimestamp": "2024-02-29T12:00:00Z",
        "generation": 7,
        "resourceVersion": str(revision),
        "deletionTimestamp": "2024-03-01T12:00:00Z",
        "deletionGracePeriodSeconds": 0,
        "finalizers": ["example.com/wait"],
        "managedFields": [
            {
                "manager": "someone",
                "operation": "Apply",
                "apiVersion": f"{GROUP}/v1",
                "time": "2024-02-29T12:00:00Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:size": {}}},
            }
        ],
    }
    return obj


def _copy(both: Aggregated, *objects: dict[str, Any]) -> None:
    _ask(both, "POST", "begin", {"above": _ABOVE})
    _ask(both, "POST", "objects", {"changes": [{"object": each} for each in objects]})


def test_an_object_is_put_as_it_was_with_a_higher_revision(own: Aggregated) -> None:
    captured = _captured("a")

    _copy(own, captured)

    found = own.proxied("GET", f"{REPORTS}/a").json
    assert int(found["metadata"].pop("resourceVersion")) > _ABOVE
    del captured["metadata"]["resourceVersion"]
    assert found == captured


def test_its_revision_is_above_the_one_that_it_had(own: Aggregated) -> None:
    _copy(own, _captured("a", 9_000_000_000))

    found = own.proxied("GET", f"{REPORTS}/a").json

    assert int(found["metadata"]["resourceVersion"]) > 9_000_000_000


def test_equal_bytes_are_not_written_again(own: Aggregated) -> None:
    _copy(own, _captured("a"))
    first = own.proxied("GET", f"{REPORTS}/a").json

    done = _ask(own, "POST", "objects", {"changes": [{"object": _captured("a")}]})

    assert done == {"written": 0, "unchanged": 1}
    assert own.proxied("GET", f"{REPORTS}/a").json == first


def test_an_object_that_is_gone_is_removed_in_spite_of_its_finalizers(own: Aggregated) -> None:
    _copy(own, _captured("a"), _captured("b"))

    gone = {"kind": "Report", "namespace": "default", "name": "a"}
    _ask(own, "POST", "objects", {"changes": [{"gone": gone}, {"gone": gone}]})

    names = [each["metadata"]["name"] for each in own.proxied("GET", REPORTS).json["items"]]
    assert names == ["b"]


@pytest.mark.parametrize("revision", [1, 4711, _ABOVE])
def test_a_watch_or_list_below_the_floor_is_410(own: Aggregated, revision: int) -> None:
    _copy(own, _captured("a"))

    floor = _ask(own, "POST", "floor", {"above": _ABOVE + 1000})["floor"]

    watched = own.proxied(
        "GET", f"{REPORTS}?watch=true&timeoutSeconds=1&resourceVersion={revision}"
    )
    listed = own.proxied("GET", f"{REPORTS}?resourceVersionMatch=Exact&resourceVersion={revision}")
    assert watched.json["object"]["code"] == 410, watched.text
    assert listed.status == 410
    assert floor > _ABOVE + 1000
    assert int(own.proxied("GET", REPORTS).json["metadata"]["resourceVersion"]) >= floor


def test_a_watch_from_the_new_list_goes_on(own: Aggregated) -> None:
    _copy(own, _captured("a"))
    _ask(own, "POST", "floor", {"above": _ABOVE})
    revision = own.proxied("GET", REPORTS).json["metadata"]["resourceVersion"]

    own.proxied("POST", REPORTS, report("new"))

    query = f"watch=true&timeoutSeconds=1&resourceVersion={revision}"
    assert own.proxied("GET", f"{REPORTS}?{query}").json["object"]["metadata"]["name"] == "new"


def test_nothing_is_put_before_begin_or_after_finish(own: Aggregated) -> None:
    change = {"changes": [{"object": _captured("late")}]}
    before = own.proxied("POST", group_path(GROUP, "objects"), change)
    _copy(own, _captured("a"))
    _ask(own, "POST", "finish")

    after = own.proxied("POST", group_path(GROUP, "objects"), change)
    forget = own.proxied("POST", group_path(GROUP, "forget"))

    assert (before.status, after.status, forget.status) == (409, 409, 409)
    assert "is not being copied" in after.json["message"]


def test_what_changed_since_is_counted(own: Aggregated) -> None:
    calm = [_captured(name) for name in ("same", "changed", "gone")]
    for each in calm:
        del each["metadata"]["deletionTimestamp"], each["metadata"]["finalizers"]
    _copy(own, *calm)
    _ask(own, "POST", "floor", {"above": _ABOVE})
    _ask(own, "POST", "finish")

    own.proxied("POST", REPORTS, report("created"))
    own.proxied(
        "PATCH",
        f"{REPORTS}/changed",
        {"spec": {"size": 9}},
        content_type="application/merge-patch+json",
    )
    own.proxied("DELETE", f"{REPORTS}/gone")

    told = _ask(own, "GET", "")
    assert told["state"] == "adopted"
    assert told["since"] == {"created": {"reports": 1}, "changed": {"reports": 1}, "deleted": 1}
    assert len(_ask(own, "GET", "created")["uids"]) == 1


def test_objects_are_read_as_stored_and_at_a_version_page_by_page(own: Aggregated) -> None:
    _copy(own, _captured("a"), _captured("b"), _captured("c"))

    first = _ask(own, "GET", "objects?resource=reports&version=v1&limit=2")
    second = _ask(own, "GET", f"objects?resource=reports&limit=2&after={first['after']}")
    one = _ask(own, "GET", "objects?resource=reports&version=v1&key=default/b")

    names = [each["metadata"]["name"] for each in (*first["items"], *second["items"])]
    assert (names, second["after"]) == (["a", "b", "c"], "")
    assert one == own.proxied("GET", f"{REPORTS}/b").json


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"object": {"kind": "Report"}},
        {"object": report("no-uid")},
        {"object": {**_captured("a"), "apiVersion": f"{GROUP}/v9"}},
        {"object": {**_captured("a"), "kind": "Secret"}},
        {"gone": {"kind": "Report", "namespace": "default", "name": "a/b"}},
    ],
)
def test_what_cannot_be_put_is_refused_and_nothing_is_written(
    own: Aggregated, change: dict[str, Any]
) -> None:
    _ask(own, "POST", "begin", {"above": 1})

    refused = own.proxied(
        "POST", group_path(GROUP, "objects"), {"changes": [{"object": _captured("ok")}, change]}
    )

    assert refused.status == 400
    assert own.proxied("GET", REPORTS).json["items"] == []


def test_it_is_open_to_the_allowed_alone_and_shown_as_an_api(own: Aggregated) -> None:
    refused = own.proxied("GET", group_path(GROUP), user="joe", groups=())
    shown = own.proxied("GET", HOME)

    assert refused.status == 403
    assert shown.json["groupVersion"] == "adopt.instar.dev/v1"
    assert dict(shown.headers)[SERVED_BY.lower()] == SERVED_BY_INSTAR


def test_a_group_can_be_forgotten_while_it_is_copied(own: Aggregated) -> None:
    _copy(own, _captured("a"), _captured("b"))

    assert _ask(own, "POST", "forget") == {"removed": 2}

    assert own.proxied("GET", REPORTS).json["items"] == []
    assert _ask(own, "GET", "")["state"] == "none"
    eventually(lambda: own.proxied("GET", f"{REPORTS}/a").status == 404)
