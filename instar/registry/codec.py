"""THE pipeline between stored bytes and one version's view, both directions, batches only.

Out: decode → clean metadata, prune, drop nulls, default by the *stored* version's schema →
convert → prune by the *requested* version's schema → resourceVersion. In: the object at the
request's version → convert to the storage version → prune by its schema → encode.
Most reads take none of these steps: bytes known to be normal for today's schema are handed out
as they are, or with another ``apiVersion`` spliced in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from instar.api.jsontext import encode_sorted
from instar.api.names import parse_group_version
from instar.conversion.shared import SharedConverter
from instar.errors import Unclassified
from instar.registry.entry import Entry
from instar.registry.serving import Serving, VersionServing

Object = dict[str, Any]

_CHUNK = 200
"""Objects worked on before other requests get their turn."""


class Prepared(NamedTuple):
    """An object on its way to the store."""

    raw: bytes
    at: int
    obj: Object
    """As it will be stored."""
    back: Object | None
    """As the writer's version will read it, where finding out needed a remote conversion."""


class Codec:
    """One per ``Serving``; dropped with it, and with it every memo made under its schema."""

    def __init__(self, serving: Serving, shared: SharedConverter) -> None:
        self.serving = serving
        self._shared = shared

    def close(self) -> None:
        """Forget every remembered conversion; the CRD has changed."""
        self._shared.close()

    def view_now(self, entry: Entry, wanted: VersionServing) -> bytes | None:
        """The view without awaiting anything, or None when work has to be done first."""
        stored = self._stored_version(entry)
        if entry.token is not stored:
            self._normalise(entry, stored)
        view = entry.normal or entry.view
        if stored is wanted:
            return view
        if self.serving.splices(stored, wanted):
            if view.startswith(stored.opening):
                return wanted.opening + view[len(stored.opening) :]
            return encode_sorted({**orjson.loads(view), "apiVersion": wanted.api_version})
        return self._shared.known((entry.suffix, entry.revision), wanted.api_version)

    async def views(self, entries: Sequence[Entry], wanted: VersionServing) -> list[bytes]:
        """The entries' JSON at ``wanted``, in order; all or an error, never a part."""
        found: list[bytes | None] = []
        for start in range(0, len(entries), _CHUNK):
            if start:
                await asyncio.sleep(0)
            chunk = entries[start : start + _CHUNK]
            found.extend(self.view_now(entry, wanted) for entry in chunk)
        missing = [position for position, view in enumerate(found) if view is None]
        if missing:
            converted = await self._converted([entries[index] for index in missing], wanted)
            for position, view in zip(missing, converted, strict=True):
                found[position] = view
        return found  # type: ignore[return-value]

    async def objects(self, entries: Sequence[Entry], wanted: VersionServing) -> list[Object]:
        """Fresh dicts at ``wanted``, resourceVersion included."""
        return [orjson.loads(view) for view in await self.views(entries, wanted)]

    async def prepare(self, obj: Object, version: VersionServing) -> Prepared:
        """``obj`` (at ``version``) as it will be stored. The argument is not kept."""
        obj = _without_server_fields(obj)
        if version is self.serving.storage:
            return _prepared(obj, None)
        stored = await self._to_version([obj], version, self.serving.storage)
        if not self.serving.converts_remotely:
            return _prepared(stored[0], None)
        readable = orjson.loads(orjson.dumps(stored[0]))
        self.serving.strategy.default(readable, self.serving.storage)
        back = await self._to_version([readable], self.serving.storage, version)
        return _prepared(stored[0], back[0])

    def remember(self, entry: Entry, version: VersionServing, back: Object) -> None:
        """Keep what ``prepare`` already learnt, so the next read does not ask again."""
        back["metadata"]["resourceVersion"] = str(entry.revision)
        self._shared.remember(
            (entry.suffix, entry.revision), version.api_version, encode_sorted(back)
        )

    async def to_version(
        self, objects: Sequence[Object], source: VersionServing, target: VersionServing
    ) -> list[Object]:
        """The objects pruned at another version, for comparing field ownership."""
        return await self._to_version(objects, source, target)

    def _stored_version(self, entry: Entry) -> VersionServing:
        group_version = parse_group_version(entry.api_version)
        found = self.serving.versions.get(group_version.version)
        if found is None or group_version.group != self.serving.group:
            raise Unclassified(
                f"request to convert CR from an invalid group/version: {entry.api_version}"
            )
        return found

    def _normalise(self, entry: Entry, stored: VersionServing) -> None:
        """Bring stored bytes up to today's schema of their own version."""
        obj = orjson.loads(entry.stored())
        self.serving.strategy.from_storage(obj, stored)
        obj["metadata"]["resourceVersion"] = str(entry.revision)
        view = encode_sorted(obj)
        entry.normal = None if view == entry.view else view
        entry.token = stored

    async def _converted(self, entries: list[Entry], wanted: VersionServing) -> list[bytes]:
        def load(positions: Sequence[int]) -> list[Object]:
            return [self._unrevised(entries[position]) for position in positions]

        def finish(position: int, converted: Object) -> bytes:
            obj: Object = orjson.loads(orjson.dumps(converted))
            self.serving.strategy.after_conversion(obj, wanted)
            obj["metadata"]["resourceVersion"] = str(entries[position].revision)
            return encode_sorted(obj)

        keys = [(entry.suffix, entry.revision) for entry in entries]
        return await self._shared.convert_encoded(keys, load, wanted.api_version, finish)

    def _unrevised(self, entry: Entry) -> Object:
        obj: Object = orjson.loads(entry.normal or entry.view)
        obj["metadata"].pop("resourceVersion", None)
        return obj

    async def _to_version(
        self, objects: Sequence[Object], source: VersionServing, target: VersionServing
    ) -> list[Object]:
        if source is target:
            return list(objects)
        converting = self._shared.convert(objects, target.api_version)
        # A remote call has a deadline, and asyncio's deadlines need a task of their own.
        remote = self.serving.converts_remotely
        converted = await (asyncio.create_task(converting) if remote else converting)
        if self.serving.splices(source, target):
            return converted
        fresh = [orjson.loads(orjson.dumps(obj)) for obj in converted]
        for obj in fresh:
            self.serving.strategy.after_conversion(obj, target)
        return fresh


def _without_server_fields(obj: Object) -> Object:
    metadata = {
        key: value
        for key, value in obj["metadata"].items()
        if key not in ("resourceVersion", "selfLink")
    }
    return {**obj, "metadata": metadata}


def _prepared(obj: Object, back: Object | None) -> Prepared:
    raw = encode_sorted(obj)
    marker = f'"uid":"{obj["metadata"].get("uid", "")}"}}'.encode()
    at = raw.find(marker)
    unique = at >= 0 and raw.find(marker, at + 1) < 0
    return Prepared(raw, at if unique else -1, obj, back)
