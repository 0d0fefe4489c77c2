"""What an applied configuration may not be, and kubectl's way over from client-side apply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from instar.base import errors
from tests.apply.support import T1, V1, thing
from tests.apply.test_apply import LAST_APPLIED, Obj, apply, create, refusal, update

PREFIX = "failed to create typed patch object (/a; g.io/v1, Kind=Thing): "


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"zzz": 1}, ".spec.zzz: field not declared in schema"),
        ({"replicas": "1"}, ".spec.replicas: expected numeric (int or float), got string"),
        ({"replicas": True}, ".spec.replicas: expected numeric (int or float), got bool"),
        ({"image": 5}, ".spec.image: expected string, got &value.valueUnstructured{Value:5}"),
        ({"labels": ["a"]}, ".spec.labels: expected map, got &{[a]}"),
        ({"args": {"a": 1}}, ".spec.args: expected list, got &{map[a:1]}"),
        ({"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
        (
            {"ports": [{"port": 1}, {"port": 1}]},
            '.spec.ports: duplicate entries for key [port=1,protocol="TCP"]',
        ),
        (
            {"tags": [None]},
            ".spec.tags: element 0: associative list without keys has an element "
            "that's an explicit null",
        ),
        (
            {"ports": [None]},
            ".spec.ports: element 0: associative list with keys may not have a null element",
        ),
        (
            {"ports": ["x"]},
            ".spec.ports: element 0: associative list with keys may not have non-map elements",
        ),
        (
            {"args": [1], "image": 5},
            "errors:\n"
            "  .spec.args[0]: expected string, got &value.valueUnstructured{Value:1}\n"
            "  .spec.image: expected string, got &value.valueUnstructured{Value:5}",
        ),
    ],
)
def test_a_configuration_must_fit_the_schema(spec: Obj, problem: str) -> None:
    with pytest.raises(errors.Unclassified) as caught:
        apply(None, thing(spec))

    assert caught.value.message == PREFIX + problem
    assert caught.value.code == 500


def test_metadata_is_typed_too() -> None:
    with pytest.raises(errors.Unclassified, match=r"\.metadata\.zzz: field not declared"):
        apply(None, thing({}, zzz=1))


def test_a_configuration_may_not_carry_entries_or_another_version() -> None:
    with pytest.raises(errors.BadRequest, match=r"metadata\.managedFields must be nil"):
        apply(None, thing({}, managedFields=[]))
    with pytest.raises(errors.BadRequest, match=r"patch version: g\.io/v2, expected: g\.io/v1"):
        apply(None, thing({}, "g.io/v2"))


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"operation": "Steal"}, "operation must be `Apply` or `Update`"),
        ({"operation": "Apply"}, "apiVersion must not be empty"),
        (
            {"operation": "Apply", "apiVersion": V1},
            "missing fieldsType in managed fields entry 0",
        ),
        (
            {"operation": "Apply", "apiVersion": V1, "fieldsType": "V2"},
            'invalid fieldsType "V2" in managed fields entry 0',
        ),
    ],
)
def test_unreadable_live_entries_stop_an_apply(entry: Obj, problem: str) -> None:
    live = thing({"image": "x"}, managedFields=[entry])

    with pytest.raises(errors.Unclassified) as caught:
        apply(live, thing({"image": "y"}))

    assert caught.value.message == f"failed to decode managed fields: {problem}"


def client_side(spec: Obj, **changes: Any) -> Obj:
    """An object kubectl created with client-side apply."""
    described = json.dumps({**thing(spec), **changes})
    return create(thing(spec, annotations={LAST_APPLIED: described}), "kubectl-client-side-apply")


def test_kubectl_takes_over_what_it_applied_on_the_client_side() -> None:
    live = client_side({"image": "x", "replicas": 1})

    after = apply(live, thing({"image": "y", "replicas": 1}), "kubectl", T1)

    assert after["spec"] == {"image": "y", "replicas": 1}
    assert json.loads(after["metadata"]["annotations"][LAST_APPLIED]) == thing(
        {"image": "y", "replicas": 1}
    )


def test_only_manager_kubectl_is_excused_and_only_at_its_version() -> None:
    live = client_side({"image": "x"})
    other = client_side({"image": "x"}, apiVersion="g.io/v2")

    assert ".spec.image" in refusal(live, thing({"image": "y"}), "flux").message
    assert ".spec.image" in refusal(other, thing({"image": "y"}), "kubectl").message


def test_fields_changed_by_other_managers_still_conflict_for_kubectl() -> None:
    live = client_side({"image": "x", "replicas": 1})
    live = update(live, {**live, "spec": {"image": "x", "replicas": 5}}, "scaler")

    error = refusal(live, thing({"image": "y", "replicas": 2}), "kubectl", T1)

    assert error.message == (
        'Apply failed with 1 conflict: conflict with "scaler" using g.io/v1: .spec.replicas'
    )


def test_the_annotation_is_not_brought_into_being() -> None:
    live = apply(None, thing({"image": "x"}), "kubectl")

    assert "annotations" not in live["metadata"]


def test_an_annotation_that_grew_too_large_is_dropped() -> None:
    live = client_side({"image": "x"})
    big = "y" * (256 * 1024)

    after = apply(live, thing({"image": big}), "kubectl", T1)

    assert after["metadata"]["annotations"] == {}
