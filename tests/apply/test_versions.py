"""Ownership across versions: v1 says ``replicas`` and ``image``, v2 ``scale.count`` and ``img``."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from instar.kube.apply.applying import Application, Applied, apply_patch
from instar.kube.apply.conflicts import ApplyConflict
from instar.kube.apply.conversion_requests import Need, Step
from instar.kube.apply.field_set import text
from instar.kube.apply.managed_fields import decode
from instar.kube.apply.managers import Writer, foreign_versions, ownership_before, track_update
from instar.kube.apply.ownership_schema import compile_schema
from instar.kube.schema.structure.structural import Structural

V1, V2, GONE = "g.io/v1", "g.io/v2", "g.io/v0"
T0, T1, T2 = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"
STRING, INTEGER = Structural(type="string"), Structural(type="integer")
Obj = dict[str, Any]


def schema(**spec: Structural) -> Any:
    return compile_schema(
        Structural(type="object", properties={"spec": Structural(type="object", properties=spec)})
    )


SCHEMAS = {
    V1: schema(replicas=INTEGER, image=STRING, note=STRING),
    V2: schema(
        scale=Structural(type="object", properties={"count": INTEGER}), img=STRING, note=STRING
    ),
}


def renamed(obj: Obj, version: str) -> Obj | None:
    """A converter that moves fields; it knows no v0."""
    out = copy.deepcopy(obj)
    if version not in SCHEMAS:
        return None
    spec = out.get("spec")
    if spec is not None and obj["apiVersion"] != version:
        if version == V2:
            _move(spec, ("replicas",), ("scale", "count"))
            _move(spec, ("image",), ("img",))
        else:
            _move(spec, ("scale", "count"), ("replicas",))
            _move(spec, ("img",), ("image",))
            spec.pop("scale", None)
    out["apiVersion"] = version
    return out


def _move(spec: Obj, source: tuple[str, ...], target: tuple[str, ...]) -> None:
    node = spec
    for name in source[:-1]:
        node = node.get(name) or {}
    if source[-1] not in node:
        return
    value = node.pop(source[-1])
    for name in target[:-1]:
        spec = spec.setdefault(name, {})
    spec[target[-1]] = value


def obj_at(version: str, **spec: Any) -> Obj:
    out: Obj = {"apiVersion": version, "kind": "Thing", "metadata": {"name": "a"}}
    return {**out, "spec": spec} if spec else out


class Batches:
    """Drives a step and remembers how many conversions each batch had."""

    def __init__(self, converter: Callable[[Obj, str], Obj | None] = renamed) -> None:
        self.converter = converter
        self.sizes: list[int] = []

    def run(self, step: Step[Applied]) -> Applied:
        try:
            need: Need = next(step)
            while True:
                self.sizes.append(len(need))
                need = step.send([self.converter(obj, version) for obj, version in need])
        except StopIteration as done:
            result: Applied = done.value
            return result


def apply(
    live: Obj | None,
    config: Obj,
    manager: str = "one",
    now: str = T1,
    force: bool = False,
    batches: Batches | None = None,
) -> Obj:
    version = config["apiVersion"]
    seen = live if live is None else with_entries(renamed(live, version), live)
    request = Application(Writer(manager, version, now), config, seen, SCHEMAS, force)
    applied = (batches or Batches()).run(apply_patch(request))
    applied.obj["metadata"]["managedFields"] = applied.managed_fields
    return applied.obj


def with_entries(obj: Obj | None, source: Obj) -> Obj:
    assert obj is not None
    obj["metadata"]["managedFields"] = source["metadata"].get("managedFields")
    return obj


def entries(obj: Obj) -> list[tuple[str, str, str]]:
    return [
        (raw["manager"], raw["apiVersion"], text(raw["fieldsV1"]))
        for raw in obj["metadata"]["managedFields"]
    ]


def test_a_conflict_names_the_path_in_the_owners_version() -> None:
    live = apply(None, obj_at(V1, replicas=1, image="x"), "owner")

    with pytest.raises(ApplyConflict) as caught:
        apply(live, obj_at(V2, scale={"count": 2}))

    assert caught.value.message == (
        'Apply failed with 1 conflict: conflict with "owner": .spec.replicas'
    )


def test_equal_values_in_another_version_are_shared() -> None:
    live = apply(None, obj_at(V1, replicas=1, image="x"), "owner")

    after = apply(live, obj_at(V2, scale={"count": 1}))

    assert entries(after) == [
        ("one", V2, '{"f:spec":{"f:scale":{"f:count":{}}}}'),
        ("owner", V1, '{"f:spec":{"f:image":{},"f:replicas":{}}}'),
    ]


def test_force_takes_the_field_from_an_owner_in_another_version() -> None:
    live = apply(None, obj_at(V1, replicas=1, image="x"), "owner", T0)

    after = apply(live, obj_at(V2, scale={"count": 2}), force=True)

    assert after["spec"] == {"scale": {"count": 2}, "img": "x"}
    assert entries(after) == [
        ("owner", V1, '{"f:spec":{"f:image":{}}}'),
        ("one", V2, '{"f:spec":{"f:scale":{"f:count":{}}}}'),
    ]


def test_an_applier_that_changes_version_keeps_one_entry() -> None:
    live = apply(None, obj_at(V1, replicas=1, image="x"))

    after = apply(live, obj_at(V2, scale={"count": 1}, img="x"), now=T2)

    assert after["spec"] == {"scale": {"count": 1}, "img": "x"}
    assert entries(after) == [("one", V2, '{"f:spec":{"f:img":{},"f:scale":{"f:count":{}}}}')]


def test_fields_applied_at_the_old_version_are_removed_through_the_new_one() -> None:
    live = apply(None, obj_at(V1, replicas=1, image="x"))

    after = apply(live, obj_at(V2, img="x"))

    assert after["spec"] == {"img": "x"}


def test_a_field_owned_in_a_third_place_survives_its_applier() -> None:
    live = apply(None, obj_at(V1, replicas=1, image="x"))
    live = apply(live, obj_at(V2, scale={"count": 1}), "two")

    after = apply(live, obj_at(V1, image="x"))

    assert after["spec"] == {"replicas": 1, "image": "x"}
    assert ("two", V2, '{"f:spec":{"f:scale":{"f:count":{}}}}') in entries(after)


def test_entries_of_a_version_that_is_gone_are_dropped_alone() -> None:
    live = apply(None, obj_at(V1, replicas=1, image="x"), "owner")
    stale = {**live["metadata"]["managedFields"][0], "apiVersion": GONE, "manager": "stale"}
    live["metadata"]["managedFields"].append(stale)

    after = apply(live, obj_at(V1, note="n"))

    assert [(who, version) for who, version, _ in entries(after)] == [("one", V1), ("owner", V1)]


def test_entries_whose_conversion_fails_are_dropped_alone() -> None:
    live = apply(None, obj_at(V1, image="x"), "old")
    live = apply(live, obj_at(V2, scale={"count": 1}), "new")
    failing = Batches(lambda obj, version: None if version == V1 else renamed(obj, version))

    after = apply(live, obj_at(V2, note="n"), batches=failing)

    assert [who for who, _, _ in entries(after)] == ["new", "one"]


def test_nothing_is_removed_when_an_owners_version_cannot_be_read() -> None:
    live = apply(None, obj_at(V1, replicas=1, image="x"))
    live = apply(live, obj_at(V2, scale={"count": 1}), "two")

    def whole_objects_only(obj: Obj, version: str) -> Obj | None:
        return renamed(obj, version) if "image" in obj.get("spec", {}) else None

    after = apply(live, obj_at(V1, note="n"), batches=Batches(whole_objects_only))

    assert after["spec"] == {"replicas": 1, "image": "x", "note": "n"}


def test_a_plain_apply_asks_for_all_conversions_in_one_batch() -> None:
    live = apply(None, obj_at(V1, replicas=1, image="x"), "owner")
    batches = Batches()

    apply(live, obj_at(V2, note="n"), batches=batches)

    assert batches.sizes == [2]


def test_an_apply_that_changes_nothing_requests_no_conversion() -> None:
    live = apply(None, obj_at(V1, replicas=1, image="x"), "owner")
    live = apply(live, obj_at(V2, scale={"count": 1}))
    batches = Batches()

    after = apply(live, obj_at(V2, scale={"count": 1}), now=T2, batches=batches)

    assert batches.sizes == []
    assert entries(after) == entries(live)


def test_an_update_in_one_version_takes_fields_recorded_in_another() -> None:
    live1 = apply(None, obj_at(V1, replicas=1, image="x"), "owner")
    live2 = with_entries(renamed(live1, V2), live1)
    new2 = copy.deepcopy(live2)
    new2["spec"]["scale"]["count"] = 2
    before = ownership_before(live2, new2)
    assert foreign_versions(before, V2) == {V1}

    found = track_update(
        before,
        Writer("up", V2, T2),
        {V2: live2, V1: live1},
        {V2: new2, V1: renamed(new2, V1) or {}},
        SCHEMAS,
    )

    assert [(who.manager, text(entry.fields)) for who, entry in decode(found).items()] == [
        ("owner", '{"f:spec":{"f:image":{}}}'),
        ("up", '{"f:spec":{"f:scale":{"f:count":{}}}}'),
    ]


def test_the_same_protocol_serves_strategy_none() -> None:
    live = apply(None, obj_at(V1, note="n"), "owner")
    plain = Batches(lambda obj, version: {**obj, "apiVersion": version})

    with pytest.raises(ApplyConflict, match=r"\.spec\.note"):
        apply(live, obj_at(V2, note="m"), batches=plain)
