"""Makes the cache entry of an object that is about to be stored; writes the server's own objects.

``verbs/commit.py`` and ``verbs/delete.py`` call ``new_entry`` as the last step before
``Backend.put``; controllers call ``put_server_object``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry
from instar.server.registry.stored.prepared_object import PreparedObject

if TYPE_CHECKING:
    from instar.server.registry.resources.resource import Resource


def new_entry(prepared: PreparedObject, suffix: str) -> InMemoryEntry:
    """Return an entry without a revision, which the store assigns."""
    return InMemoryEntry(prepared.raw, 0, suffix, prepared.at)


async def put_server_object(
    backend: Backend, resource: Resource, suffix: str, obj: Object, expected: int
) -> CacheEntry:
    """Store an object of the server itself without admission and validation, at the version that
    ``obj`` names.

    Raises ``Stale`` where the revision is not the expected one; 0 means that it must not exist.
    """
    serving = resource.serving
    own = [one for one in serving.versions.values() if one.api_version == obj["apiVersion"]]
    prepared = await resource.codec.prepare(obj, own[0] if own else serving.storage)
    return await backend.put(resource.objects, new_entry(prepared, suffix), expected)
