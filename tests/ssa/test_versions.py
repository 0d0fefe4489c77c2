"""Ownership recorded at one version, judged at another."""

from __future__ import annotations

from tests.ssa.support import SPEC, Things, crd
from tests.support.webhook import Webhook


def test_an_applier_keeps_one_entry_when_it_changes_version(plain: Things) -> None:
    plain.apply("a", {"image": "one"})
    plain.apply("a", {"image": "two"}, version="v2")

    assert list(plain.owners("a")) == [("alice", "Apply", "v2", "")]
    assert plain.get("a")["spec"]["image"] == "two"


def test_an_updater_has_an_entry_per_version(plain: Things) -> None:
    plain.apply("a", {"image": "one"})
    plain.merge("a", {"spec": {"maybe": "1"}})
    plain.merge("a", {"spec": {"port": 80}}, version="v2")

    assert set(plain.owners("a")) == {
        ("alice", "Apply", "v1", ""),
        ("bob", "Update", "v1", ""),
        ("bob", "Update", "v2", ""),
    }


def test_a_conflict_across_versions_names_the_owners_field_paths(converted: Things) -> None:
    converted.apply("a", {"image": "one"})

    refused = converted.apply("a", {"picture": "two"}, manager="carol", version="v2")
    forced = converted.apply("a", {"picture": "two"}, manager="carol", version="v2", force=True)

    assert refused.status == 409
    assert refused.json["message"] == (
        'Apply failed with 1 conflict: conflict with "alice": .spec.image'
    )
    assert forced.status == 200, forced.text
    assert converted.get("a")["spec"]["image"] == "two"
    assert list(converted.owners("a")) == [("carol", "Apply", "v2", "")]


def test_an_update_at_another_version_takes_what_it_changed(converted: Things) -> None:
    converted.apply("a", {"image": "one", "maybe": "m"})

    converted.merge("a", {"spec": {"picture": "two"}}, version="v2")

    owners = converted.owners("a")
    assert owners[("alice", "Apply", "v1", "")] == {"f:spec": {"f:maybe": {}}}
    assert owners[("bob", "Update", "v2", "")] == {"f:spec": {"f:picture": {}}}


def test_no_longer_applying_a_renamed_field_at_another_version_removes_it(
    converted: Things,
) -> None:
    converted.apply("a", {"image": "one", "maybe": "m"})

    converted.apply("a", {"maybe": "m"}, version="v2")

    assert "image" not in converted.get("a")["spec"]


def test_entries_of_a_vanished_version_are_dropped_alone(plain: Things) -> None:
    plain.apply("a", {"image": "one"})
    plain.merge("a", {"spec": {"maybe": "m"}}, version="v2", manager="old")
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{plain.group}"
    current = plain.server.request("GET", path).json
    current["spec"] = crd(plain.group, {"v1": SPEC})["spec"]
    assert plain.server.request("PUT", path, current).status == 200

    updated = plain.merge("a", {"spec": {"port": 80}})
    applied = plain.apply("a", {"image": "two"})

    assert (updated.status, applied.status) == (200, 200), applied.text
    assert set(plain.owners("a")) == {
        ("alice", "Apply", "v1", ""),
        ("bob", "Update", "v1", ""),
    }


def test_a_failing_webhook_costs_the_entries_it_cannot_convert_alone(
    converted: Things, hook: Webhook
) -> None:
    converted.apply("a", {"image": "one"})
    converted.merge("a", {"spec": {"maybe": "m"}}, version="v2", manager="other")
    hook.fault = "failed"
    try:
        updated = converted.merge("a", {"spec": {"port": 80}})
    finally:
        hook.fault = None

    assert updated.status == 200, updated.text
    assert set(converted.owners("a")) == {
        ("alice", "Apply", "v1", ""),
        ("bob", "Update", "v1", ""),
    }


def test_conversions_for_ownership_travel_together(converted: Things, hook: Webhook) -> None:
    converted.apply("a", {"image": "one"})
    converted.merge("a", {"spec": {"maybe": "m"}}, version="v2", manager="other")
    before = len(hook.calls)

    converted.merge("a", {"spec": {"port": 80}})

    assert len(hook.calls) - before == 1


def test_no_manager_loses_fields_while_the_webhook_is_down(
    converted: Things, hook: Webhook
) -> None:
    converted.apply("a", {"image": "one"})
    converted.merge("a", {"spec": {"maybe": "m"}}, version="v2", manager="other")
    hook.fault = "http_503"
    try:
        updated = converted.merge("a", {"spec": {"port": 80}})
    finally:
        hook.fault = None

    assert updated.status == 200, updated.text
    assert ("other", "Update", "v2", "") in converted.owners("a")
