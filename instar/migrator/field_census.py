"""Fields counted over the objects of a cluster, a page at a time."""

from __future__ import annotations

from instar.apply.tally import FieldTally
from instar.client.client import Client
from instar.errors import ApiError
from instar.migrator.live_crd import LiveCrd


async def count_fields(client: Client, live: LiveCrd) -> FieldTally:
    """Read at the first version that can be listed. Raises ``ApiError`` when none can."""
    trouble: ApiError | None = None
    for version in live.read_versions:
        known = live.crd.version(version)
        tally = FieldTally(None if known is None else known.schema)
        try:
            async for page in client.pages(live.path(version)):
                for obj in page.get("items") or ():
                    tally.add(obj)
        except ApiError as error:
            trouble = trouble or error
            continue
        return tally
    raise trouble or ApiError(f"no version of {live.name} is served")
