"""Metadata: what decodes, what vanishes, what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.schema.metadata.object_meta import (
    MetaError,
    coerce_metadata,
    coerce_metadata_lenient,
    validate_metadata,
    validate_metadata_update,
)


def test_clean_metadata_is_not_copied() -> None:
    metadata = {"name": "a", "labels": {"a": "b"}, "creationTimestamp": "2024-01-02T03:04:05Z"}

    assert coerce_metadata(metadata)[0] is metadata


@pytest.mark.parametrize(
    ("metadata", "clean"),
    [
        (None, {}),
        ({"name": "", "labels": {}, "finalizers": []}, {}),
        ({"creationTimestamp": None, "generation": 0}, {}),
        ({"labels": {"a": None}}, {"labels": {"a": ""}}),
        ({"deletionGracePeriodSeconds": 0}, {"deletionGracePeriodSeconds": 0}),
        (
            {"creationTimestamp": "2024-01-02T03:04:05.678+02:00"},
            {"creationTimestamp": "2024-01-02T01:04:05Z"},
        ),
        (
            {"ownerReferences": [{"kind": "K"}]},
            {"ownerReferences": [{"apiVersion": "", "kind": "K", "name": "", "uid": ""}]},
        ),
    ],
)
def test_metadata_takes_its_typed_form(metadata: Any, clean: dict[str, Any]) -> None:
    assert coerce_metadata(metadata) == (clean, [])


def test_unknown_fields_vanish_and_are_named() -> None:
    metadata = {"zzz": 1, "name": "a", "ownerReferences": [{"x": 1}]}

    clean, unknown = coerce_metadata(metadata)

    assert "zzz" not in clean
    assert unknown == ["metadata.ownerReferences[0].x", "metadata.zzz"]


FIELD = "Go struct field ObjectMeta."


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        (1, "json: cannot unmarshal number into Go value of type v1.ObjectMeta"),
        ({"labels": {"a": 1}}, f"json: cannot unmarshal number into {FIELD}labels of type string"),
        (
            {"labels": "x"},
            f"json: cannot unmarshal string into {FIELD}labels of type map[string]string",
        ),
        ({"name": True}, f"json: cannot unmarshal bool into {FIELD}name of type string"),
        ({"uid": []}, f"json: cannot unmarshal array into {FIELD}uid of type types.UID"),
        (
            {"generation": "1"},
            f"json: cannot unmarshal string into {FIELD}generation of type int64",
        ),
        (
            {"generation": 1.5},
            f"json: cannot unmarshal number 1.5 into {FIELD}generation of type int64",
        ),
        (
            {"finalizers": {}},
            f"json: cannot unmarshal object into {FIELD}finalizers of type []string",
        ),
        (
            {"ownerReferences": [{"name": 1}]},
            "json: cannot unmarshal number into Go struct field "
            "OwnerReference.ownerReferences.name of type string",
        ),
        (
            {"creationTimestamp": "x"},
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        ),
        (
            {"creationTimestamp": "2024-13-01T00:00:00Z"},
            'parsing time "2024-13-01T00:00:00Z": month out of range',
        ),
        (
            {"labels": {"a": 1}, "annotations": {"a": 1}},
            f"json: cannot unmarshal number into {FIELD}annotations of type string",
        ),
    ],
)
def test_undecodable_metadata_says_so_in_gos_words(metadata: Any, text: str) -> None:
    with pytest.raises(MetaError) as caught:
        coerce_metadata(metadata)

    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("time", "part"),
    [
        ("2024-13-01T00:00:00Z", "month"),
        ("2024-02-30T00:00:00Z", "day"),
        ("2024-02-30T25:00:00Z", "hour"),
        ("2024-01-01T00:60:00Z", "minute"),
        ("2024-01-01T00:00:60Z", "second"),
        ("9999-12-31T23:59:59-01:00", "year"),
    ],
)
def test_a_time_no_calendar_has_is_refused_by_the_part_that_is_wrong(time: str, part: str) -> None:
    with pytest.raises(MetaError, match=f": {part} out of range$"):
        coerce_metadata({"creationTimestamp": time})


def test_from_storage_bad_fields_are_dropped_one_by_one() -> None:
    metadata = {"name": "a", "labels": {"a": 1}, "uid": 5, "annotations": {"k": "v"}, "zzz": 1}

    clean = coerce_metadata_lenient(metadata)

    assert clean == {"name": "a", "annotations": {"k": "v"}, "generation": 1}


def said(metadata: dict[str, Any], **options: Any) -> list[str]:
    options.setdefault("namespaced", False)
    return [str(error) for error in validate_metadata(metadata, **options)]


SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def test_valid_metadata_earns_nothing() -> None:
    metadata = {
        "name": "a.b",
        "namespace": "default",
        "generateName": "a-",
        "labels": {"a.b/C_d": "", "x": "Y.z"},
        "annotations": {"A.b/c": "any thing"},
        "finalizers": ["a.b/c"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}],
    }

    assert said(metadata, namespaced=True) == []


@pytest.mark.parametrize(
    ("metadata", "errors"),
    [
        ({}, ["metadata.name: Required value: name or generateName is required"]),
        ({"name": "A_b"}, [f'metadata.name: Invalid value: "A_b": {SUBDOMAIN}']),
        (
            {"name": "a", "namespace": "n"},
            ["metadata.namespace: Forbidden: not allowed on this type"],
        ),
        (
            {"name": "a", "labels": {"a": "x" * 64}},
            [f'metadata.labels: Invalid value: "{"x" * 64}": must be no more than 63 bytes'],
        ),
        (
            {"name": "a", "annotations": {"k": "x" * (256 * 1024)}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
        ),
        (
            {"name": "a", "finalizers": ["orphan", "foregroundDeletion"]},
            [
                'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
                "finalizer orphan and foregroundDeletion cannot be both set"
            ],
        ),
        (
            {"name": "a", "ownerReferences": [{"apiVersion": "g/v1", "kind": "K", "name": "n"}]},
            ['metadata.ownerReferences.uid: Invalid value: "": must not be empty'],
        ),
    ],
)
def test_metadata_rules(metadata: dict[str, Any], errors: list[str]) -> None:
    assert said(metadata) == errors


def test_only_one_owner_may_control() -> None:
    owner = {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": True}

    (error,) = said({"name": "a", "ownerReferences": [owner, {**owner, "name": "m"}]})

    assert error.endswith(
        'Only one reference can have Controller set to true. Found "true" in references for '
        "K/n and K/m"
    )


def test_updates_may_not_touch_identity() -> None:
    old = {"name": "a", "uid": "1", "resourceVersion": "1", "generation": 2}
    new = {"name": "b", "uid": "1", "resourceVersion": "1", "generation": 1}

    assert [str(error) for error in validate_metadata_update(new, old)] == [
        "metadata.generation: Invalid value: 1: must not be decremented",
        'metadata.name: Invalid value: "b": field is immutable',
    ]


def test_a_deleting_object_gets_no_new_finalizers() -> None:
    old = {"name": "a", "resourceVersion": "1", "deletionTimestamp": "2024-01-02T03:04:05Z"}

    (error,) = validate_metadata_update({**old, "finalizers": ["d.e/f"]}, old)

    assert str(error) == (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "
        'deleted, found new finalizers []string{"d.e/f"}'
    )
