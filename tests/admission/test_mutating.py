"""What mutating admission may change, in which order, and whose the changes are."""

from __future__ import annotations

from typing import Any

import pytest

from instar.base.json_values import Object
from tests.rest.support import APPLY, Collection
from tests.support.admission import (
    AdmissionHook,
    adding,
    allowing,
    configuration,
    configured,
    patching,
)
from tests.support.server import Answer, LiveServer


def patched_create(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, name: str, *patch: Object
) -> Answer:
    hook.says["/m"] = lambda request: patching(*patch)
    webhooks = (
        configuration("Mutating", hook.webhook("m.ref.io", "/m")),
        configuration("Validating", hook.webhook("v.ref.io", "/v")),
    )
    with configured(place, *webhooks):
        return widgets.request("POST", "", widgets.obj(name, spec={"a": "x"}))


def patched_update(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, name: str, *patch: Object
) -> Answer:
    widgets.create(name, spec={"a": "x"})
    hook.says["/m"] = lambda request: patching(*patch)
    with configured(place, configuration("Mutating", hook.webhook("m.ref.io", "/m"))):
        return widgets.patch(name, {"spec": {"a": "y"}})


def test_a_field_set_by_a_webhook_is_kept_without_an_owner(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    answer = patched_create(place, widgets, hook, "known", adding("/spec/n", 5))

    assert answer.status == 201, answer.text
    assert answer.json["spec"] == {"a": "x", "n": 5, "d": "one"}
    (entry,) = answer.json["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {".": {}, "f:a": {}, "f:d": {}}}
    assert widgets.get("known")["spec"]["n"] == 5


def test_an_unknown_field_reaches_validating_webhooks_and_is_not_stored(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    answer = patched_create(place, widgets, hook, "unknown", adding("/spec/zz", 1))

    assert answer.status == 201, answer.text
    assert hook.asked("/v")[0]["object"]["spec"]["zz"] == 1
    assert "zz" not in answer.json["spec"]
    assert "zz" not in widgets.get("unknown")["spec"]


def test_a_default_that_a_mutation_removes_is_set_again(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    answer = patched_create(place, widgets, hook, "back", {"op": "remove", "path": "/spec/d"})

    assert hook.asked("/v")[0]["object"]["spec"]["d"] == "one"
    assert answer.json["spec"]["d"] == "one"


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        (
            adding("/spec/n", None),
            'spec.n: Invalid value: "null": spec.n in body must be of type integer: "null"',
        ),
        (adding("/spec/n", "text"), "spec.n: Invalid value:"),
        (adding("/metadata/labels", {"l": "not valid"}), "metadata.labels: Invalid value"),
        (adding("/kind", "Other"), 'kind: Invalid value: "Other": must be Widget'),
    ],
)
def test_an_object_that_a_patch_breaks_is_refused_by_the_same_checks(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, patch: Object, text: str
) -> None:
    answer = patched_create(place, widgets, hook, "broken", patch)

    assert answer.status == 422, answer.text
    assert text in answer.json["message"]
    assert hook.asked("/v") == []
    assert widgets.request("GET", "/broken").status == 404


def test_metadata_of_the_server_is_the_servers(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    answer = patched_create(
        place,
        widgets,
        hook,
        "server",
        adding("/metadata/uid", "mine"),
        adding("/metadata/generation", 9),
        adding("/metadata/creationTimestamp", "2001-01-01T00:00:00Z"),
        adding("/apiVersion", "ref.io/v2"),
        {"op": "remove", "path": "/metadata/namespace"},
    )

    metadata = answer.json["metadata"]
    assert answer.status == 201
    assert metadata["uid"] != "mine"
    assert metadata["generation"] == 1
    assert not metadata["creationTimestamp"].startswith("2001")
    assert metadata["namespace"] == "default"
    assert answer.json["apiVersion"] == "ref.io/v1"


def test_a_name_may_be_given_at_creation(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    answer = patched_create(place, widgets, hook, "before", adding("/metadata/name", "after"))

    assert answer.json["metadata"]["name"] == "after"
    assert widgets.request("GET", "/before").status == 404
    assert widgets.request("GET", "/after").status == 200
    assert hook.asked("/v")[0]["name"] == "before"


@pytest.mark.parametrize("member", ["name", "uid"])
def test_a_mutation_may_not_change_the_identity_of_an_object(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, member: str
) -> None:
    answer = patched_update(
        place, widgets, hook, f"fixed-{member}", adding(f"/metadata/{member}", "zzz")
    )

    assert answer.status == 422
    assert f'metadata.{member}: Invalid value: "zzz": field is immutable' in answer.json["message"]


def test_another_namespace_is_refused(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    answer = patched_create(place, widgets, hook, "away", adding("/metadata/namespace", "other"))

    assert (answer.status, answer.json["message"]) == (
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    )


def test_a_revision_is_refused_at_creation_and_a_conflict_at_an_update(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    revision = adding("/metadata/resourceVersion", "1")
    created = patched_create(place, widgets, hook, "rev", revision)
    updated = patched_update(place, widgets, hook, "rev2", revision)

    assert created.status == 500
    assert created.json["message"] == "resourceVersion should not be set on objects to be created"
    assert updated.status == 409


def test_one_label_that_is_not_text_drops_all_labels(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    labels = adding("/metadata/labels", {"a": "1", "b": 2})
    answer = patched_create(place, widgets, hook, "labels", labels)

    assert answer.status == 201
    assert "labels" not in answer.json["metadata"]


def test_repeated_owner_references_are_merged_with_a_warning(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}
    answer = patched_create(
        place, widgets, hook, "owned", adding("/metadata/ownerReferences", [owner, owner])
    )

    assert answer.json["metadata"]["ownerReferences"] == [owner]
    assert "after mutating admission happens" in answer.warnings[0]


def test_ownership_may_be_dropped_and_is_restored_where_it_makes_no_sense(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    drop = {"op": "remove", "path": "/metadata/managedFields"}
    dropped = patched_create(place, widgets, hook, "dropped", drop)
    spoilt = adding("/metadata/managedFields/0/operation", "Nope")
    restored = patched_create(place, widgets, hook, "restored", spoilt)

    assert "managedFields" not in dropped.json["metadata"]
    assert restored.json["metadata"]["managedFields"][0]["operation"] == "Update"
    assert "operation must be `Apply` or `Update`" in restored.warnings[0]


def test_the_strategy_has_the_last_word_on_status_and_spec(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    created = patched_create(place, widgets, hook, "split", adding("/status", {"s": "x"}))
    hook.says["/m"] = lambda request: patching(adding("/spec/a", "changed"))
    with configured(place, configuration("Mutating", hook.webhook("m.ref.io", "/m"))):
        written = widgets.patch("split", {"status": {"s": "y"}}, sub="/status")

    assert "status" not in created.json
    assert written.json["spec"]["a"] == "x"
    assert written.json["status"] == {"s": "y"}


def test_a_number_that_is_whole_is_an_integer(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    answer = patched_create(place, widgets, hook, "whole", adding("/spec/n", 1.0))

    assert answer.status == 201, answer.text
    assert b'"n":1,' in answer.body.replace(b" ", b"") or b'"n":1}' in answer.body


def test_an_applied_field_that_is_overridden_stays_the_appliers(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    hook.says["/m"] = lambda request: patching(adding("/spec/a", "forced"))
    applied = widgets.obj("applied", spec={"a": "mine"})
    with configured(place, configuration("Mutating", hook.webhook("m.ref.io", "/m"))):
        first = widgets.patch("applied", applied, APPLY, "?fieldManager=me").json
        second = widgets.patch("applied", applied, APPLY, "?fieldManager=me").json

    assert first["spec"]["a"] == "forced"
    assert first["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {"f:a": {}}}
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


# Order and rounds ---------------------------------------------------------------------------------


def test_webhooks_are_called_by_configuration_then_as_listed_and_see_each_others_changes(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    hook.says["/a1"] = lambda request: patching(adding("/spec/n", 1))
    later = configuration("Mutating", hook.webhook("b1.ref.io", "/b1"), name="b")
    sooner = configuration(
        "Mutating", hook.webhook("a2.ref.io", "/a2"), hook.webhook("a1.ref.io", "/a1"), name="a"
    )
    with configured(place, later, sooner):
        widgets.create("order", spec={})

    assert hook.order() == ["/a2", "/a1", "/b1"]
    assert [seen["object"]["spec"].get("n") for seen in hook.asked()] == [None, None, 1]


def test_the_first_refusal_ends_the_phase(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    hook.says["/a"] = lambda request: allowing(allowed=False)
    webhooks = hook.webhook("a.ref.io", "/a"), hook.webhook("b.ref.io", "/b")
    with configured(place, configuration("Mutating", *webhooks)):
        assert widgets.request("POST", "", widgets.obj("ended")).status == 400

    assert hook.order() == ["/a"]


def rounds(place: LiveServer, widgets: Collection, hook: AdmissionHook, name: str) -> list[str]:
    webhooks = [
        hook.webhook("a.ref.io", "/a", reinvocationPolicy="IfNeeded"),
        hook.webhook("n.ref.io", "/n"),
        hook.webhook("b.ref.io", "/b"),
        hook.webhook("c.ref.io", "/c", reinvocationPolicy="IfNeeded"),
    ]
    with configured(place, configuration("Mutating", *webhooks)):
        widgets.create(name, spec={"n": 0})
    return [path[1:] for path in hook.order()]


def test_a_webhook_with_reinvocation_is_called_again_after_changes(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    hook.says["/b"] = lambda request: patching(adding("/spec/a", "b"))

    assert rounds(place, widgets, hook, "r1") == ["a", "n", "b", "c", "a"]


def test_changes_of_the_second_round_reach_later_webhooks_of_that_round(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    hook.says["/b"] = lambda request: patching(adding("/spec/a", "b"))

    def grow(request: Object) -> Object:
        return patching(adding("/spec/n", request["object"]["spec"]["n"] + 1))

    hook.says["/a"] = grow

    assert rounds(place, widgets, hook, "r2") == ["a", "n", "b", "c", "a", "c"]


@pytest.mark.parametrize("value", [0, 1])
def test_a_webhook_is_not_called_again_for_its_own_change_or_for_none(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, value: int
) -> None:
    hook.says["/c"] = lambda request: patching(adding("/spec/n", value))
    asked = rounds(place, widgets, hook, f"r3-{value}")

    assert asked == (["a", "n", "b", "c", "a"] if value else ["a", "n", "b", "c"])


def test_each_call_has_a_uid_of_its_own(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    hook.says["/b"] = lambda request: patching(adding("/spec/a", "b"))
    rounds(place, widgets, hook, "r4")
    uids = [seen["uid"] for seen in hook.asked()]

    assert len(set(uids)) == len(uids)


# Versions -----------------------------------------------------------------------------------------


def at(version: str, **changes: Any) -> Object:
    rule = {
        "operations": ["*"],
        "apiGroups": ["ref.io"],
        "apiVersions": [version],
        "resources": ["widgets"],
    }
    return {"rules": [rule], **changes}


def test_the_object_travels_from_version_to_version_with_each_ones_defaults(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    two = widgets.at(version="v2")
    hook.says["/one"] = lambda request: patching(
        {"op": "remove", "path": "/spec/d"}, adding("/spec/a", "by v1")
    )
    webhooks = (
        hook.webhook("one.ref.io", "/one", **at("v1")),
        hook.webhook("two.ref.io", "/two", **at("v2")),
        hook.webhook("three.ref.io", "/three", **at("v1")),
    )
    with configured(place, configuration("Mutating", *webhooks)):
        created = two.create("travel", spec={"only2": "kept"})

    first, second, third = hook.asked()
    assert first["kind"]["version"] == "v1"
    assert first["requestKind"]["version"] == "v2"
    assert first["resource"]["version"] == "v1"
    assert first["requestResource"]["version"] == "v2"
    assert first["object"]["apiVersion"] == "ref.io/v1"
    assert first["object"]["spec"]["only2"] == "kept"
    assert second["object"]["apiVersion"] == "ref.io/v2"
    assert second["object"]["spec"] == {"only2": "kept", "a": "by v1", "d": "one"}
    assert third["object"]["apiVersion"] == "ref.io/v1"
    assert created["apiVersion"] == "ref.io/v2"
    assert created["spec"] == {"a": "by v1", "d": "one"}, "v1 is stored, and knows no more"


def test_match_policy_exact_is_not_called_for_other_versions(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    webhook = hook.webhook("one.ref.io", "/one", **at("v1", matchPolicy="Exact"))
    with configured(place, configuration("Mutating", webhook)):
        widgets.at(version="v2").create("exact")
        widgets.create("exact1")

    assert [seen["name"] for seen in hook.asked()] == ["exact1"]
