"""Conversions of one write, cached so that the webhook converts each object once.

``update_attempt.py``, ``apply.py`` and ``ownership.py`` share one ``WriteConversions`` per attempt.
A write at another version needs the new object at the storage version twice (to track field
ownership there, and to store it), and the live object, which the codec may have cached. The cache
key leaves out managedFields, resourceVersion and generation, because a conversion must return them
unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from instar.base.json_values import Object, copy_json
from instar.kube.api.encoding.json_text import encode_sorted
from instar.server.registry.resources.serving import VersionServing
from instar.server.registry.stored.codec import Codec
from instar.server.registry.stored.entry import CacheEntry

_Key = tuple[bytes, str]
_SERVER_SET_METADATA = ("managedFields", "resourceVersion", "generation")
"""Metadata that the server sets and no conversion may change."""
_WEBHOOK_MAY_CHANGE = ("labels", "annotations")
"""Metadata that a conversion webhook may change."""


class WriteConversions:
    """Conversions of one attempt of a write. Without a webhook nothing is cached."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._known: dict[_Key, Object] = {}
        self._live: tuple[bytes, CacheEntry] | None = None

    def starts_from(self, live: Object, entry: CacheEntry) -> None:
        """Set the live object: ``live`` is the entry at the writer's version."""
        if self._codec.serving.converts_remotely:
            self._live = _content(live), entry

    async def convert(
        self, objects: Sequence[Object], source: VersionServing, target: VersionServing
    ) -> list[Object]:
        """Return the objects at ``target``, pruned: new dicts, from at most one
        ConversionReview."""
        if source is target:
            return list(objects)
        if not self._codec.serving.converts_remotely:
            return await self._codec.to_version(objects, source, target)
        keys = [(_content(obj), target.api_version) for obj in objects]
        missing = [at for at, key in enumerate(keys) if key not in self._known]
        if missing:
            sent = [objects[at] for at in missing]
            converted = await self._codec.to_version(sent, source, target)
            self._known.update(zip([keys[at] for at in missing], converted, strict=True))
        return [
            _with_metadata_of(obj, self._known[key]) for obj, key in zip(objects, keys, strict=True)
        ]

    async def as_read(
        self, objects: Sequence[Object], source: VersionServing, target: VersionServing
    ) -> list[Object]:
        """Return the objects as a client at ``target`` would read them, for comparing them.

        The live object comes from the codec's cache. An object that is not stored yet gets the
        defaults that a read would add, else every default would look like a change.
        """
        found = [self._from_cache(obj, target) for obj in objects]
        missing = [at for at, view in enumerate(found) if view is None]
        converted = await self.convert([objects[at] for at in missing], source, target)
        serving = self._codec.serving
        for at, obj in zip(missing, converted, strict=True):
            if serving.converts_remotely and target is serving.storage:
                serving.strategy.default(obj, target)
            found[at] = obj
        return [obj for obj in found if obj is not None]

    def _from_cache(self, obj: Object, target: VersionServing) -> Object | None:
        if self._live is None or self._live[0] != _content(obj):
            return None
        view = self._codec.view_now(self._live[1], target)
        return None if view is None else _with_metadata_of(obj, orjson.loads(view))


def _content(obj: Object) -> bytes:
    metadata = {
        name: value for name, value in obj["metadata"].items() if name not in _SERVER_SET_METADATA
    }
    return encode_sorted({**obj, "metadata": metadata})


def _with_metadata_of(original: Object, converted: Object) -> Object:
    """Return a fresh copy with the original's metadata; a conversion may change only labels and
    annotations."""
    obj: Object = copy_json(converted)
    metadata = {k: v for k, v in original["metadata"].items() if k not in _WEBHOOK_MAY_CHANGE}
    for name in _WEBHOOK_MAY_CHANGE:
        if name in obj["metadata"]:
            metadata[name] = obj["metadata"][name]
    obj["metadata"] = metadata
    return obj
