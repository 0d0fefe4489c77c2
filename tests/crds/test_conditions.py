"""Names, establishment and the other conditions, as watchers see them."""

from __future__ import annotations

import base64
from typing import Any

import trustme

from instar.base.json_values import Object
from instar.kube.crds.conditions import (
    approval_status,
    deletion_completed,
    deletion_failed,
    deletion_in_progress,
    deletion_skipped,
    deletion_unconfirmed,
    is_true,
    structural_status,
    with_condition,
)
from instar.kube.crds.lifecycle import status_sequence
from tests.crds.make import LATER, NOW, written
from tests.support.crds import crd, version

Summary = list[tuple[str, str, str]]


def summary(status: Object) -> Summary:
    return [(c["type"], c["status"], c["reason"]) for c in status["conditions"] or ()]


def settled(obj: Object, *others: Object) -> Object:
    states = status_sequence(obj, others, NOW)
    return {**obj, "status": states[-1]} if states else obj


def named(plural: str = "foos", kind: str = "Foo", **names: Any) -> Object:
    listed = {"plural": plural, "kind": kind, "singular": plural[:-1], **names}
    return written(crd(plural=plural, names=listed))


def renamed(obj: Object, **names: Any) -> Object:
    spec = {**obj["spec"], "names": {**obj["spec"]["names"], **names}}
    return {**obj, "spec": spec}


def hooked(bundle: bytes) -> Object:
    client: Object = {"url": "https://h"}
    if bundle:
        client["caBundle"] = base64.b64encode(bundle).decode()
    hook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    return written(crd(conversion={"strategy": "Webhook", "webhook": hook}))


def message(status: Object, type: str) -> str:
    return next(str(c["message"]) for c in status["conditions"] if c["type"] == type)


def test_new_crd_is_named_then_established() -> None:
    first, second = status_sequence(named(), [], NOW)
    assert first["acceptedNames"] == {
        "plural": "foos",
        "singular": "foo",
        "kind": "Foo",
        "listKind": "FooList",
    }
    assert summary(first) == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "False", "Installing"),
    ]
    assert summary(second) == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "True", "InitialNamesAccepted"),
    ]
    assert first["storedVersions"] == second["storedVersions"] == ["v1"]


def test_settled_crd_is_at_rest() -> None:
    assert status_sequence(settled(named()), [], LATER) == []


def test_conflict_keeps_a_crd_from_being_established() -> None:
    first = settled(named("foos", "Foo"))
    (state,) = status_sequence(named("bars", "Foo", listKind="Bars"), [first], NOW)
    assert summary(state) == [
        ("NamesAccepted", "False", "KindConflict"),
        ("Established", "False", "NotAccepted"),
    ]
    assert message(state, "NamesAccepted") == '"Foo" is already in use'
    assert state["acceptedNames"] == {
        "plural": "bars",
        "singular": "bar",
        "kind": "",
        "listKind": "Bars",
    }


def test_of_several_conflicts_the_last_reason_wins() -> None:
    first = settled(named("foos", "Foo", shortNames=["bars", "ct"]))
    second = named("bars", "Foo", listKind="FooList", shortNames=["ct"])
    (state,) = status_sequence(second, [first], NOW)
    assert summary(state)[0] == ("NamesAccepted", "False", "ListKindConflict")
    assert message(state, "NamesAccepted") == '"FooList" is already in use'


def test_several_short_names_in_use_are_listed() -> None:
    first = settled(named(shortNames=["ct", "cat"]))
    (state,) = status_sequence(named("bars", "Bar", shortNames=["ct", "ok", "cat"]), [first], NOW)
    assert message(state, "NamesAccepted") == ('["ct" is already in use, "cat" is already in use]')
    assert "shortNames" not in state["acceptedNames"]


def test_a_released_name_goes_to_the_crd_that_waits_for_it() -> None:
    waiting = settled(named("bars", "Foo"), settled(named()))
    first, second = status_sequence(waiting, [], LATER)
    assert summary(first) == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "False", "Installing"),
    ]
    times = {c["type"]: c["lastTransitionTime"] for c in first["conditions"]}
    assert times == {"NamesAccepted": LATER, "Established": NOW}
    assert is_true(second, "Established")


def test_other_groups_do_not_conflict() -> None:
    first = settled(named())
    other = written(crd(group="other.com"))
    assert len(status_sequence(other, [first], NOW)) == 2


def test_established_crd_stays_so_through_a_later_conflict_and_a_revert_leaves_it_stale() -> None:
    first = settled(named(shortNames=["ct"]))
    second = settled(named("bars", "Bar"), first)
    clash = settled(renamed(second, shortNames=["ct"]), first)
    assert summary(clash["status"]) == [
        ("NamesAccepted", "False", "ShortNamesConflict"),
        ("Established", "True", "InitialNamesAccepted"),
    ]
    reverted = {**clash, "spec": second["spec"]}
    assert status_sequence(reverted, [first], LATER) == []


def test_own_plural_as_short_name_conflicts_later_but_not_at_creation() -> None:
    assert len(status_sequence(named(shortNames=["foos"]), [], NOW)) == 2
    (state,) = status_sequence(renamed(settled(named()), shortNames=["foos"]), [], NOW)
    assert summary(state)[0] == ("NamesAccepted", "False", "ShortNamesConflict")


def test_categories_never_conflict() -> None:
    first = settled(named(categories=["all"]))
    assert len(status_sequence(named("bars", "Bar", categories=["all"]), [first], NOW)) == 2


def test_broken_ca_bundle_blocks_establishment_until_fixed() -> None:
    broken = settled(hooked(b"not pem"))
    assert summary(broken["status"])[1] == ("Established", "False", "InvalidCABundle")
    assert message(broken["status"], "Established") == (
        "The conversion webhook CABundle is invalid"
    )
    assert status_sequence(broken, [], LATER) == []
    fixed = {**broken, "spec": hooked(trustme.CA().cert_pem.bytes())["spec"]}
    (state,) = status_sequence(fixed, [], LATER)
    assert is_true(state, "Established")


def test_protected_group_gets_its_approval_last() -> None:
    obj = written(crd(group="x.k8s.io"))
    obj["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://h/1"}
    states = status_sequence(obj, [], NOW)
    assert summary(states[-1])[2:] == [
        ("KubernetesAPIApprovalPolicyConformant", "True", "ApprovedAnnotation")
    ]
    assert message(states[-1], "KubernetesAPIApprovalPolicyConformant") == "approved in https://h/1"
    obj["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, trial"}
    assert message(approval_status(obj, NOW), "KubernetesAPIApprovalPolicyConformant") == (
        'not approved: "unapproved, trial"'
    )


def test_legacy_schema_is_named_non_structural_with_v1_paths_and_freed_when_mended() -> None:
    loose = version(schema={"type": "object", "properties": {"a": {"description": "no type"}}})
    obj = written(crd(loose, preserveUnknownFields=True))
    status = structural_status(obj, NOW)
    assert summary(status) == [("NonStructuralSchema", "True", "Violations")]
    assert message(status, "NonStructuralSchema") == (
        "[spec.preserveUnknownFields: Invalid value: true: must be false, "
        "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: "
        "must not be empty for specified object fields]"
    )
    mended = {**written(crd()), "status": status}
    assert structural_status(mended, NOW)["conditions"] is None


def test_schema_that_cannot_be_read_is_unknown() -> None:
    odd = version(schema={"type": "object", "$schema": "x"})
    status = structural_status(written(crd(odd)), NOW)
    assert summary(status) == [("NonStructuralSchema", "Unknown", "StructuralError")]
    assert message(status, "NonStructuralSchema") == (
        "failed to check validation schema for version v1: "
        "OpenAPIV3Schema 'schema' is not supported"
    )


def test_condition_keeps_its_place_its_time_and_what_it_does_not_know() -> None:
    status: Object = {"conditions": [{"type": "A", "status": "True", "observedGeneration": 3}]}
    status = with_condition(status, "A", "True", "R", "m", NOW)
    status = with_condition(status, "B", "True", "R", "m", NOW)
    status = with_condition(status, "A", "True", "Other", "n", LATER)
    assert status["conditions"][0] == {
        "type": "A",
        "status": "True",
        "lastTransitionTime": NOW,
        "reason": "Other",
        "message": "n",
        "observedGeneration": 3,
    }
    status = with_condition(status, "A", "False", "R", "m", LATER)
    assert [c["lastTransitionTime"] for c in status["conditions"]] == [LATER, NOW]


def test_terminating_has_upstreams_message() -> None:
    status: Object = {"conditions": None}
    told = [
        deletion_in_progress(status, NOW),
        deletion_failed(status, "could not list instances: x", NOW),
        deletion_unconfirmed(status, "context deadline exceeded", NOW),
        deletion_completed(status, NOW),
    ]
    assert [(*summary(s)[0][1:], message(s, "Terminating")) for s in told] == [
        ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"),
        ("True", "InstanceDeletionFailed", "could not list instances: x"),
        (
            "True",
            "InstanceDeletionCheck",
            "could not confirm zero CustomResources remaining: context deadline exceeded",
        ),
        ("False", "InstanceDeletionCompleted", "removed all instances"),
    ]


def test_instances_are_left_alone_when_never_established_or_built_in() -> None:
    never = deletion_skipped(written(crd()), NOW)
    assert never is not None
    assert summary(never) == [("Terminating", "False", "NeverEstablished")]
    built_in = {**settled(named()), "metadata": {"name": "apiservices.apiregistration.k8s.io"}}
    overlapping = deletion_skipped(built_in, NOW)
    assert overlapping is not None
    assert summary(overlapping)[-1] == ("Terminating", "False", "OverlappingBuiltInResource")
    assert deletion_skipped(settled(named()), NOW) is None
