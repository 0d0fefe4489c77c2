"""The last step of every write: prepared bytes become an entry of their collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry
from instar.server.registry.stored.prepared_object import PreparedObject

if TYPE_CHECKING:
    from instar.server.registry.resources.resource import Resource


def new_entry(prepared: PreparedObject, suffix: str) -> InMemoryEntry:
    """An entry whose revision only the store can tell."""
    return InMemoryEntry(prepared.raw, 0, suffix, prepared.at)


async def put_own(
    backend: Backend, resource: Resource, suffix: str, obj: Object, expected: int
) -> CacheEntry:
    """What the server itself writes, past every check; ``obj`` says which version it is of.

    Raises ``Stale`` where the revision is not the expected one; 0 is "must not exist".
    """
    serving = resource.serving
    own = [one for one in serving.versions.values() if one.api_version == obj["apiVersion"]]
    prepared = await resource.codec.prepare(obj, own[0] if own else serving.storage)
    return await backend.put(resource.objects, new_entry(prepared, suffix), expected)
