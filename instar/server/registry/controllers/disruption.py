"""Disruption controller: how many pods of a PodDisruptionBudget are healthy, and how many may go.

``lifecycle/controller_setup.py`` creates it. An eviction reads the numbers and takes one disruption
off (``verbs/subresources/eviction.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from instar.base import offload
from instar.base.json_values import Object
from instar.kube.api.label_selector import selector_of
from instar.kube.api.names import parse_group_version
from instar.kube.builtin_rules.derived.disruption import desired_healthy, needs_scale
from instar.server.registry.controllers.followed_keys import FollowedKeys
from instar.server.registry.controllers.manager_lease import Duty
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.stored.make_entry import put_server_object
from instar.server.registry.verbs.conditions import is_true, set_condition
from instar.server.registry.verbs.subresources.scale import to_scale
from instar.wire.storage.watchcache.collection import Change

_DELETION = timedelta(minutes=2)
"""For how long an evicted pod that is still there counts as gone."""


class UnknownScale(Exception):
    """The number of pods that there should be cannot be found; ``str()`` is upstream's message."""


class DisruptionController:
    """Keeps the status of PodDisruptionBudgets."""

    def __init__(self, context: Context, catalog: Catalog, duty: Duty) -> None:
        self._context, self._catalog = context, catalog
        self._budgets = catalog.builtin("policy", "poddisruptionbudgets")
        self._pods = catalog.builtin("", "pods")
        self._keys = FollowedKeys(
            "disruption budget", context, duty, self._budgets, self._reconcile
        )

    def start(self) -> None:
        self._keys.start()
        self._pods.objects.observers.append(self._pod_changed)

    async def stop(self) -> None:
        await self._keys.stop()

    def _pod_changed(self, change: Change[CacheEntry]) -> None:
        if self._budgets.objects.entries:
            namespace = change.suffix.partition("/")[0]
            self._keys.add(self._budgets.objects.suffixes(f"{namespace}/"))

    async def _reconcile(self, suffix: str) -> float | None:
        entry = self._budgets.objects.entries.get(suffix)
        if entry is None:
            return None
        try:
            budget = entry.decode()
        except UnreadableEntry:
            return None
        before, now = budget.get("status") or {}, self._context.now()
        entries = list(self._pods_of(budget))
        pods = await offload.run(sum(each.size for each in entries), _decoded, entries)
        try:
            expected = len(pods) if not needs_scale(budget["spec"]) else self._scale(pods)
        except UnknownScale as error:
            budget["status"] = {**before, "disruptionsAllowed": 0}
            condition = _condition("False", "SyncFailed", before.get("observedGeneration"))
            set_condition(budget, {**condition, "message": str(error)}, self._context.timestamp())
        else:
            disrupted = _disrupted(before.get("disruptedPods") or {}, pods, now)
            budget["status"] = {**_status(budget, pods, disrupted, expected)}
            if "conditions" in before:
                budget["status"]["conditions"] = before["conditions"]
            set_condition(budget, _allowance(budget["status"]), self._context.timestamp())
        if budget["status"] != before:
            backend = self._context.backend
            await put_server_object(backend, self._budgets, suffix, budget, entry.revision)
        return _seconds_to_look_again(budget["status"].get("disruptedPods") or {}, now)

    def _pods_of(self, budget: Object) -> Iterator[CacheEntry]:
        selector = selector_of(budget["spec"].get("selector"))
        if selector is None:
            return
        objects = self._pods.objects
        for suffix in objects.suffixes(f"{budget['metadata']['namespace']}/"):
            entry = objects.entries[suffix]
            if selector.matches(entry.labels):
                yield entry

    def _scale(self, pods: list[Object]) -> int:
        """Add up how many pods the controllers of these pods should have."""
        scales: dict[str, int] = {}
        for pod in pods:
            owner = _controller_of(pod)
            if owner is None or owner["uid"] in scales:
                continue
            found = self._scale_of(owner, pod["metadata"]["namespace"])
            if found is None:
                raise UnknownScale(f'found no controllers for pod "{pod["metadata"]["name"]}"')
            uid, replicas = found
            scales[uid] = replicas
        return sum(scales.values())

    def _scale_of(self, owner: Object, namespace: str) -> tuple[str, int] | None:
        """Return uid and replicas of an owner; those of the Deployment above a ReplicaSet."""
        group, _ = parse_group_version(owner["apiVersion"])
        resource = self._catalog.of_kind(group, owner["kind"])
        paths = None if resource is None else resource.serving.storage.definition.scale
        if resource is None or paths is None:
            return None
        entry = resource.objects.entries.get(f"{namespace}/{owner['name']}")
        try:
            obj = None if entry is None else entry.decode()
        except UnreadableEntry:
            return None
        if obj is None or obj["metadata"]["uid"] != owner["uid"]:
            return None
        above = _controller_of(obj) if owner["kind"] == "ReplicaSet" else None
        if above is not None and above["kind"] == "Deployment":
            return self._scale_of(above, namespace)
        return owner["uid"], to_scale(obj, paths)["spec"].get("replicas") or 0


def _decoded(entries: list[CacheEntry]) -> list[Object]:
    found: list[Object] = []
    for entry in entries:
        try:
            found.append(entry.decode())
        except UnreadableEntry:
            continue
    return found


def _controller_of(obj: Object) -> Object | None:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _disrupted(before: Mapping[str, str], pods: list[Object], now: datetime) -> dict[str, str]:
    """Return the evicted pods that are still to be deleted, with the time of their eviction."""
    present = {
        pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")
    }
    return {
        name: at
        for name, at in before.items()
        if name in present and now - datetime.fromisoformat(at) <= _DELETION
    }


def _seconds_to_look_again(disrupted: Mapping[str, str], now: datetime) -> float | None:
    ages = [now - datetime.fromisoformat(at) for at in disrupted.values()]
    return max((_DELETION - max(ages)).total_seconds(), 0.0) + 1.0 if ages else None


def _status(
    budget: Object, pods: list[Object], disrupted: Mapping[str, str], expected: int
) -> Object:
    healthy = sum(
        is_true(pod, "Ready")
        for pod in pods
        if not pod["metadata"].get("deletionTimestamp") and pod["metadata"]["name"] not in disrupted
    )
    desired = desired_healthy(budget["spec"], expected)
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    status = {
        "observedGeneration": budget["metadata"].get("generation", 0),
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
    }
    return {**status, "disruptedPods": dict(disrupted)} if disrupted else status


def _allowance(status: Object) -> Object:
    allows = status["disruptionsAllowed"] > 0
    reason = "SufficientPods" if allows else "InsufficientPods"
    return _condition(str(allows), reason, status["observedGeneration"])


def _condition(status: str, reason: str, generation: int | None) -> Object:
    return {
        "type": "DisruptionAllowed",
        "status": status,
        "observedGeneration": generation or 0,
        "reason": reason,
        "message": "",
    }
