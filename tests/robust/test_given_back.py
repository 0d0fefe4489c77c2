"""What a CRD made the server keep is given back: memory grows with what there is, not with all
that ever was."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Iterator

import pytest

from instar.kube.api.crd import Crd
from instar.kube.schema.compiled import CompiledSchema
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural import Structural
from instar.kube.schema.validation.node import ValidationNode
from instar.server.http.http1 import Http1Connection
from instar.server.http.http1_request import RequestReader
from instar.server.registry.resources.resource import Resource
from instar.server.registry.resources.serving import Serving, VersionServing
from instar.server.registry.stored.codec import Codec
from instar.server.registry.stored.label_index import LabelIndex
from instar.server.registry.stored.watchers import WatchHub
from instar.wire.storage.watchcache.collection import Collection
from tests.support import crds
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

GROUP = "gone.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = (Codec, Collection, Crd, LabelIndex, Resource, Serving, VersionServing, WatchHub)
SCHEMAS = (ValidationNode, Structural)
CONNECTIONS = (Http1Connection, RequestReader)


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(bootstrap_objects=True) as server:
        yield server


def used_and_deleted(server: LiveServer, number: int) -> None:
    """All that a CRD makes the server keep: schemas, rules, an index, a census, an owner."""
    spec = crds.fields(name={"type": "string", "pattern": f"^a{number}"})
    spec["x-kubernetes-validations"] = [{"rule": f"self.name != 'b{number}'"}]
    version = crds.version("v1", crds.fields(spec=spec))
    plural, kind = f"things{number}", f"Thing{number}"
    server.create_crd(crds.crd(version, group=GROUP, plural=plural, kind=kind))
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "unknown"}
    metadata = {"name": "one", "labels": {f"l{number}": "x"}, "ownerReferences": [owner]}
    thing: dict[str, object] = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata}
    thing["spec"] = {"name": f"a{number}"}
    where = f"/apis/{GROUP}/v1/namespaces/default/{plural}"
    assert server.request("POST", where, thing).status == 201
    assert server.request("GET", f"{where}?labelSelector=l{number}%3Dx").status == 200
    assert server.request("GET", "/instar/census").status == 200
    assert server.request("DELETE", f"{CRDS}/{plural}.{GROUP}").status == 200
    eventually(lambda: server.request("GET", f"{CRDS}/{plural}.{GROUP}").status == 404)


def compact(server: LiveServer) -> None:
    """As the compactor does when the history is old enough."""
    backend = server.running.machinery.backend

    async def work() -> None:
        revision = await backend.store.barrier()
        await backend.store.compact(revision)
        backend.cache.compacted(revision)

    asyncio.run_coroutine_threadsafe(work(), server.loop).result(10)


@pytest.fixture
def by_itself() -> Iterator[None]:
    """Not because the collector came: it looks at what is old once in twenty million objects."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def living(server: LiveServer) -> dict[str, int]:
    compact(server)
    found = Counter(type(each).__name__ for each in gc.get_objects() if isinstance(each, KINDS))
    collections = server.running.machinery.backend.cache.collections()
    return {**found, "listeners": sum(len(each.listeners) for each in collections)}


@pytest.mark.usefixtures("by_itself")
def test_a_deleted_crd_leaves_nothing_in_memory(server: LiveServer) -> None:
    used_and_deleted(server, 0)
    before = living(server)
    for number in range(1, 4):
        used_and_deleted(server, number)
    assert living(server) == before


@pytest.mark.usefixtures("by_itself")
def test_a_crd_that_is_deleted_leaves_no_listener(server: LiveServer) -> None:
    used_and_deleted(server, 0)
    before = living(server)
    for _ in range(3):
        used_and_deleted(server, 0)
    assert living(server) == before


def of_kinds(kinds: tuple[type, ...]) -> int:
    return sum(isinstance(each, kinds) for each in gc.get_objects())


@pytest.mark.usefixtures("by_itself")
def test_an_unreferenced_schema_is_freed_at_once() -> None:
    before = of_kinds(SCHEMAS)
    spec = crds.fields(name={"type": "string", "default": "x"}, all={"allOf": [{"minLength": 1}]})
    root = structural(crds.fields(spec=spec))
    schema = CompiledSchema(root, declared=True, preserve_unknown=False)
    schema.prune(obj := {"spec": {"name": "y"}})
    assert not schema.validate(obj)
    assert of_kinds(SCHEMAS) > before
    del root, schema
    assert of_kinds(SCHEMAS) == before


@pytest.mark.usefixtures("by_itself")
def test_a_connection_that_is_closed_is_gone_at_once(server: LiveServer) -> None:
    before = of_kinds(CONNECTIONS)
    for _ in range(20):
        assert server.request("GET", "/livez").status == 200
    eventually(lambda: of_kinds(CONNECTIONS) <= before + 2)
