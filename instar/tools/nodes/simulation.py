"""Runs simulated nodes on a cluster: registers them, renews their leases and updates pods as a
kubelet would.

Called by ``instar nodes``. Everything is done through the cluster's public API with the rights of
its kubeconfig. The simulation watches all pods, and acts on those that a scheduler (or a user) has
bound to one of its nodes; real nodes and their pods are left alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime

from instar.base.errors import AlreadyExists, ApiError, Conflict, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.supervision import report_failure
from instar.base.times import micro_time_text, time_text
from instar.tools.nodes.node_objects import (
    LEASES,
    MANAGED,
    NODES,
    lease_object,
    node_object,
    node_status,
    pod_address,
)
from instar.tools.nodes.pod_rules import PodRule, phase_of, rule_for
from instar.tools.nodes.pod_status import pod_status
from instar.wire.client.client import Client
from instar.wire.client.reflector import CollectionChange, CollectionState, follow

log = logging.getLogger(__name__)
_RENEW_SECONDS = 10.0
_AT_ONCE = 16
"""Requests under way together when nodes are registered or leases renewed."""


class ForeignNode(Exception):
    """A node of that name exists and was not created by this tool."""


@dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """Options from the command line."""

    names: Sequence[str]
    capacity: Mapping[str, str]
    rules: Sequence[PodRule]


class NodeSimulation:
    """The nodes of one run."""

    def __init__(
        self,
        client: Client,
        settings: NodeSettings,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client, self._settings, self._now = client, settings, now
        self._names = frozenset(settings.names)
        self._uids: dict[str, str] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        """Pod uid → the next step of its rule."""
        self._steps: set[asyncio.Future[None]] = set()
        self._addresses = 0

    async def register(self) -> None:
        """Create the nodes that are missing, and make all of them Ready. Raises ``ForeignNode``
        before anything is written if a name belongs to a real node."""
        existing: dict[str, Object] = {}
        async for page in self._client.pages(NODES):
            existing |= {node["metadata"]["name"]: node for node in page.get("items") or ()}
        for name in self._names & existing.keys():
            if (existing[name]["metadata"].get("labels") or {}).get(MANAGED) != "true":
                raise ForeignNode(f"node {name} exists and is not simulated; choose --prefix")
        await self._for_all_nodes(self._register)

    async def run(self) -> None:
        """Renew leases and follow pods until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._renew_for_ever())
            group.create_task(self._follow_pods())

    async def remove(self) -> None:
        """Delete the nodes; garbage collection deletes their leases, where it runs."""
        for timer in self._timers.values():
            timer.cancel()
        await self._for_all_nodes(self._remove)

    async def _for_all_nodes(self, act: Callable[[int, str], Awaitable[None]]) -> None:
        places = asyncio.Semaphore(_AT_ONCE)

        async def one(number: int, name: str) -> None:
            async with places:
                await act(number, name)

        await asyncio.gather(*(one(*pair) for pair in enumerate(self._settings.names)))

    async def _register(self, number: int, name: str) -> None:
        try:
            node = await self._client.post(NODES, node_object(name))
        except AlreadyExists:
            node = await self._client.get(f"{NODES}/{name}")
        self._uids[name] = node["metadata"]["uid"]
        status = node_status(name, number, self._settings.capacity, time_text(self._now()))
        await self._client.patch(f"{NODES}/{name}/status", {"status": status})
        await self._renew(number, name)

    async def _remove(self, _number: int, name: str) -> None:
        for path in (f"{NODES}/{name}", f"{LEASES}/{name}"):
            try:
                await self._client.delete(path)
            except NotFound:
                continue

    # --- leases -------------------------------------------------------------------------------

    async def _renew_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            try:
                await self._for_all_nodes(self._renew)
            except ApiError as error:
                log.warning("cannot renew the leases of nodes, will retry: %s", error)

    async def _renew(self, _number: int, name: str) -> None:
        lease = lease_object(name, self._uids[name], micro_time_text(self._now()))
        try:
            await self._client.patch(f"{LEASES}/{name}", {"spec": lease["spec"]})
        except NotFound:
            await self._client.post(LEASES, lease)

    # --- pods ---------------------------------------------------------------------------------

    async def _follow_pods(self) -> None:
        async for seen in follow(self._client, "/api/v1/pods"):
            match seen:
                case CollectionState(items):
                    for pod in items:
                        self._look(pod)
                case CollectionChange("DELETED", pod):
                    self._forget(pod)
                case CollectionChange(_, pod):
                    self._look(pod)

    def _look(self, pod: Object) -> None:
        """Schedule the pod's next change."""
        if (pod.get("spec") or {}).get("nodeName") not in self._names:
            return
        self._forget(pod)
        if pod["metadata"].get("deletionTimestamp"):
            self._start(self._delete(pod))
            return
        rule = rule_for(pod, self._settings.rules)
        if rule is not None:
            loop, uid = asyncio.get_running_loop(), pod["metadata"]["uid"]
            self._timers[uid] = loop.call_later(rule.seconds, self._due, pod, rule)

    def _due(self, pod: Object, rule: PodRule) -> None:
        self._timers.pop(pod["metadata"]["uid"], None)
        self._start(self._advance(pod, rule))

    def _forget(self, pod: Object) -> None:
        timer = self._timers.pop(pod["metadata"]["uid"], None)
        if timer is not None:
            timer.cancel()

    def _start(self, step: Awaitable[None]) -> None:
        task = asyncio.ensure_future(step)
        self._steps.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[None]) -> None:
        self._steps.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            report_failure("a pod's step", error)

    async def _advance(self, pod: Object, rule: PodRule) -> None:
        self._addresses += 1
        status = pod_status(pod, rule, pod_address(self._addresses), time_text(self._now()))
        metadata = {"uid": pod["metadata"]["uid"]}
        try:
            await self._client.patch(
                f"{_path(pod)}/status", {"metadata": metadata, "status": status}
            )
        except (NotFound, Conflict):
            return  # deleted meanwhile, or another pod of that name
        except ApiError as error:
            log.warning("cannot move pod %s on from %s: %s", _path(pod), phase_of(pod), error)

    async def _delete(self, pod: Object) -> None:
        """Delete a terminating pod at once, as a kubelet does when its containers have stopped."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": pod["metadata"]["uid"]},
        }
        try:
            await self._client.delete(_path(pod), options)
        except (NotFound, Conflict):
            return
        except ApiError as error:
            log.warning("cannot end pod %s: %s", _path(pod), error)


def _path(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
