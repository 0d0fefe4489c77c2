"""Number of objects of each CRD by lists, for clusters that have no census.

Used by the overview. A list of one object tells how many follow it, so that a count is one small
request; at most ``MOST`` CRDs are counted, because the page asks again every few seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.wire.client.client import Client
from instar.wire.client.paths import resource_path

MOST = 100
_AT_ONCE = 8


async def count_objects(client: Client, crds: Sequence[Object]) -> dict[str, int]:
    """Return the number of objects by CRD name; CRDs that cannot be listed are left out."""
    seats = asyncio.Semaphore(_AT_ONCE)

    async def counted(crd: Object) -> tuple[str, int | None]:
        async with seats:
            return crd["name"], await _count(client, crd)

    found = await asyncio.gather(*(counted(crd) for crd in crds[:MOST]))
    return {name: number for name, number in found if number is not None}


async def _count(client: Client, crd: Object) -> int | None:
    served = [version["name"] for version in crd["versions"] if version["served"]]
    if not served:
        return None
    version = crd["storageVersion"] if crd["storageVersion"] in served else served[-1]
    path = resource_path(crd["group"], version, crd["plural"])
    try:
        page = await client.list_metadata(path, limit=1)
    except ApiError:
        return None
    metadata = page.get("metadata") or {}
    here = len(page.get("items") or ())
    if not metadata.get("continue"):
        return here
    rest = metadata.get("remainingItemCount")
    return here + rest if isinstance(rest, int) else None
