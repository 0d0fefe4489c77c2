"""Pods, Deployments and Jobs through the typed clients of Python: kubernetes, kr8s, lightkube."""

from __future__ import annotations

import asyncio
import importlib
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.server import LiveServer, live_server

_names = itertools.count(1)
CONTAINER = {"name": "main", "image": "busybox:1", "command": ["true"]}
POD = {"restartPolicy": "Never", "containers": [CONTAINER]}
LABELS = {"app": "demo"}
DEPLOYMENT = {
    "replicas": 2,
    "selector": {"matchLabels": LABELS},
    "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}},
}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(bootstrap_objects=True) as running:
        yield running


@pytest.fixture
def space(server: LiveServer) -> str:
    name = f"typed-{next(_names)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert server.request("POST", "/api/v1/namespaces", body).status == 201
    return name


def test_kubernetes_typed_client(server: LiveServer, space: str) -> None:
    config: Any = importlib.import_module("kubernetes.config")
    client: Any = importlib.import_module("kubernetes.client")
    api = config.new_client_from_config(str(server.kubeconfig))
    core, apps, batch = client.CoreV1Api(api), client.AppsV1Api(api), client.BatchV1Api(api)

    pod = core.create_namespaced_pod(space, {"metadata": {"name": "p"}, "spec": POD})
    deployment = apps.create_namespaced_deployment(
        space, {"metadata": {"name": "d", "labels": LABELS}, "spec": DEPLOYMENT}
    )
    job = batch.create_namespaced_job(
        space, {"metadata": {"name": "j"}, "spec": {"template": {"spec": POD}}}
    )
    scale = apps.patch_namespaced_deployment_scale("d", space, {"spec": {"replicas": 5}})
    pending = core.list_namespaced_pod(space, field_selector="status.phase=Pending")
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    running = core.patch_namespaced_pod_status("p", space, ready)
    core.delete_namespaced_pod("p", space)
    apps.delete_namespaced_deployment("d", space, propagation_policy="Foreground")

    assert (pod.status.phase, pod.status.qos_class) == ("Pending", "BestEffort")
    assert deployment.spec.strategy.rolling_update.max_surge == "25%"
    assert job.spec.template.metadata.labels["batch.kubernetes.io/job-name"] == "j"
    assert scale.spec.replicas == 5
    assert [item.metadata.name for item in pending.items] == ["p"]
    assert running.status.phase == "Running"
    assert core.list_namespaced_pod(space).items == []
    with pytest.raises(client.ApiException) as refused:
        core.create_namespaced_pod(space, {"metadata": {"name": "x"}, "spec": {"containers": []}})
    assert refused.value.status == 422
    api.close()
    api.rest_client.pool_manager.clear()


@pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning")
def test_kr8s_typed_objects(server: LiveServer, space: str) -> None:
    kr8s: Any = importlib.import_module("kr8s.asyncio")
    objects: Any = importlib.import_module("kr8s.asyncio.objects")

    async def session() -> tuple[Any, ...]:
        api = await kr8s.api(kubeconfig=str(server.kubeconfig))
        place = {"namespace": space}
        pod = await objects.Pod({"metadata": {"name": "p", **place}, "spec": POD}, api=api)
        deployment = await objects.Deployment(
            {"metadata": {"name": "d", **place}, "spec": DEPLOYMENT}, api=api
        )
        job = await objects.Job(
            {"metadata": {"name": "j", **place}, "spec": {"template": {"spec": POD}}}, api=api
        )
        for item in (pod, deployment, job):
            await item.create()
        await deployment.scale(4)
        await pod.label({"a": "b"})
        listed = [item.name async for item in api.get("pods", namespace=space)]
        ready = await deployment.ready()
        await pod.delete()
        exists = await pod.exists()
        await api._session.aclose()
        return pod, deployment, job, listed, ready, exists

    pod, deployment, job, listed, ready, exists = asyncio.run(session())

    assert pod.labels["a"] == "b"
    assert deployment.replicas == 4
    assert job.raw["spec"]["completions"] == 1
    assert listed == ["p"]
    assert (ready, exists) == (False, False)


def test_lightkube_typed_resources(server: LiveServer, space: str) -> None:
    from lightkube import ApiError, Client, KubeConfig
    from lightkube.resources.apps_v1 import Deployment
    from lightkube.resources.batch_v1 import Job
    from lightkube.resources.core_v1 import Pod

    client: Any = Client(config=KubeConfig.from_file(str(server.kubeconfig)), namespace=space)
    pod = client.create(Pod.from_dict({"metadata": {"name": "p"}, "spec": POD}))
    deployment = client.create(
        Deployment.from_dict({"metadata": {"name": "d"}, "spec": DEPLOYMENT})
    )
    job = client.create(
        Job.from_dict({"metadata": {"name": "j"}, "spec": {"template": {"spec": POD}}})
    )
    scale = client.get(Deployment.Scale, "d")
    scale.spec.replicas = 3
    replaced = client.replace(scale, "d")
    event, seen = next(iter(client.watch(Pod)))
    labelled = {"metadata": {"name": "d", "labels": {"x": "y"}}, "spec": DEPLOYMENT}
    applied = client.apply(Deployment.from_dict(labelled), field_manager="light", force=True)
    client.delete(Pod, "p")

    assert pod.spec.containers[0].imagePullPolicy == "IfNotPresent"
    assert deployment.spec.revisionHistoryLimit == 10
    assert job.spec.parallelism == 1
    assert replaced.spec.replicas == 3
    assert (event, seen.metadata.name) == ("ADDED", "p")
    assert applied.metadata.labels == {"x": "y"}
    with pytest.raises(ApiError) as refused:
        client.get(Pod, "p")
    assert refused.value.status.code == 404
    client._client._client.close()
