"""Applied nulls, and containers that lose their last item: null, and validation judges it."""

from __future__ import annotations

from tests.ssa.support import Things


def test_null_for_a_nullable_object_is_stored_and_kept(things: Things) -> None:
    created = things.apply("a", {"inner": None})
    other = things.apply("a", {"image": "one"}, manager="carol")

    assert (created.status, other.status) == (201, 200)
    assert things.get("a")["spec"]["inner"] is None


def test_null_over_what_the_same_manager_applied_empties_it(things: Things) -> None:
    things.apply("a", {"inner": {"value": "x"}})

    answer = things.apply("a", {"inner": None})

    assert answer.status == 200, answer.text
    assert answer.json["spec"]["inner"] is None


def test_null_where_none_may_be_is_refused(things: Things) -> None:
    answer = things.apply("a", {"labels": None})

    assert answer.status == 422
    assert answer.json["details"]["causes"] == [
        {
            "reason": "FieldValueTypeInvalid",
            "field": "spec.labels",
            "message": 'Invalid value: "null": spec.labels in body must be of type object: "null"',
        }
    ]


def test_null_at_a_field_with_a_default_gives_the_default(things: Things) -> None:
    answer = things.apply("a", {"replicas": None})

    assert (answer.status, answer.json["spec"]["replicas"]) == (201, 1)


def test_a_list_emptied_by_its_applier_becomes_null_while_another_holds_it(single: Things) -> None:
    """Upstream leaves null there, which validation then refuses."""
    single.apply("a", {"tags": ["x"]})
    single.merge("a", {"spec": {"tags": None}}, manager="bob")
    single.merge("a", {"spec": {"tags": []}}, manager="bob")
    single.apply("a", {"tags": ["x"]})

    answer = single.apply("a", {"image": "one"})

    assert answer.status == 422
    assert 'spec.tags in body must be of type array: "null"' in answer.json["message"]


def test_an_owner_without_uid_is_invalid(things: Things) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}

    answer = things.apply("a", {}, metadata={"ownerReferences": [owner]})

    assert answer.status == 422
    assert "metadata.ownerReferences.uid: Invalid value" in answer.json["message"]


def test_an_undeclared_field_does_not_hide_other_problems(things: Things) -> None:
    answer = things.apply("a", {"wrong": 1, "tags": ["x", "x"], "ports": [{"name": "n"}]})

    assert answer.status == 500
    for text in (
        '.spec.tags: duplicate entries for key [="x"]',
        ".spec.wrong: field not declared in schema",
    ):
        assert text in answer.json["message"]
