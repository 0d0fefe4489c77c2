"""The Python client libraries, unmodified: kubernetes, kr8s, lightkube."""

from __future__ import annotations

import asyncio
import importlib
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.make import widget, widget_crd
from tests.support.server import LiveServer, live_server

GROUP = "python.example.com"
_names = itertools.count(1)


@pytest.fixture(scope="module")
def widgets() -> Iterator[LiveServer]:
    with live_server() as server:
        server.create_crd(widget_crd(GROUP))
        yield server


@pytest.fixture
def space(widgets: LiveServer) -> str:
    name = f"space-{next(_names)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert widgets.request("POST", "/api/v1/namespaces", body).status == 201
    return name


@pytest.fixture
def kubernetes_api(widgets: LiveServer) -> Iterator[Any]:
    """A client of the kubernetes package, whose types are too loose to check ours against."""
    config: Any = importlib.import_module("kubernetes.config")
    api = config.new_client_from_config(str(widgets.kubeconfig))
    yield api
    api.close()
    api.rest_client.pool_manager.clear()


@pytest.fixture
def dynamic(kubernetes_api: Any) -> Any:
    module: Any = importlib.import_module("kubernetes.dynamic")
    return module.DynamicClient(kubernetes_api)


def test_kubernetes_dynamic_client(dynamic: Any, space: str) -> None:
    from kubernetes.dynamic.exceptions import ConflictError, NotFoundError, UnprocessibleEntityError

    api = dynamic.resources.get(api_version=f"{GROUP}/v1", kind="Widget")
    created = api.create(body=widget(GROUP, "one"), namespace=space)
    assert created.spec.replicas == 1
    with pytest.raises(ConflictError):
        api.create(body=widget(GROUP, "one"), namespace=space)
    with pytest.raises(UnprocessibleEntityError, match="Unsupported value"):
        api.create(body=widget(GROUP, "two", color="pink"), namespace=space)
    assert [item.metadata.name for item in api.get(namespace=space).items] == ["one"]
    patched = api.patch(
        name="one",
        namespace=space,
        body={"spec": {"size": 2}},
        content_type="application/merge-patch+json",
    )
    assert patched.spec.size == 2
    stale = created.to_dict()
    stale["spec"]["size"] = 9
    with pytest.raises(ConflictError):
        api.replace(body=stale, namespace=space)
    body = patched.to_dict()
    body["status"] = {"phase": "Up"}
    assert api.status.replace(body=body, name="one", namespace=space).status.phase == "Up"
    applied = api.server_side_apply(
        body=widget(GROUP, "applied", size=5),
        name="applied",
        namespace=space,
        field_manager="test",
    )
    assert applied.metadata.managedFields[0].operation == "Apply"
    api.delete(name="one", namespace=space)
    with pytest.raises(NotFoundError):
        api.get(name="one", namespace=space)


def test_kubernetes_watch_resumes_where_it_stopped(dynamic: Any, space: str) -> None:
    api = dynamic.resources.get(api_version=f"{GROUP}/v1", kind="Widget")
    start = api.get(namespace=space).metadata.resourceVersion
    for name in ("a", "b", "c"):
        api.create(body=widget(GROUP, name), namespace=space)
    api.delete(name="a", namespace=space)

    def events(since: str) -> Iterator[tuple[str, str, str]]:
        for event in api.watch(namespace=space, resource_version=since, timeout=2):
            obj = event["object"]
            yield event["type"], obj.metadata.name, obj.metadata.resourceVersion

    first = list(itertools.islice(events(start), 2))
    assert [event[:2] for event in first] == [("ADDED", "a"), ("ADDED", "b")]
    rest = list(itertools.islice(events(first[-1][2]), 2))
    assert [event[:2] for event in rest] == [("ADDED", "c"), ("DELETED", "a")]


def test_kubernetes_watch_gets_410_when_its_revision_is_compacted(
    widgets: LiveServer, kubernetes_api: Any
) -> None:
    client: Any = importlib.import_module("kubernetes.client")
    watch: Any = importlib.import_module("kubernetes.watch")
    widgets_api = client.CustomObjectsApi(kubernetes_api)
    machinery = widgets.running.machinery
    for number in range(3):
        name = f"gone-{number}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        assert widgets.request("POST", "/api/v1/namespaces", body).status == 201
    revision = int(widgets.request("GET", "/api/v1/namespaces").json["metadata"]["resourceVersion"])

    async def compact() -> None:
        await machinery.backend.store.compact(revision - 1)
        machinery.backend.cache.compacted(revision - 1)

    asyncio.run_coroutine_threadsafe(compact(), widgets.loop).result(10)
    listing = (GROUP, "v1", "default", "widgets")
    with pytest.raises(client.ApiException) as refused:
        list(
            watch.Watch().stream(
                widgets_api.list_namespaced_custom_object,
                *listing,
                resource_version="1",
                timeout_seconds=2,
            )
        )
    assert refused.value.status == 410


def test_kubernetes_typed_clients(kubernetes_api: Any, space: str) -> None:
    client: Any = importlib.import_module("kubernetes.client")
    core = client.CoreV1Api(kubernetes_api)
    core.create_namespaced_config_map(space, {"metadata": {"name": "cm"}, "data": {"a": "b"}})
    assert core.read_namespaced_config_map("cm", space).data == {"a": "b"}
    definitions = client.ApiextensionsV1Api(kubernetes_api).list_custom_resource_definition()
    assert f"widgets.{GROUP}" in [crd.metadata.name for crd in definitions.items]
    assert client.VersionApi(kubernetes_api).get_code().major == "1"
    lease = {"metadata": {"name": "lock"}, "spec": {"holderIdentity": "me"}}
    leases = client.CoordinationV1Api(kubernetes_api)
    assert leases.create_namespaced_lease(space, lease).spec.holder_identity == "me"


@pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning")
def test_kr8s(widgets: LiveServer, space: str) -> None:
    import kr8s.asyncio
    from kr8s.asyncio.objects import new_class

    async def life() -> list[str]:
        api: Any = await kr8s.asyncio.api(kubeconfig=str(widgets.kubeconfig), namespace=space)
        kind = new_class(
            "Widget", f"{GROUP}/v1", namespaced=True, asyncio=True, plural="widgets", scalable=True
        )
        one = await kind(widget(GROUP, "one"), api=api, namespace=space)
        await one.create()
        await one.patch({"spec": {"size": 3}})
        await one.label(app="x")
        await one.scale(4)
        await one.refresh()
        assert (one.spec.size, one.spec.replicas, dict(one.labels)) == (3, 4, {"app": "x"})
        names = [item.name async for item in api.get(kind, namespace=space)]
        seen = []
        async for event, obj in api.watch(f"widgets.v1.{GROUP}", namespace=space):
            seen.append(f"{event} {obj.name}")
            break
        await one.delete()
        await one.wait("delete", timeout=10)
        await api._session.aclose()
        return [*names, *seen]

    assert asyncio.run(life()) == ["one", "ADDED one"]


def test_lightkube(widgets: LiveServer, space: str) -> None:
    from lightkube import ApiError, Client, KubeConfig
    from lightkube.generic_resource import create_namespaced_resource
    from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
    from lightkube.types import PatchType

    kind: Any = create_namespaced_resource(GROUP, "v1", "Widget", "widgets")
    client: Any = Client(KubeConfig.from_file(str(widgets.kubeconfig)), field_manager="lightkube")
    crd = widget_crd("light.example.com")
    client.create(CustomResourceDefinition.from_dict(crd))
    assert client.get(CustomResourceDefinition, "widgets.light.example.com").spec is not None

    client.create(kind(widget(GROUP, "one")), namespace=space)
    client.patch(kind, "one", {"spec": {"size": 2}}, namespace=space, patch_type=PatchType.MERGE)
    applied = client.apply(kind(widget(GROUP, "one", color="blue")), namespace=space, force=True)
    assert applied["spec"]["color"] == "blue"
    assert [item.metadata.name for item in client.list(kind, namespace=space)] == ["one"]
    event, obj = next(iter(client.watch(kind, namespace=space)))
    assert (event, obj.metadata.name, obj["spec"]["size"]) == ("ADDED", "one", 2)
    client.delete(kind, "one", namespace=space)
    with pytest.raises(ApiError) as refused:
        client.get(kind, "one", namespace=space)
    assert refused.value.status.code == 404
    client.delete(CustomResourceDefinition, "widgets.light.example.com")
    client._client._client.close()
