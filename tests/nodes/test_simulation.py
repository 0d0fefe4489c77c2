"""Simulated nodes against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from instar.tools.nodes.node_objects import LEASES, NODES, node_names
from instar.tools.nodes.pod_rules import DEFAULT_RULES, read_rules
from instar.tools.nodes.simulation import ForeignNode, NodeSettings, NodeSimulation
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import load_access
from instar.wire.client.reflector import CollectionChange, CollectionState, follow
from tests.support.server import LiveServer

PODS = "/api/v1/namespaces/default/pods"
_SETTINGS = NodeSettings(
    names=node_names("sim-", 3),
    capacity={"cpu": "4", "pods": "10"},
    rules=read_rules(yaml.safe_load(DEFAULT_RULES)),
)


def _pod(name: str, node: str) -> dict[str, Any]:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name}, "spec": spec}


async def _until(client: Client, path: str, holds: Callable[[dict[str, Any]], bool]) -> None:
    """Wait for an object of a list to become what it should."""
    async with asyncio.timeout(20):
        async for seen in follow(client, path):
            objects = seen.items if isinstance(seen, CollectionState) else [seen.object]
            if any(map(holds, objects)):
                return


def test_nodes_are_ready_run_their_pods_and_go(fresh_server: LiveServer) -> None:
    async def scenario() -> None:
        async with Client(load_access(fresh_server.kubeconfig)) as client:
            simulation = NodeSimulation(client, _SETTINGS)
            await simulation.register()
            running = asyncio.ensure_future(simulation.run())
            nodes = (await client.get(NODES))["items"]
            leases = (await client.get(LEASES))["items"]
            await client.post(PODS, _pod("ours", "sim-1"))
            await client.post(PODS, _pod("theirs", "elsewhere"))
            await _until(client, PODS, lambda pod: pod["status"]["phase"] == "Running")
            pods = (await client.get(PODS))["items"]
            await client.delete(f"{PODS}/ours")
            running.cancel()
            await simulation.remove()
            left = (await client.get(NODES))["items"]

        assert [node["metadata"]["name"] for node in nodes] == ["sim-0", "sim-1", "sim-2"]
        assert {lease["spec"]["holderIdentity"] for lease in leases} == set(_SETTINGS.names)
        phases = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in pods}
        assert phases == {"ours": "Running", "theirs": "Pending"}
        assert left == []

    asyncio.run(scenario())


def test_a_real_node_of_that_name_is_left_alone(fresh_server: LiveServer) -> None:
    fresh_server.request("POST", NODES, {"metadata": {"name": "sim-1"}})

    async def scenario() -> None:
        async with Client(load_access(fresh_server.kubeconfig)) as client:
            with pytest.raises(ForeignNode, match="node sim-1 exists and is not simulated"):
                await NodeSimulation(client, _SETTINGS).register()
            assert len((await client.get(NODES))["items"]) == 1

    asyncio.run(scenario())


def test_following_continues_after_the_server_ends_the_watch(fresh_server: LiveServer) -> None:
    maps = "/api/v1/namespaces/default/configmaps"

    async def scenario() -> None:
        async with Client(load_access(fresh_server.kubeconfig)) as client:
            seen: list[str] = []
            async with asyncio.timeout(20):
                async for each in follow(client, maps, timeoutSeconds=1):
                    if isinstance(each, CollectionChange):
                        seen.append(each.object["metadata"]["name"])
                    if len(seen) == 3:
                        break
                    await client.post(maps, {"metadata": {"name": f"m{len(seen)}"}})
                    await asyncio.sleep(0)
            assert seen == ["m0", "m1", "m2"]

    asyncio.run(scenario())
