"""Restored objects belong to the managers that owned their fields before."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest

from instar.base.errors import Conflict
from instar.base.json_values import Object
from instar.cli.main import main
from instar.kube.apply.managed_fields import decode
from instar.tools.restorer.field_owners import MANAGER, past_owners, with_later_writers
from instar.tools.restorer.object_history import NamedObject
from instar.tools.restorer.restore_object import Restored, Restorer
from instar.wire.client.client import Client
from instar.wire.client.discovery import ResourceType
from tests.snapshots.worlds import NAMESPACE
from tests.support.server import LiveServer, live_server

GROUP = "example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
Run = Callable[..., tuple[int, str, str]]

_ITEM: Object = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
_SPEC: Object = {
    "size": {"type": "integer"},
    "colour": {"type": "string"},
    "tags": {"type": "object", "additionalProperties": {"type": "string"}},
    "parts": {
        "type": "array",
        "items": _ITEM,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
}


def _version(name: str, *, storage: bool) -> Object:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": _SPEC},
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        },
    }
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }


CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget", "singular": "gadget"},
        "versions": [_version("v1", storage=True), _version("v1beta1", storage=False)],
    },
}


def _objects(version: str = "v1") -> str:
    return f"/apis/{GROUP}/{version}/namespaces/ns/gadgets"


def _body(name: str, version: str = "v1", **rest: Any) -> Object:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Gadget",
        "metadata": {"name": name},
        **rest,
    }


def _apply(server: LiveServer, manager: str, body: Object, *, force: bool = False) -> int:
    name, version = body["metadata"]["name"], body["apiVersion"].partition("/")[2]
    path = f"{_objects(version)}/{name}?fieldManager={manager}&force={str(force).lower()}"
    return server.request("PATCH", path, body, content_type=APPLY).status


def _applied(position: int) -> dict[str, Object]:
    """What each applying manager of an object applies, also after the restore."""
    name = f"g-{position}"
    version = "v1beta1" if position % 3 == 0 else "v1"
    parts = [{"name": f"p{number}"} for number in range(position % 4)]
    found = {"helm": _body(name, version, spec={"size": position, "parts": parts})}
    if position % 2:
        labels = {"metadata": {"name": name, "labels": {"team": "a"}}}
        found["argo"] = {**_body(name, spec={"colour": "red", "tags": {"a": "1"}}), **labels}
    return found


def _fill(server: LiveServer, position: int) -> None:
    """One object with up to four managers: two that apply, one that edits, one for the status."""
    for manager, body in _applied(position).items():
        assert _apply(server, manager, body) in (200, 201)
    path = f"{_objects()}/g-{position}"
    if position % 5 == 0:
        edit = {"spec": {"tags": {"Edited": "by-hand"}}}
        edited = server.request("PATCH", f"{path}?fieldManager=edit", edit, content_type=MERGE)
        assert edited.status == 200
    if position % 4 == 0:
        status = f"{path}/status?fieldManager=controller"
        body = {"status": {"ready": True}}
        assert server.request("PATCH", status, body, content_type=MERGE).status == 200


def _owners(server: LiveServer, name: str) -> list[Object]:
    found = server.request("GET", f"{_objects()}/{name}").json
    return list(found["metadata"]["managedFields"])


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with live_server() as running:
        assert running.request("POST", "/api/v1/namespaces", NAMESPACE).status == 201
        running.create_crd(CRD)
        yield running


@pytest.fixture
def run(server: LiveServer, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        code = main([*words, "--kubeconfig", str(server.kubeconfig)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_sixty_objects_are_restored_with_their_owners_and_the_next_apply_has_no_conflict(
    server: LiveServer, run: Run
) -> None:
    for position in range(60):
        _fill(server, position)
    before = {position: _owners(server, f"g-{position}") for position in range(60)}
    assert server.request("DELETE", f"{CRDS}/gadgets.example.com").status == 200

    code, out, _ = run("restore", "crd", "gadgets.example.com")

    assert (code, out.splitlines()[-1]) == (0, "60 objects restored")
    assert {position: _owners(server, f"g-{position}") for position in range(60)} == before
    for position in range(60):
        for manager, body in _applied(position).items():
            assert _apply(server, manager, body) == 200


def test_a_deleted_object_is_restored_with_the_owners_of_its_status(
    server: LiveServer, run: Run
) -> None:
    _fill(server, 20)
    before = _owners(server, "g-20")
    server.request("DELETE", f"{_objects()}/g-20")

    code, _, _ = run("restore", "gadget", "g-20", "-n", "ns")

    assert code == 0
    assert {each["manager"] for each in before} == {"helm", "edit", "controller"}
    assert _owners(server, "g-20") == before


def test_an_object_that_exists_gets_the_owners_of_the_revision(
    server: LiveServer, run: Run
) -> None:
    _fill(server, 1)
    path = f"{_objects()}/g-1"
    past = server.request("GET", path).json["metadata"]
    assert _apply(server, "intruder", _body("g-1", spec={"size": 99}), force=True) == 200

    code, _, _ = run("restore", "gadget", "g-1", "-n", "ns", "--at", str(past["resourceVersion"]))

    assert code == 0
    assert _owners(server, "g-1") == past["managedFields"]
    assert _apply(server, "helm", _applied(1)["helm"]) == 200


def test_a_crd_is_restored_with_its_owner(server: LiveServer, run: Run) -> None:
    path = f"{CRDS}/gadgets.example.com"
    body = {"apiVersion": CRD["apiVersion"], "kind": CRD["kind"], "metadata": CRD["metadata"]}
    body = {**body, "spec": CRD["spec"]}
    answer = server.request(
        "PATCH", f"{path}?fieldManager=helm&force=true", body, content_type=APPLY
    )
    assert answer.status == 200
    assert server.request("DELETE", path).status == 200

    code, _, _ = run("restore", "crd", "gadgets.example.com")
    answer = server.request("PATCH", f"{path}?fieldManager=helm", body, content_type=APPLY)

    assert (code, answer.status) == (0, 200)
    managers = {each["manager"] for each in answer.json["metadata"]["managedFields"]}
    assert "helm" in managers
    assert MANAGER not in managers


def _entry(manager: str, fields: Object, **rest: Any) -> Object:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "example.com/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        "time": "2026-01-01T00:00:00Z",
        **rest,
    }


class _OneObjectCluster:
    """Stands in for a client of kube-apiserver 1.36.4 with one object.

    A create gives all fields to its writer. An update takes managedFields from its body, and
    drops all of them when one names a version other than v1. Before the first updates other
    writers change the object, so that these updates are conflicts.
    """

    def __init__(self, later: Sequence[Object] = ()) -> None:
        self.obj: Object = {}
        self._later = list(later)

    async def get(self, path: str, **_: Any) -> Object:
        return copy.deepcopy(self.obj)

    async def post(self, path: str, body: Object, *, fieldManager: str, **_: Any) -> Object:  # noqa: N803
        entry = _entry(fieldManager, {"f:spec": {"f:a": {}, "f:b": {}}})
        metadata = {**body["metadata"], "managedFields": [entry], "resourceVersion": "1"}
        self.obj = {**body, "metadata": metadata}
        return copy.deepcopy(self.obj)

    async def put(self, path: str, body: Object, **_: Any) -> Object:
        metadata = self.obj["metadata"]
        if self._later:
            metadata["managedFields"].append(self._later.pop())
            metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        if body["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise Conflict("the object has been modified")
        self.obj = copy.deepcopy(body)
        entries = self.obj["metadata"]["managedFields"]
        if any(entry["apiVersion"] != "example.com/v1" for entry in entries):
            del self.obj["metadata"]["managedFields"]
        return copy.deepcopy(self.obj)


_GADGETS = ResourceType(GROUP, "v1", "gadgets", "Gadget", frozenset())


async def _restore_into(cluster: _OneObjectCluster, entries: list[Object]) -> Restored:
    past = _body("g", spec={"a": 1, "b": 2})
    past["metadata"]["managedFields"] = entries
    restorer = Restorer(cast(Client, cluster))
    return await restorer.create(NamedObject(_GADGETS, "ns", "g"), past)


def _managers(obj: Object) -> list[str]:
    return [entry["manager"] for entry in obj["metadata"]["managedFields"]]


@pytest.mark.anyio
async def test_owners_at_a_removed_version_are_named_and_the_others_restored() -> None:
    cluster = _OneObjectCluster()
    gone = _entry("argo", {"f:spec": {"f:b": {}}}, apiVersion="example.com/v1alpha1")

    done = await _restore_into(cluster, [_entry("helm", {"f:spec": {"f:a": {}}}), gone])

    assert _managers(cluster.obj) == ["helm"]
    assert done.notes == ["not restored as owners of fields: argo (Update)"]


@pytest.mark.anyio
async def test_a_conflict_is_repeated_and_keeps_the_other_writer() -> None:
    later = _entry("controller", {"f:spec": {"f:b": {}}}, time="2026-03-03T00:00:00Z")
    cluster = _OneObjectCluster([later])

    done = await _restore_into(cluster, [_entry("helm", {"f:spec": {"f:a": {}}})])

    assert _managers(cluster.obj) == ["helm", "controller"]
    assert done.notes == []


@pytest.mark.anyio
async def test_an_object_that_keeps_changing_is_reported() -> None:
    later = [_entry(f"c{number}", {"f:spec": {"f:b": {}}}) for number in range(9)]

    done = await _restore_into(_OneObjectCluster(later), [_entry("helm", {"f:spec": {"f:a": {}}})])

    assert done.notes == ["the owners of its fields were not restored: the object kept changing"]


@pytest.mark.anyio
async def test_entries_that_cannot_be_read_are_reported() -> None:
    done = await _restore_into(_OneObjectCluster(), [{"manager": "helm"}])

    assert done.action == "created"
    assert done.notes[0].startswith("the owners of its fields cannot be read: ")


def test_a_writer_that_comes_after_the_restore_keeps_what_it_owns() -> None:
    past = decode([_entry("helm", {"f:spec": {"f:a": {}}})])
    written = decode([_entry(MANAGER, {"f:spec": {"f:a": {}, "f:b": {}}})])
    later = "2026-02-02T00:00:00Z"
    live = decode(
        [
            _entry(MANAGER, {"f:spec": {"f:a": {}}}),
            _entry("controller", {"f:spec": {"f:b": {}}}, time=later),
        ]
    )

    merged = with_later_writers(past, written, live)

    assert {who.manager: entry.fields for who, entry in merged.items()} == {
        "helm": {"f:spec": {"f:a": {}}},
        "controller": {"f:spec": {"f:b": {}}},
    }


def test_an_owner_reference_that_is_left_out_has_no_owner() -> None:
    listed: Object = {".": {}, 'k:{"uid":"gone"}': {}, 'k:{"uid":"there"}': {}}
    entry = _entry("helm", {"f:metadata": {"f:ownerReferences": listed}, "f:spec": {"f:a": {}}})
    references = [{"uid": "gone"}, {"uid": "there"}]
    past = {"metadata": {"managedFields": [entry], "ownerReferences": references}}

    some = past_owners(past, {"metadata": {"ownerReferences": references[1:]}}, {"metadata": {}})
    none = past_owners(past, {"metadata": {}}, {"metadata": {}})

    [kept], [left] = some.values(), none.values()
    assert kept.fields["f:metadata"] == {"f:ownerReferences": {".": {}, 'k:{"uid":"there"}': {}}}
    assert left.fields == {"f:spec": {"f:a": {}}}


def test_the_status_keeps_its_present_owners_where_it_was_not_restored() -> None:
    past_entry = _entry("old", {"f:status": {"f:s": {}}}, subresource="status")
    now = _entry("new", {"f:status": {"f:s": {}}}, subresource="status")
    spec = _entry("helm", {"f:spec": {"f:a": {}}})
    past = {"metadata": {"managedFields": [spec, past_entry]}, "status": {"s": 1}}
    written = {"metadata": {"managedFields": [now]}, "status": {"s": 2}}

    owners = past_owners(past, {"metadata": {}, "status": {"s": 1}}, written)

    assert {who.manager for who in owners} == {"helm", "new"}
