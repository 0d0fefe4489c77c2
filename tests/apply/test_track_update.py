"""managedFields after create, update and patch: who gains, who loses, whose time moves."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from instar.kube.apply.field_set import text
from instar.kube.apply.managed_fields import (
    BadManagedFields,
    decode,
    manager_from_user_agent,
    only_times_differ,
)
from instar.kube.apply.managers import (
    Writer,
    foreign_versions,
    ownership_before,
    track_update,
    versions_needed,
)
from tests.apply.support import SCHEMAS, T0, T1, T2, V1, V2, thing, writer


def created(obj: dict[str, Any], manager: str = "one") -> dict[str, Any]:
    who = writer(manager, version=obj["apiVersion"])
    version = obj["apiVersion"]
    entries = track_update(ownership_before(None, obj), who, None, {version: obj}, SCHEMAS)
    return with_entries(obj, entries)


def with_entries(obj: dict[str, Any], entries: list[dict[str, Any]] | None) -> dict[str, Any]:
    out = copy.deepcopy(obj)
    out["metadata"].pop("managedFields", None)
    if entries is not None:
        out["metadata"]["managedFields"] = entries
    return out


def updated(live: dict[str, Any], new: dict[str, Any], who: Writer) -> dict[str, Any]:
    before = ownership_before(live, new, who.subresource)
    version = who.api_version
    return with_entries(new, track_update(before, who, {version: live}, {version: new}, SCHEMAS))


def owners(obj: dict[str, Any]) -> dict[str, str]:
    return {
        raw["manager"]: text(raw["fieldsV1"]) for raw in obj["metadata"].get("managedFields", [])
    }


def times(obj: dict[str, Any]) -> dict[str, str]:
    return {raw["manager"]: raw["time"] for raw in obj["metadata"].get("managedFields", [])}


def edited(live: dict[str, Any], **spec: Any) -> dict[str, Any]:
    new = copy.deepcopy(live)
    for name, value in spec.items():
        if value is None:
            del new["spec"][name]
        else:
            new["spec"][name] = value
    return new


def test_a_create_owns_everything_but_identity() -> None:
    obj = thing({"image": "x", "tags": ["b"], "args": ["1"]}, labels={"a": "b"}, uid="u")

    live = created(obj)

    assert live["metadata"]["managedFields"] == [
        {
            "apiVersion": V1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {
                    ".": {},
                    "f:args": {},
                    "f:image": {},
                    "f:tags": {".": {}, 'v:"b"': {}},
                },
            },
            "manager": "one",
            "operation": "Update",
            "time": T0,
        }
    ]


def test_keyed_items_use_defaults_of_missing_keys() -> None:
    live = created(thing({"ports": [{"port": 80, "name": "w"}]}))

    assert owners(live)["one"] == (
        '{"f:spec":{".":{},"f:ports":{".":{},"k:{\\"port\\":80,\\"protocol\\":\\"TCP\\"}":'
        '{".":{},"f:name":{},"f:port":{}}}}}'
    )


def test_owner_references_and_finalizers_follow_the_built_in_rules() -> None:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1"}

    live = created(thing(finalizers=["x/y"], ownerReferences=[reference]))

    assert owners(live)["one"] == (
        '{"f:metadata":{"f:finalizers":{".":{},"v:\\"x/y\\"":{}},'
        '"f:ownerReferences":{".":{},"k:{\\"uid\\":\\"u1\\"}":{}}}}'
    )


def test_an_update_takes_what_it_changes_from_the_others() -> None:
    live = created(thing({"image": "x", "replicas": 1}))

    after = updated(live, edited(live, replicas=2), writer("two", T1))

    assert owners(after) == {
        "one": '{"f:spec":{".":{},"f:image":{}}}',
        "two": '{"f:spec":{"f:replicas":{}}}',
    }
    assert times(after) == {"one": T0, "two": T1}


def test_a_removed_field_leaves_every_set_and_moves_no_time() -> None:
    live = created(thing({"image": "x", "replicas": 1}))

    after = updated(live, edited(live, replicas=None), writer("one", T1))

    assert owners(after) == {"one": '{"f:spec":{".":{},"f:image":{}}}'}
    assert times(after) == {"one": T0}


def test_a_write_that_changes_nothing_keeps_every_entry() -> None:
    live = created(thing({"image": "x"}))

    after = updated(live, copy.deepcopy(live), writer("two", T1))

    assert after == live


def test_the_same_manager_grows_its_entry() -> None:
    live = created(thing({"image": "x"}))

    after = updated(live, edited(live, replicas=3), writer("one", T1))

    assert owners(after) == {"one": '{"f:spec":{".":{},"f:image":{},"f:replicas":{}}}'}
    assert times(after) == {"one": T1}


def test_an_untracked_object_stays_untracked_on_update() -> None:
    live = thing({"image": "x"}, uid="u")

    after = updated(live, edited(live, image="y"), writer("one", T1))

    assert "managedFields" not in after["metadata"]


def test_empty_lists_of_entries_reset_tracking() -> None:
    live = created(thing({"image": "x"}))
    resets: list[list[dict[str, Any]]] = [[], [{}]]
    for sent in resets:
        new = with_entries(edited(live, image="y"), sent)

        after = updated(live, new, writer("two", T1))

        assert "managedFields" not in after["metadata"]


def test_missing_or_unreadable_managed_fields_of_a_request_mean_the_live_ones() -> None:
    live = created(thing({"image": "x"}))
    for sent in (None, [{"manager": "m", "operation": "Steal"}], [{"operation": "Apply"}]):
        new = with_entries(edited(live, replicas=1), sent)

        after = updated(live, new, writer("two", T1))

        assert set(owners(after)) == {"one", "two"}


def test_entries_of_the_wrong_shape_are_unreadable() -> None:
    entry = created(thing({"image": "x"}))["metadata"]["managedFields"][0]
    broken: list[Any] = [["x"], {"a": 1}, [{**entry, "time": 5}], [{**entry, "fieldsV1": [1]}]]
    for sent in broken:
        with pytest.raises(BadManagedFields):
            decode(sent)


def test_a_request_may_rewrite_entries_but_not_through_a_subresource() -> None:
    live = created(thing({"image": "x"}))
    renamed = copy.deepcopy(live["metadata"]["managedFields"])
    renamed[0]["manager"] = "new-name"
    new = with_entries(live, renamed)

    assert set(owners(updated(live, new, writer("two", T1)))) == {"new-name"}
    assert set(owners(updated(live, new, writer("two", T1, "status")))) == {"one"}


def test_main_ignores_status_and_status_ignores_the_rest() -> None:
    live = created({**thing({"image": "x"}), "status": {"ready": 1}})
    assert owners(live) == {"one": '{"f:spec":{".":{},"f:image":{}}}'}

    new = {**edited(live, image="y"), "status": {"ready": 2}}
    after = updated(live, new, writer("controller", T1, "status"))

    entry = after["metadata"]["managedFields"][1]
    assert entry["subresource"] == "status"
    assert text(entry["fieldsV1"]) == '{"f:status":{"f:ready":{}}}'


def test_more_than_ten_updaters_flow_into_one_bucket() -> None:
    live = created(thing({"labels": {"k": "v"}}))
    for number in range(12):
        labels = {**live["spec"]["labels"], f"k{number}": "v"}
        who = writer(f"m{number}", f"2026-01-01T00:01:{number:02d}Z")
        live = updated(live, edited(live, labels=labels), who)

    entries = live["metadata"]["managedFields"]
    assert len(entries) == 10
    assert entries[0]["manager"] == "ancient-changes"
    assert entries[0]["time"] == "2026-01-01T00:01:02Z"
    assert text(entries[0]["fieldsV1"]) == (
        '{"f:spec":{".":{},"f:labels":{".":{},"f:k":{},"f:k0":{},"f:k1":{},"f:k2":{}}}}'
    )


def test_entries_of_another_version_are_judged_in_that_version() -> None:
    live = created(thing({"image": "x", "replicas": 1}))
    live2 = {**copy.deepcopy(live), "apiVersion": V2, "spec": {"image": "x", "args": ["1"]}}
    new2 = {**live2, "spec": {"image": "x", "args": ["2"]}}
    new1 = edited(live, replicas=2)
    before = ownership_before(live2, new2)
    assert foreign_versions(before, V2) == {V1}
    assert versions_needed(live["metadata"]["managedFields"], V2) == {V1}

    who = writer("two", T1, version=V2)
    entries = track_update(before, who, {V2: live2, V1: live}, {V2: new2, V1: new1}, SCHEMAS)

    assert owners(with_entries(live, entries)) == {
        "one": '{"f:spec":{".":{},"f:image":{}}}',
        "two": '{"f:spec":{"f:args":{}}}',
    }


def test_entries_of_a_version_that_cannot_be_had_are_dropped_alone() -> None:
    live = created(thing({"image": "x"}))
    gone = {**live["metadata"]["managedFields"][0], "apiVersion": "g.io/v0", "manager": "old"}
    live["metadata"]["managedFields"].append(gone)

    after = updated(live, edited(live, replicas=1), writer("two", T1))

    assert set(owners(after)) == {"one", "two"}


def test_granular_sets_collapse_when_the_schema_became_atomic() -> None:
    entry = {
        "manager": "one",
        "operation": "Update",
        "apiVersion": V1,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:args": {".": {}, 'v:"1"': {}}}},
    }
    live = with_entries(thing({"args": ["1"]}), [entry])

    after = updated(live, edited(live, replicas=1), writer("two", T1))

    assert owners(after)["one"] == '{"f:spec":{"f:args":{}}}'


def test_a_manager_is_named_after_the_program() -> None:
    assert manager_from_user_agent("kubectl/v1.30 (linux/amd64)") == "kubectl"
    assert manager_from_user_agent("Mozilla") == "Mozilla"
    assert manager_from_user_agent("/x") == "unknown"
    assert manager_from_user_agent("") == "unknown"
    assert manager_from_user_agent("a\tb\u0000c/1") == "abc"
    assert manager_from_user_agent("é" * 100) == "é" * 64


def test_only_times_differ_looks_at_nothing_but_times() -> None:
    entries = created(thing({"image": "x"}))["metadata"]["managedFields"]
    later = [{**entries[0], "time": T2}]

    assert only_times_differ(entries, later)
    assert not only_times_differ(entries, [{**later[0], "manager": "x"}])
    assert not only_times_differ(entries, [])


def test_times_are_read_as_utc_seconds() -> None:
    entries = created(thing({"image": "x"}))["metadata"]["managedFields"]

    managers = decode([{**entries[0], "time": "2026-01-01T02:00:00.5+02:00"}])

    assert [entry.time for entry in managers.values()] == ["2026-01-01T00:00:00Z"]
