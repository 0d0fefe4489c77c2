"""Capture source that reads another captured cluster: a folder or bundle becomes one redacted
file.

``taking.py`` reads its batches.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from itertools import islice

from instar.base.json_values import Object
from instar.tools.snapshots.capture.scope import CRD_RESOURCE, CapturedResource
from instar.tools.snapshots.capture.source import CaptureBatch
from instar.tools.snapshots.captured_cluster import World
from instar.tools.snapshots.manifest import OBJECTS, resource_of

_BATCH = 500


class WorldSource:
    def __init__(self, world: World) -> None:
        self._world = world
        self.origin = world.origin
        self.exact = world.exact
        self.needs_serving = False

    async def batches(
        self, resource: CapturedResource, token: str = ""
    ) -> AsyncIterator[CaptureBatch]:
        """Yield the objects from the beginning: a captured cluster has no continue token."""
        rows = iter(self._objects(resource))
        anew = bool(token)
        while objects := list(islice(rows, _BATCH)):
            yield CaptureBatch(objects, "", anew=anew)
            anew = False

    async def usage(self) -> Object | None:
        return self._world.usage_document()

    def _objects(self, resource: CapturedResource) -> Iterable[Object]:
        if resource == CRD_RESOURCE:
            return self._world.crds()
        if resource.part.startswith(OBJECTS):
            return self._world.objects(resource_of(resource.part))
        group = f"{resource.group}/" if resource.group else ""
        return (
            obj
            for obj in self._world.others()
            if obj.get("kind") == resource.kind
            and str(obj.get("apiVersion", "")).startswith(group or "v")
        )
