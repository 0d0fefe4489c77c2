"""The contract without a network: restoring metadata, and what is checked only when changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.wire.conversion import contract
from instar.wire.conversion.contract import AnswerStage, BrokenContract
from tests.conversion.helpers import V2, widget

BAD_LABELS = {"not a key": "not a value!"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


def answer(original: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        **original,
        "apiVersion": V2,
        "metadata": {**original["metadata"], **metadata},
    }


def test_metadata_comes_from_the_original() -> None:
    original = widget(generation=3, finalizers=["f"], resourceVersion="7", creationTimestamp="t")
    tampered = answer(
        original,
        generation=9,
        finalizers=[],
        resourceVersion="1",
        creationTimestamp="u",
        ownerReferences=[{}],
        deletionTimestamp="now",
        managedFields=[{}],
        invented=1,
    )

    accepted = contract.accept(original, tampered, V2)

    assert accepted["metadata"] == original["metadata"]


def test_labels_and_annotations_come_from_the_answer() -> None:
    original = widget(labels={"a": "1"}, annotations={"b": "2"})

    accepted = contract.accept(
        original, answer(original, labels={"c": "3"}, annotations={"d": "4"}), V2
    )

    assert accepted["metadata"]["labels"] == {"c": "3"}
    assert accepted["metadata"]["annotations"] == {"d": "4"}


@pytest.mark.parametrize("gone", [None, "absent"])
def test_labels_that_are_absent_or_null_are_removed(gone: str | None) -> None:
    original = widget(labels={"a": "1"})
    converted = answer(original, labels=None)
    if gone == "absent":
        del converted["metadata"]["labels"]

    accepted = contract.accept(original, converted, V2)

    assert "labels" not in accepted["metadata"]
    assert original["metadata"]["labels"] == {"a": "1"}


def test_invalid_labels_pass_when_they_are_the_originals() -> None:
    original = widget(labels=BAD_LABELS, annotations=BAD_LABELS)

    accepted = contract.accept(original, answer(original), V2)

    assert accepted["metadata"]["labels"] == BAD_LABELS


def test_all_problems_of_changed_labels_are_reported_at_once() -> None:
    original = widget()

    with pytest.raises(BrokenContract) as caught:
        contract.accept(original, answer(original, labels=BAD_LABELS), V2)

    assert caught.value.text.startswith('[metadata.labels: Invalid value: "not a key": name part')
    assert 'metadata.labels: Invalid value: "not a value!": a valid label' in caught.value.text


def test_annotation_keys_may_have_capitals_anywhere() -> None:
    original = widget()

    accepted = contract.accept(original, answer(original, annotations={"Example.COM/Aa": ""}), V2)

    assert accepted["metadata"]["annotations"] == {"Example.COM/Aa": ""}


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({}, "missing metadata in converted object"),
        ({"metadata": []}, "invalid metadata of type []interface {} in converted object"),
        ({"metadata": None}, "invalid metadata of type <nil> in converted object"),
        ({"metadata": "x"}, "invalid metadata of type string in converted object"),
    ],
)
def test_metadata_of_a_nameless_object_must_still_be_an_object(
    metadata: dict[str, Any], text: str
) -> None:
    original = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {}, "spec": {}}

    with pytest.raises(BrokenContract) as caught:
        contract.accept(original, {"apiVersion": V2, "kind": "Widget", **metadata}, V2)

    assert (caught.value.stage, caught.value.text) == (AnswerStage.METADATA, text)


def test_partial_objects_without_metadata_are_accepted() -> None:
    original = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {}}

    accepted = contract.accept(original, {**original, "apiVersion": V2, "metadata": {}}, V2)

    assert accepted["metadata"] == {}


@given(metadata=st.dictionaries(st.text(max_size=5), JSON), reply=JSON)
def test_an_answer_is_refused_or_keeps_all_metadata_but_labels_and_annotations(
    metadata: dict[str, Any], reply: Any
) -> None:
    original = {**widget(), "metadata": metadata}
    before = copy.deepcopy(original)

    try:
        accepted = contract.accept(original, {**original, "apiVersion": V2, "metadata": reply}, V2)
    except BrokenContract:
        accepted = None

    assert original == before
    if accepted is not None:
        for side in (accepted["metadata"], metadata):
            side.pop("labels", None)
            side.pop("annotations", None)
        assert accepted["metadata"] == metadata


@given(converted=JSON)
def test_any_webhook_response_is_accepted_or_rejected_without_a_crash(converted: Any) -> None:
    with pytest.raises(BrokenContract):
        contract.accept_all([widget()], [converted], V2)
