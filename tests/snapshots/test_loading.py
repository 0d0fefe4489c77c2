"""A world comes into a store as it was captured, and a server on it shows it so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from instar.base.json_values import copy_json
from instar.server.lifecycle.embedded import Embedded, embedded
from instar.tools.snapshots.captured_cluster import CapturedCluster
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.loading import Loaded, load
from instar.tools.snapshots.sources import open_captured_cluster
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import Write
from tests.snapshots.worlds import CRD, widget, write_snapshot

pytestmark = pytest.mark.anyio

NAME = "widgets.example.com"
PATH = "/apis/example.com/{}/namespaces/ns/widgets/{}"


def captured(name: str, version: str = "v1") -> dict[str, Any]:
    obj = widget(name, version, size=3)
    obj["metadata"] |= {
        "uid": f"11111111-2222-3333-4444-{name:>012}",
        "resourceVersion": "4711",
        "generation": 7,
        "creationTimestamp": "2020-01-02T03:04:05Z",
        "managedFields": [
            {
                "manager": "kubectl",
                "operation": "Apply",
                "apiVersion": f"example.com/{version}",
                "time": "2021-01-02T03:04:05Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:size": {}}},
            }
        ],
    }
    return obj


async def test_a_captured_cluster_is_read_back(tmp_path: Path) -> None:
    given = captured("1")
    store = MemoryStore()

    with open_captured_cluster(str(write_snapshot(tmp_path / "s.tar.gz", [given]))) as world:
        loaded = await load(world, store)
    async with embedded(store=store) as server:
        found = (await server.ask("GET", PATH.format("v1", "1"))).document

    assert found["metadata"].pop("resourceVersion") != "4711"
    del given["metadata"]["resourceVersion"]
    assert found == given
    assert loaded.objects == {NAME: 1}
    assert world.problems == []


async def test_an_object_stays_at_its_version_and_is_read_at_others(tmp_path: Path) -> None:
    store = MemoryStore()

    with open_captured_cluster(
        str(write_snapshot(tmp_path / "s.tar.gz", [captured("1", "v1beta1")]))
    ) as world:
        await load(world, store)
    async with embedded(store=store) as server:
        found = (await server.ask("GET", PATH.format("v1", "1"))).document
        census = (await server.ask("GET", "/instar/census")).document
        crd = await _crd(server)

    assert found["apiVersion"] == "example.com/v1"
    assert census["crds"][NAME]["objects"] == {"v1": 0, "v1beta1": 1}
    assert crd["status"]["storedVersions"] == ["v1", "v1beta1"]


async def test_stored_versions_and_conditions_of_a_cluster_are_kept(tmp_path: Path) -> None:
    crd = copy_json(CRD)
    crd["metadata"] |= {"uid": "u", "generation": 3, "creationTimestamp": "2020-01-02T03:04:05Z"}
    then = "2020-01-02T03:04:06Z"
    crd["status"] = {
        "acceptedNames": crd["spec"]["names"],
        "storedVersions": ["v1beta1", "v1"],
        "conditions": [
            {
                "type": name,
                "status": "True",
                "reason": "R",
                "message": "m",
                "lastTransitionTime": then,
            }
            for name in ("NamesAccepted", "Established")
        ],
    }
    store = MemoryStore()

    with open_captured_cluster(str(write_snapshot(tmp_path / "s.tar.gz", crds=[crd]))) as world:
        await load(world, store)
    async with embedded(store=store) as server:
        found = await _crd(server)

    assert found["status"]["storedVersions"] == ["v1beta1", "v1"]
    assert found["metadata"]["generation"] == 3
    assert {each["lastTransitionTime"] for each in found["status"]["conditions"][:2]} == {then}


async def test_a_crd_that_a_server_refuses_is_reported_and_its_objects_are_omitted(
    tmp_path: Path,
) -> None:
    bad = copy_json(CRD)
    bad["spec"]["versions"][1]["storage"] = True

    loaded, world, _ = await _loaded(tmp_path, [captured("1")], crds=[bad])

    assert loaded.crds == 0
    assert loaded.left_out == {NAME: 1}
    assert [problem for problem in world.problems if "is refused" in problem]


@pytest.mark.parametrize(
    "spec",
    [
        {"versions": []},
        {"versions": [{"name": "v1", "served": True, "storage": False}]},
        {"group": "a/b"},
        {"names": {}},
    ],
)
async def test_an_invalid_crd_is_refused_and_others_are_loaded(
    tmp_path: Path, spec: dict[str, Any]
) -> None:
    bad = copy_json(CRD)
    bad["spec"] |= spec
    bad["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
    other = copy_json(CRD)
    other["metadata"]["name"] = "gadgets.example.com"
    other["spec"]["names"] = {"plural": "gadgets", "kind": "Gadget", "singular": "gadget"}

    loaded, world, _ = await _loaded(tmp_path, [captured("1")], crds=[bad, other])

    assert loaded.crds == 1
    assert loaded.left_out == {NAME: 1}
    assert [problem for problem in world.problems if "is refused" in problem]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "Gadget"},
        {"apiVersion": "other.com/v1"},
        {"metadata": None},
        {"metadata": {"name": "a/b", "namespace": "ns"}},
        {"metadata": {"name": 7, "namespace": "ns"}},
        {"metadata": {"name": "w", "namespace": "../etc"}},
    ],
)
async def test_objects_of_unknown_kinds_are_omitted_and_the_rest_is_loaded(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    loaded, world, _ = await _loaded(tmp_path, [{**captured("1"), **change}, captured("2")])

    assert loaded.objects == {NAME: 1}
    assert loaded.left_out == {NAME: 1}
    assert len(world.problems) == 1


async def test_an_object_that_is_there_twice_is_taken_once(tmp_path: Path) -> None:
    loaded, world, _ = await _loaded(tmp_path, [captured("1"), captured("1"), captured("1")])

    assert loaded.objects == {NAME: 1}
    assert loaded.left_out == {NAME: 2}
    assert len(world.problems) == 1


async def test_manifests_that_no_server_has_seen_get_what_they_lack(tmp_path: Path) -> None:
    bare = widget("1", size=1)
    del bare["metadata"]["uid"], bare["metadata"]["namespace"]

    loaded, _, store = await _loaded(tmp_path, [bare])
    async with embedded(store=store) as server:
        path = "/apis/example.com/v1/namespaces/default/widgets/1"
        found = (await server.ask("GET", path)).document
        namespaces = (await server.ask("GET", "/api/v1/namespaces")).document

    assert found["metadata"]["uid"]
    assert found["metadata"]["creationTimestamp"]
    assert loaded.namespaces == 1
    assert "default" in [each["metadata"]["name"] for each in namespaces["items"]]


async def test_only_an_empty_store_takes_a_world(tmp_path: Path) -> None:
    store = MemoryStore()
    await store.commit(Write("example.com/widgets/ns/x", b"{}", 0))

    with (
        open_captured_cluster(str(write_snapshot(tmp_path / "s.tar.gz"))) as world,
        pytest.raises(SnapshotError),
    ):
        await load(world, store)


async def _loaded(
    tmp_path: Path, widgets: list[dict[str, Any]], crds: list[dict[str, Any]] | None = None
) -> tuple[Loaded, CapturedCluster, MemoryStore]:
    store = MemoryStore()
    path = write_snapshot(tmp_path / "s.tar.gz", widgets, crds=crds or [CRD])
    with open_captured_cluster(str(path)) as world:
        return await load(world, store), world, store


async def _crd(server: Embedded) -> dict[str, Any]:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}"
    found: dict[str, Any] = (await server.ask("GET", path)).document
    return found
