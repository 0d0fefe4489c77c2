"""Parameters of admission policies that are objects of the main cluster.

``views.py`` passes ``FollowedParams`` to the policy evaluators. A kind is followed as a whole from
the first request that needs it, at the version that the policy names; a kind of this server's own
groups is read from its store instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from instar.base.errors import ApiError, NotFound
from instar.base.json_values import Object
from instar.base.single_flight import SingleFlight
from instar.base.supervision import SupervisedTask, Supervision
from instar.base.taskless_wait import with_timeout
from instar.kube.admission.policies.params import (
    NOT_FOUND,
    ParamError,
    refuses_none,
    select_params,
)
from instar.kube.api.names import GroupVersionKind
from instar.server.cluster_home.following import ClusterFollower
from instar.server.cluster_home.main_cluster import ANSWER_SECONDS, MainCluster
from instar.server.registry.admission.policies.params import ParamKind, Params
from instar.wire.client.paths import resource_path

_LOOK_SECONDS = 0.05
_MOST_KINDS = 64
"""Kinds followed at once; policies are written by administrators."""


class FollowedKind:
    """One kind of the main cluster: its objects, as a follower sees them."""

    def __init__(
        self, cluster: MainCluster, kind: GroupVersionKind, plural: str, *, namespaced: bool
    ) -> None:
        self.plural = plural
        path = resource_path(kind.group, kind.version, plural)
        self.follower = ClusterFollower(cluster, f"{plural} (params)", [path], self)
        self._kind, self._namespaced = kind, namespaced
        self._objects: dict[tuple[str, str], Object] = {}

    async def collect(self, ref: Object, namespace: str) -> list[Object]:
        await self._wait_for_objects()
        wanted = select_params(ref, namespaced=self._namespaced, request_namespace=namespace)
        if wanted.name:
            one = self._objects.get((wanted.namespace, wanted.name))
            found = [] if one is None else [one]
        else:
            found = [
                obj
                for (place, _), obj in sorted(self._objects.items())
                if place == wanted.namespace
                and (wanted.selector is None or wanted.selector.matches(_labels(obj)))
            ]
        if not found and refuses_none(ref):
            raise ParamError(NOT_FOUND)
        return found

    async def _wait_for_objects(self) -> None:
        """Wait for the first list. Raises ``ParamError`` if it fails or takes too long."""
        follower = self.follower
        if follower.synced.is_set():
            return
        try:
            await with_timeout(ANSWER_SECONDS, self._first_list)
        except TimeoutError:
            why = follower.failure or f"no answer within {ANSWER_SECONDS:g} s"
            raise ParamError(f"failed to sync params from the main cluster: {why}") from None

    async def _first_list(self) -> None:
        while not self.follower.synced.is_set():
            if self.follower.failure:
                raise TimeoutError
            await asyncio.sleep(_LOOK_SECONDS)

    async def replace(self, objects: Iterable[Object]) -> None:
        self._objects = {_key(obj): self._complete(obj) for obj in objects}

    async def put(self, obj: Object) -> None:
        self._objects[_key(obj)] = self._complete(obj)

    async def drop(self, obj: Object) -> None:
        self._objects.pop(_key(obj), None)

    def _complete(self, obj: Object) -> Object:
        group, version, kind = self._kind
        api_version = f"{group}/{version}" if group else version
        metadata = {key: each for key, each in obj["metadata"].items() if key != "managedFields"}
        return {**obj, "apiVersion": api_version, "kind": kind, "metadata": metadata}


class FollowedParams:
    """Finds kinds of parameters, in this server and in the main cluster."""

    def __init__(self, cluster: MainCluster, own: Params, supervision: Supervision) -> None:
        self._cluster, self._own, self._supervision = cluster, own, supervision
        self._kinds: dict[GroupVersionKind, FollowedKind] = {}
        self._tasks: list[SupervisedTask] = []
        self._calls = SingleFlight()

    async def stop(self) -> None:
        for task in self._tasks:
            await task.stop()

    async def kind(self, wanted: GroupVersionKind) -> ParamKind | None:
        own = self._own.stored_kind(wanted)
        if own is not None and not own.resource.serving.builtin:
            return own
        known = self._kinds.get(wanted)
        if known is not None:
            return known
        try:
            found = await self._calls.once(wanted, lambda: self._discover(wanted))
        except ApiError as error:
            text = f"the main cluster cannot be asked for {wanted}: {error.message}"
            raise ParamError(text) from error
        if found is None or wanted in self._kinds:
            return self._kinds.get(wanted)
        if len(self._kinds) >= _MOST_KINDS:
            raise ParamError(f"policies name more than {_MOST_KINDS} kinds of parameters")
        self._follow(wanted, found)
        return found

    async def _discover(self, wanted: GroupVersionKind) -> FollowedKind | None:
        group, version, kind = wanted
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            document = await self._cluster.asking.get(path)
        except NotFound:
            return None
        for item in document.get("resources") or ():
            if item.get("kind") == kind and "/" not in item.get("name", "/"):
                namespaced = item.get("namespaced") is True
                return FollowedKind(self._cluster, wanted, item["name"], namespaced=namespaced)
        return None

    def _follow(self, wanted: GroupVersionKind, kind: FollowedKind) -> None:
        self._kinds[wanted] = kind
        name = f"params-{kind.plural}.{wanted.group}"
        self._tasks.append(self._supervision.keep(name, kind.follower.run))


def _key(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])


def _labels(obj: Object) -> dict[str, str]:
    found = obj["metadata"].get("labels")
    return found if isinstance(found, dict) else {}
