"""What a watcher of CRDs sees, state by state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.rest.support import APPLY, MERGE, Collection, Watch, make_crd, version
from tests.support.server import LiveServer


@pytest.fixture(scope="module")
def crds(server: LiveServer) -> Collection:
    kind = "CustomResourceDefinition"
    return Collection(server, "apiextensions.k8s.io", "customresourcedefinitions", kind, "")


@contextmanager
def following(crds: Collection, name: str) -> Iterator[Watch]:
    revision = crds.request("GET", "").json["metadata"]["resourceVersion"]
    with crds.watch(f"&fieldSelector=metadata.name={name}&resourceVersion={revision}") as stream:
        yield stream


def conditions(event: dict[str, Any]) -> list[tuple[str, str, str]] | None:
    found = event["object"]["status"]["conditions"]
    return found and [(c["type"], c["status"], c["reason"]) for c in found]


ACCEPTED = ("NamesAccepted", "True", "NoConflicts")
ESTABLISHED = ("Established", "True", "InitialNamesAccepted")


def test_a_crd_comes_up_in_three_steps(crds: Collection) -> None:
    with following(crds, "foos.steps.ex.io") as stream:
        crds.server.create_crd(make_crd("steps.ex.io", [version("v1", storage=True)]))
        events = stream.events(3)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "MODIFIED"]
    assert conditions(events[0]) is None
    assert events[0]["object"]["status"]["acceptedNames"] == {"plural": "", "kind": ""}
    assert events[0]["object"]["status"]["storedVersions"] == ["v1"]
    assert conditions(events[1]) == [ACCEPTED, ("Established", "False", "Installing")]
    assert events[1]["object"]["status"]["acceptedNames"]["plural"] == "foos"
    assert conditions(events[2]) == [ACCEPTED, ESTABLISHED]
    assert {event["object"]["metadata"]["generation"] for event in events} == {1}


def test_a_name_conflict_ends_when_the_first_crd_is_deleted(crds: Collection) -> None:
    group = "conflict.ex.io"
    crds.server.create_crd(make_crd(group, [version("v1", storage=True)]))
    with following(crds, f"bars.{group}") as stream:
        second = make_crd(group, [version("v1", storage=True)], plural="bars", kind="Foo")
        crds.server.create_crd(second)
        added, refused = stream.events(2)
        assert added["type"] == "ADDED"
        names, established = conditions(refused) or []
        assert names[:2] == ("NamesAccepted", "False")
        assert names[2].endswith("Conflict")
        assert established == ("Established", "False", "NotAccepted")
        crds.delete(f"foos.{group}")
        accepted, up = stream.events(2)
        assert conditions(accepted) == [ACCEPTED, ("Established", "False", "Installing")]
        assert conditions(up) == [ACCEPTED, ESTABLISHED]


def test_new_short_names_follow_in_a_second_step(crds: Collection) -> None:
    name = "foos.short.ex.io"
    crds.server.create_crd(make_crd("short.ex.io", [version("v1", storage=True)]))
    crds.get(name)
    with following(crds, name) as stream:
        crds.patch(name, {"spec": {"names": {"shortNames": ["fo"]}}})
        spec, names = stream.events(2)
    assert spec["object"]["metadata"]["generation"] == 2
    assert "shortNames" not in spec["object"]["status"]["acceptedNames"]
    assert names["object"]["status"]["acceptedNames"]["shortNames"] == ["fo"]
    assert names["object"]["metadata"]["generation"] == 2


def test_a_storage_switch_is_one_event(crds: Collection) -> None:
    name = "foos.switch.ex.io"
    crds.server.create_crd(make_crd("switch.ex.io", [version("v1", storage=True), version("v2")]))
    with following(crds, name) as stream:
        crds.patch(name, {"spec": {"versions": [version("v1"), version("v2", storage=True)]}})
        (event,) = stream.events(1)
        crds.patch(name, {"metadata": {"labels": {"next": "1"}}})
        (following_event,) = stream.events(1)
    assert event["object"]["metadata"]["generation"] == 2
    assert event["object"]["status"]["storedVersions"] == ["v1", "v2"]
    assert following_event["object"]["metadata"]["labels"] == {"next": "1"}


@pytest.mark.parametrize("established", [True, False])
def test_a_crd_goes_in_three_steps(crds: Collection, established: bool) -> None:
    group = "goes.ex.io" if established else "never.ex.io"
    plural = "foos"
    crds.server.create_crd(make_crd(group, [version("v1", storage=True)]))
    if not established:
        plural = "bars"
        second = make_crd(group, [version("v1", storage=True)], plural="bars", kind="Foo")
        crds.server.create_crd(second)
    crds.get(f"{plural}.{group}")
    with following(crds, f"{plural}.{group}") as stream:
        crds.delete(f"{plural}.{group}")
        events = stream.events(3)
    assert [event["type"] for event in events] == ["MODIFIED", "MODIFIED", "DELETED"]
    reasons = [
        [c["reason"] for c in event["object"]["status"]["conditions"] if c["type"] == "Terminating"]
        for event in events
    ]
    assert reasons == [
        ["InstanceDeletionPending"],
        ["InstanceDeletionInProgress"],
        ["InstanceDeletionInProgress"],
    ]
    last = events[2]["object"]["metadata"]
    assert last["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]


def test_a_crd_with_a_foreign_finalizer_is_seen_terminating(server: LiveServer) -> None:
    group = "held.crd-events.ex.io"
    crd = make_crd(group, [version("v1", storage=True)])
    crd["metadata"]["finalizers"] = ["example.com/mine"]
    server.create_crd(crd)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.{group}"

    assert server.request("DELETE", path).status == 200
    conditions = server.request("GET", path).json["status"]["conditions"]
    foos = Collection(server, group)
    applied = foos.request(
        "PATCH", "/a?fieldManager=m&dryRun=All", foos.obj("a"), content_type=APPLY
    )

    assert [(c["type"], c["status"]) for c in conditions][-1] == ("Terminating", "True")
    text = "create not allowed while custom resource definition is terminating"
    assert (applied.status, text in applied.json["message"]) == (403, True)
    server.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
