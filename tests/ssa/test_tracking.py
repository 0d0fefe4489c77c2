"""managedFields of every other write."""

from __future__ import annotations

from tests.ssa.support import Things


def test_a_create_owns_all_it_sent_under_the_user_agents_name(single: Things) -> None:
    body = {
        "apiVersion": f"{single.group}/v1",
        "kind": "Thing",
        "metadata": {"name": "a", "labels": {"l": "1"}},
        "spec": {"image": "one", "ports": [{"port": 80}]},
    }
    path = f"/apis/{single.group}/v1/namespaces/default/things"
    single.server.request("POST", path, body, headers={"User-Agent": "my-tool/1.2 (linux)"})

    assert single.owners("a") == {
        ("my-tool", "Update", "v1", ""): {
            "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
            "f:spec": {
                ".": {},
                "f:image": {},
                "f:ports": {
                    ".": {},
                    'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:protocol": {}},
                },
                "f:replicas": {},
            },
        }
    }


def test_a_status_write_is_tracked_apart(single: Things) -> None:
    single.apply("a", {"image": "one"})
    single.merge("a", {"status": {"phase": "Up"}}, sub="status", manager="ctrl")

    entry = single.owners("a")[("ctrl", "Update", "v1", "status")]
    assert entry == {"f:status": {".": {}, "f:phase": {}}}


def test_a_write_that_changes_nothing_keeps_revision_and_times(single: Things) -> None:
    single.apply("a", {"image": "one"})
    before = single.get("a")

    single.merge("a", {"spec": {"image": "one"}})

    assert single.get("a") == before


LONG_AGO = "2020-01-01T00:00:00Z"


def _aged(things: Things, name: str) -> None:
    """Have all that was written so far be written long ago."""
    obj = things.get(name)
    for entry in obj["metadata"]["managedFields"]:
        entry["time"] = LONG_AGO
    obj["metadata"]["labels"] = {"aged": "yes"}
    answer = things.server.request("PUT", things.path(name) + "?fieldManager=clock", obj)
    assert answer.status == 200, answer.text


def _times(things: Things, name: str) -> dict[str, str]:
    return {e["manager"]: e["time"] for e in things.get(name)["metadata"]["managedFields"]}


def test_setting_ones_own_field_to_another_value_moves_ones_time(single: Things) -> None:
    single.apply("a", {"image": "one"})
    single.merge("a", {"spec": {"args": ["1"]}})
    _aged(single, "a")

    single.merge("a", {"spec": {"args": ["2"]}})
    assert _times(single, "a")["bob"] > LONG_AGO
    assert _times(single, "a")["alice"] == LONG_AGO

    single.apply("a", {"image": "two"})
    assert _times(single, "a")["alice"] > LONG_AGO


def test_times_alone_are_not_a_change(single: Things) -> None:
    single.apply("a", {"image": "one"})
    before = single.get("a")
    later = single.get("a")
    later["metadata"]["managedFields"][0]["time"] = LONG_AGO

    answer = single.server.request("PUT", single.path("a"), later)

    assert answer.status == 200
    assert single.get("a") == before


def test_more_than_ten_updaters_become_ancient_changes(single: Things) -> None:
    single.apply("a", {"image": "one"})
    for number in range(12):
        single.merge("a", {"metadata": {"labels": {f"l{number}": "x"}}}, manager=f"m{number:02}")

    updaters = [who for who in single.owners("a") if who[1] == "Update"]
    assert len(updaters) == 10
    assert "ancient-changes" in [who[0] for who in updaters]


def test_a_reset_clears_ownership_and_tracking_stays_off(single: Things) -> None:
    single.apply("a", {"image": "one"})
    single.merge("a", {"metadata": {"managedFields": [{}]}})
    single.merge("a", {"spec": {"image": "two"}})

    assert single.owners("a") == {}


def test_scale_writes_are_tracked_under_scale(single: Things) -> None:
    single.apply("a", {"image": "one", "replicas": 1})
    single.merge("a", {"spec": {"replicas": 4}}, sub="scale", manager="hpa")

    owners = single.owners("a")
    assert owners[("hpa", "Update", "v1", "scale")] == {"f:spec": {"f:replicas": {}}}
    assert owners[("alice", "Apply", "v1", "")] == {"f:spec": {"f:image": {}}}
