"""The last step of every write: prepared bytes become an entry of their collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.plain import Object
from instar.registry.stored.backend import Backend
from instar.registry.stored.entry import Entry, Held
from instar.registry.stored.prepared import Prepared

if TYPE_CHECKING:
    from instar.registry.resources.resource import Resource


def new_entry(prepared: Prepared, suffix: str) -> Held:
    """An entry whose revision only the store can tell."""
    return Held(prepared.raw, 0, suffix, prepared.at)


async def put_own(
    backend: Backend, resource: Resource, suffix: str, obj: Object, expected: int
) -> Entry:
    """What the server itself writes, past every check; ``obj`` says which version it is of.

    Raises ``Stale`` where the revision is not the expected one; 0 is "must not exist".
    """
    serving = resource.serving
    own = [one for one in serving.versions.values() if one.api_version == obj["apiVersion"]]
    prepared = await resource.codec.prepare(obj, own[0] if own else serving.storage)
    return await backend.put(resource.objects, new_entry(prepared, suffix), expected)
