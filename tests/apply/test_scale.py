"""The scale subresource: entries translated to autoscaling/v1 and back."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.apply.applying import Application, apply_patch
from instar.kube.apply.conflicts import ApplyConflict
from instar.kube.apply.conversion_requests import drive
from instar.kube.apply.field_set import text
from instar.kube.apply.managers import Writer, ownership_before, track_update
from instar.kube.apply.ownership_schema import SCALE
from instar.kube.apply.scale import SCALE_VERSION, entries_after_scale, replicas_path, to_scale

V1, V2 = "g.io/v1", "g.io/v2"
T0, T1 = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
PATHS = {V1: replicas_path(".spec.replicas"), V2: replicas_path(".spec.scale.count")}


def entry(manager: str, fields: Any, version: str = V1, operation: str = "Update") -> Any:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "time": T0,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


REPLICAS_AND_IMAGE: dict[str, Any] = {"f:spec": {"f:replicas": {}, "f:image": {}}}
PARENT = [
    entry("flux", REPLICAS_AND_IMAGE, operation="Apply"),
    entry("other", {"f:spec": {"f:image": {}}}),
    entry("second", {"f:spec": {"f:scale": {"f:count": {}}}}, V2),
    entry("stale", {"f:spec": {"f:replicas": {}}}, "g.io/v0"),
]


def scale(replicas: int, entries: Any = None) -> dict[str, Any]:
    obj: dict[str, Any] = {
        "apiVersion": SCALE_VERSION,
        "kind": "Scale",
        "metadata": {"name": "a"},
        "spec": {"replicas": replicas},
    }
    if entries is not None:
        obj["metadata"]["managedFields"] = entries
    return obj


def shown(entries: Any) -> list[tuple[str, str, str, str]]:
    return [
        (raw["manager"], raw["apiVersion"], raw.get("subresource", ""), text(raw["fieldsV1"]))
        for raw in entries
    ]


def test_only_owners_of_replicas_are_seen_in_a_scale() -> None:
    assert shown(to_scale(PARENT, PATHS)) == [
        ("flux", SCALE_VERSION, "", '{"f:spec":{"f:replicas":{}}}'),
        ("second", SCALE_VERSION, "", '{"f:spec":{"f:replicas":{}}}'),
    ]


def test_a_scale_that_changes_nothing_changes_no_entry() -> None:
    assert entries_after_scale(PARENT, to_scale(PARENT, PATHS), PATHS, V1) == entries_after_scale(
        PARENT, to_scale(PARENT, PATHS), PATHS, V2
    )
    assert len(entries_after_scale(PARENT, to_scale(PARENT, PATHS), PATHS, V1)) == len(PARENT)


def test_a_scale_write_takes_the_replicas_of_all_versions() -> None:
    live, new = scale(1, to_scale(PARENT, PATHS)), scale(2)
    who = Writer("hpa", SCALE_VERSION, T1, "scale")
    versions = {SCALE_VERSION: SCALE}
    after = track_update(
        ownership_before(live, new, "scale"),
        who,
        {SCALE_VERSION: live},
        {SCALE_VERSION: new},
        versions,
    )

    assert shown(entries_after_scale(PARENT, after, PATHS, V2)) == [
        ("flux", V1, "", '{"f:spec":{"f:image":{}}}'),
        ("hpa", V2, "scale", '{"f:spec":{"f:scale":{"f:count":{}}}}'),
        ("other", V1, "", '{"f:spec":{"f:image":{}}}'),
        ("stale", "g.io/v0", "", '{"f:spec":{"f:replicas":{}}}'),
    ]


def test_applying_a_scale_conflicts_with_owners_of_replicas_and_force_wins() -> None:
    live = scale(1, to_scale(PARENT[:1], PATHS))
    who = Writer("me", SCALE_VERSION, T1, "scale")
    versions = {SCALE_VERSION: SCALE}

    with pytest.raises(ApplyConflict) as caught:
        drive(apply_patch(Application(who, scale(3), live, versions)), unneeded)
    applied = drive(apply_patch(Application(who, scale(3), live, versions, True)), unneeded)

    assert caught.value.message == (
        'Apply failed with 1 conflict: conflict with "flux": .spec.replicas'
    )
    assert applied.obj["spec"] == {"replicas": 3}
    assert shown(entries_after_scale(PARENT[:1], applied.managed_fields, PATHS, V1)) == [
        ("me", V1, "scale", '{"f:spec":{"f:replicas":{}}}'),
        ("flux", V1, "", '{"f:spec":{"f:image":{}}}'),
    ]


def unneeded(obj: dict[str, Any], version: str) -> None:
    raise AssertionError("a Scale has one version only")
