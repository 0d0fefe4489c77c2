"""Capture source that reads a store directly: every object as stored, all at one revision.

``taking.py`` reads its batches. Custom resources and CRDs are stored as JSON. An instar store has
built-in kinds as JSON too; a cluster's own etcd has them as protobuf, under keys without a group.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson

from instar.base.json_values import Object
from instar.kube.protobuf.envelope import MAGIC, decode_object
from instar.kube.protobuf.errors import ProtobufError
from instar.server.registry.insight.usage import RECORD
from instar.tools.snapshots.capture.scope import CapturedResource
from instar.tools.snapshots.capture.source import CaptureBatch, Gap
from instar.tools.snapshots.manifest import OTHERS
from instar.wire.storage.keys import collection_prefix
from instar.wire.storage.store import Page, Record, Store, StoreError


class StoreSource:
    """Reads objects as a store has them, at one revision."""

    exact = True
    needs_serving = False

    def __init__(self, store: Store, origin: str, *, page: int = 1000) -> None:
        self._store = store
        self.origin = origin
        self._page = page
        self._revision = 0

    async def batches(
        self, resource: CapturedResource, token: str = ""
    ) -> AsyncIterator[CaptureBatch]:
        """Yield batches; ``token`` is ``REVISION PREFIX START``."""
        if not self._revision:
            self._revision = (await self._range("", "", 1, 0)).revision
        first = collection_prefix(resource.group, resource.plural)
        foreign = f"{resource.plural}/" if resource.part.startswith(OTHERS) else first
        revision, prefix, start = self._revision, first, ""
        if token:
            number, prefix, start = token.split(" ", 2)
            revision = int(number)
        while True:
            page = await self._range(prefix, start, self._page, revision)
            if not page.records and not start and prefix != foreign:
                prefix = foreign
                page = await self._range(prefix, start, self._page, revision)
            found = [_object(record) for record in page.records]
            objects = [obj for obj in found if obj is not None]
            following = ""
            if page.more:
                start = page.records[-1].key + "\0"
                following = f"{revision} {prefix} {start}"
            unreadable = len(found) - len(objects)
            yield CaptureBatch(objects, str(revision), following, unreadable=unreadable)
            if not following:
                return

    async def usage(self) -> Object | None:
        try:
            record = await self._store.get(RECORD)
        except StoreError:
            return None
        return None if record is None else _parsed(record.value)

    async def _range(self, prefix: str, start: str, limit: int, revision: int) -> Page:
        try:
            return await self._store.range(prefix, start=start, limit=limit, revision=revision)
        except StoreError as error:
            raise Gap(str(error)) from None


def _object(record: Record) -> Object | None:
    """Decode a stored value; None if its encryption key is unknown, or if it is not an object."""
    if record.seal is not None and record.seal.problem:
        return None
    if record.value.startswith(MAGIC):
        try:
            obj: Object | None = decode_object(record.value)
        except ProtobufError:
            return None
    else:
        obj = _parsed(record.value)
    if obj is None or not isinstance(obj.get("metadata"), dict):
        return None
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(record.revision)}}


def _parsed(value: bytes) -> Object | None:
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
