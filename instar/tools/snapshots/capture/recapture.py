"""Capture source that reads another captured cluster, for example to turn a folder or must-gather
archive into one redacted file.

``taking.py`` reads its batches.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from itertools import islice

from instar.base.json_values import Object
from instar.tools.snapshots.capture.scope import CRD_RESOURCE, CapturedResource
from instar.tools.snapshots.capture.source import CaptureBatch
from instar.tools.snapshots.captured_cluster import CapturedCluster
from instar.tools.snapshots.manifest import OBJECTS, resource_of

_BATCH = 500


class CapturedClusterSource:
    def __init__(self, captured: CapturedCluster) -> None:
        self._captured = captured
        self.origin = captured.origin
        self.exact = captured.exact
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
        return self._captured.usage_document()

    def _objects(self, resource: CapturedResource) -> Iterable[Object]:
        if resource == CRD_RESOURCE:
            return self._captured.crds()
        if resource.part.startswith(OBJECTS):
            return self._captured.objects(resource_of(resource.part))
        group = f"{resource.group}/" if resource.group else ""
        return (
            obj
            for obj in self._captured.other_objects()
            if obj.get("kind") == resource.kind
            and str(obj.get("apiVersion", "")).startswith(group or "v")
        )
