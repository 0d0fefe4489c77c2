"""Server-side apply at one version: the scenarios of the reference."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from instar.kube.apply.applying import Application, apply_patch
from instar.kube.apply.conflicts import ApplyConflict
from instar.kube.apply.conversion_requests import drive
from instar.kube.apply.field_set import text
from instar.kube.apply.managers import ownership_before, track_update
from tests.apply.support import SCHEMAS, T0, T1, T2, V1, same_object, thing, writer

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
Obj = dict[str, Any]


def apply(
    live: Obj | None,
    config: Obj,
    manager: str = "one",
    now: str = T0,
    *,
    force: bool = False,
    subresource: str = "",
) -> Obj:
    request = Application(writer(manager, now, subresource), config, live, SCHEMAS, force)
    applied = drive(apply_patch(request), same_object)
    out = copy.deepcopy(applied.obj)
    if applied.managed_fields is not None:
        out["metadata"]["managedFields"] = applied.managed_fields
    return out


def update(live: Obj, new: Obj, manager: str, now: str = T1, subresource: str = "") -> Obj:
    before = ownership_before(live, new, subresource)
    who = writer(manager, now, subresource)
    out = copy.deepcopy(new)
    out["metadata"]["managedFields"] = track_update(before, who, {V1: live}, {V1: new}, SCHEMAS)
    return out


def create(obj: Obj, manager: str = "creator") -> Obj:
    who = writer(manager)
    return {
        **obj,
        "metadata": {
            **obj["metadata"],
            "managedFields": track_update({}, who, None, {V1: obj}, SCHEMAS),
        },
    }


def entries(obj: Obj) -> dict[str, str]:
    return {
        f"{raw['manager']}/{raw['operation']}": text(raw["fieldsV1"])
        for raw in obj["metadata"].get("managedFields", [])
    }


def refusal(*args: Any, **kwargs: Any) -> ApplyConflict:
    with pytest.raises(ApplyConflict) as caught:
        apply(*args, **kwargs)
    return caught.value


def test_applying_creates_and_owns_leaves_not_the_nodes_between() -> None:
    live = apply(None, thing({"image": "x", "labels": {"a": "b"}, "args": ["1"]}))

    assert live["spec"] == {"image": "x", "labels": {"a": "b"}, "args": ["1"]}
    assert live["metadata"]["managedFields"] == [
        {
            "apiVersion": V1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:image": {}, "f:labels": {"f:a": {}}, "f:args": {}}},
            "manager": "one",
            "operation": "Apply",
            "time": T0,
        }
    ]


def test_an_applied_item_is_owned_with_its_keys() -> None:
    live = apply(None, thing({"ports": [{"port": 80, "name": "w"}], "tags": ["t"]}))

    assert entries(live) == {
        "one/Apply": '{"f:spec":{"f:ports":{"k:{\\"port\\":80,\\"protocol\\":\\"TCP\\"}":'
        '{".":{},"f:name":{},"f:port":{}}},"f:tags":{"v:\\"t\\"":{}}}}'
    }


def test_empty_maps_and_nulls_are_owned_but_empty_keyed_lists_are_not() -> None:
    live = apply(None, thing({"labels": {}, "image": None, "ports": [], "args": []}))

    assert entries(live) == {"one/Apply": '{"f:spec":{"f:args":{},"f:image":{},"f:labels":{}}}'}


def test_a_configuration_that_owns_nothing_leaves_no_entry() -> None:
    live = create(thing({"image": "x"}))

    after = apply(live, thing(), "migrator", T1)

    assert after == live


def test_a_changed_value_of_another_owner_is_a_conflict() -> None:
    live = create(thing({"image": "x"}))

    error = refusal(live, thing({"image": "y"}))

    assert error.code == 409
    assert error.reason == "Conflict"
    assert error.message == (
        'Apply failed with 1 conflict: conflict with "creator" using g.io/v1: .spec.image'
    )
    assert error.details == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "creator" using g.io/v1',
                "field": ".spec.image",
            }
        ]
    }


def test_several_conflicts_are_listed_by_manager() -> None:
    live = apply(None, thing({"image": "x", "ports": [{"port": 80, "name": "w"}]}), "ap")
    live = update(live, {**live, "spec": {**live["spec"], "replicas": 1}}, "tester")
    live = update(live, {**live, "status": {"ready": True}}, "ctl", T2, "status")

    error = refusal(
        live, thing({"image": "y", "replicas": 2, "ports": [{"port": 80, "name": "v"}]})
    )

    assert error.message == (
        'Apply failed with 3 conflicts: conflicts with "ap":\n'
        "- .spec.image\n"
        '- .spec.ports[port=80,protocol="TCP"].name\n'
        'conflicts with "tester" using g.io/v1:\n'
        "- .spec.replicas"
    )


def test_a_subresource_is_named_in_the_conflict() -> None:
    live = create(thing({"image": "x"}))
    live = update(live, {**live, "status": {"ready": True}}, "ctl", T1, "status")

    error = refusal(live, {**thing(), "status": {"ready": False}}, "me", subresource="status")

    assert error.message == (
        'Apply failed with 1 conflict: conflict with "ctl" with subresource "status" '
        "using g.io/v1: .status.ready"
    )


def test_equal_values_are_shared_without_conflict_and_without_a_time() -> None:
    live = create(thing({"image": "x"}))

    after = apply(live, thing({"image": "x"}), "one", T1)

    assert entries(after) == {
        "creator/Update": '{"f:spec":{".":{},"f:image":{}}}',
        "one/Apply": '{"f:spec":{"f:image":{}}}',
    }
    assert [raw.get("time") for raw in after["metadata"]["managedFields"]] == [None, T0]


def test_force_takes_the_field_from_all_others() -> None:
    live = create(thing({"image": "x", "replicas": 1}))

    after = apply(live, thing({"image": "y"}), "one", T1, force=True)

    assert after["spec"]["image"] == "y"
    assert entries(after) == {
        "creator/Update": '{"f:spec":{".":{},"f:replicas":{}}}',
        "one/Apply": '{"f:spec":{"f:image":{}}}',
    }


def test_a_field_that_is_no_longer_applied_is_removed() -> None:
    live = apply(None, thing({"image": "x", "replicas": 1, "labels": {"a": "1", "b": "2"}}))

    after = apply(live, thing({"image": "x", "labels": {"a": "1"}}), now=T1)

    assert after["spec"] == {"image": "x", "labels": {"a": "1"}}
    assert after["metadata"]["managedFields"][0]["time"] == T1


def test_a_struct_is_removed_with_its_last_field_and_metadata_is_kept() -> None:
    live = apply(None, thing({"image": "x", "labels": {"a": "1"}}, labels={"l": "1"}, uid="u"))

    after = apply(live, thing(), now=T1)

    assert "spec" not in after
    assert after["metadata"] == {"name": "a", "uid": "u"}


def test_shared_fields_stay_when_one_owner_leaves() -> None:
    live = apply(None, thing({"image": "x", "replicas": 1}))
    live = apply(live, thing({"image": "x"}), "two", T1)

    after = apply(live, thing({"replicas": 1}), "one", T2)

    assert after["spec"] == {"image": "x", "replicas": 1}
    assert entries(after)["one/Apply"] == '{"f:spec":{"f:replicas":{}}}'


def test_fields_an_updater_owns_stay_too() -> None:
    live = apply(None, thing({"image": "x", "labels": {"a": "1"}}))
    live = update(live, {**live, "spec": {"image": "x", "labels": {"a": "1", "b": "2"}}}, "up")

    after = apply(live, thing({"image": "x"}), now=T2)

    assert after["spec"] == {"image": "x", "labels": {"b": "2"}}


def test_items_are_removed_by_key_and_set_members_by_value() -> None:
    ports = [{"port": 80, "name": "w"}, {"port": 90, "name": "m"}]
    live = apply(None, thing({"ports": ports, "tags": ["a", "b"]}))

    after = apply(live, thing({"ports": ports[1:], "tags": ["b", "c"]}), now=T1)

    assert after["spec"] == {"ports": ports[1:], "tags": ["b", "c"]}


def test_an_item_kept_by_another_keeps_only_what_that_one_owns() -> None:
    live = apply(None, thing({"ports": [{"port": 80, "name": "w"}]}))
    live = apply(live, thing({"ports": [{"port": 80}]}), "two", T1)

    after = apply(live, thing(), "one", T2)

    assert after["spec"]["ports"] == [{"port": 80}]


@pytest.mark.parametrize(
    ("live", "config", "expected"),
    [
        (["a", "b", "c"], ["c", "a"], ["b", "c", "a"]),
        (["a", "b", "c"], ["b", "a"], ["b", "c", "a"]),
        (["a", "b"], ["x", "b", "y"], ["a", "x", "b", "y"]),
        (["a", "b"], ["b", "a"], ["b", "a"]),
        (["a", "b", "c", "d"], ["d", "x", "a"], ["b", "c", "d", "x", "a"]),
        (["a"], [], ["a"]),
        ([], ["b", "a"], ["b", "a"]),
    ],
)
def test_items_keep_the_applied_order_and_the_others_their_neighbours(
    live: list[str], config: list[str], expected: list[str]
) -> None:
    before = create(thing({"tags": live}))

    after = apply(before, thing({"tags": config}), now=T1)

    assert after["spec"]["tags"] == expected


def test_atomic_lists_are_replaced_whole() -> None:
    live = apply(None, thing({"args": ["1", "2"]}))

    after = apply(live, thing({"args": ["3"]}), now=T1)

    assert after["spec"]["args"] == ["3"]
    assert "conflict with" in refusal(live, thing({"args": ["3"]}), "two").message


def test_null_replaces_a_value_but_does_not_empty_a_shared_map() -> None:
    live = create(thing({"image": "x", "labels": {"a": "1"}, "args": ["1"]}))

    after = apply(live, thing({"image": None, "labels": None, "args": None}), force=True)

    assert after["spec"] == {"image": None, "labels": {"a": "1"}, "args": None}


def test_live_duplicates_are_one_value_and_an_apply_leaves_one_copy() -> None:
    ports = [{"port": 80, "name": "w"}, {"port": 80, "name": "v"}, {"port": 90}]
    live = create(thing({"ports": ports}))
    assert '"k:{\\"port\\":80,\\"protocol\\":\\"TCP\\"}":{}' in entries(live)["creator/Update"]

    after = apply(live, thing({"ports": [{"port": 80, "name": "x"}]}), force=True)

    assert after["spec"]["ports"] == [{"port": 80, "name": "x"}, {"port": 90}]


def test_deduced_maps_are_granular_and_deduced_lists_one_value() -> None:
    config = {**thing(), "status": {"a": {"b": 1}, "l": [{"x": 1}]}}

    live = apply(None, config, subresource="status")

    assert entries(live) == {"one/Apply": '{"f:status":{"f:a":{".":{},"f:b":{}},"f:l":{}}}'}


def test_the_main_endpoint_does_not_claim_status() -> None:
    live = apply(None, {**thing({"image": "x"}), "status": {"a": 1}})

    assert entries(live) == {"one/Apply": '{"f:spec":{"f:image":{}}}'}


def test_applying_again_changes_neither_object_nor_time() -> None:
    config = thing({"image": "x", "tags": ["a"], "labels": {}})
    live = apply(None, config)

    assert apply(live, config, now=T2) == live


def test_an_untracked_object_gets_an_owner_before_the_first_apply() -> None:
    live = thing({"image": "x", "replicas": 1}, uid="u")

    error = refusal(live, thing({"image": "y"}))
    after = apply(live, thing({"image": "x", "tags": ["t"]}), now=T1)

    assert error.message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" '
        "using g.io/v1: .spec.image"
    )
    assert entries(after) == {
        "one/Apply": '{"f:spec":{"f:image":{},"f:tags":{"v:\\"t\\"":{}}}}',
        "before-first-apply/Update": '{"f:spec":{".":{},"f:image":{},"f:replicas":{}}}',
    }
