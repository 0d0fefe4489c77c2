"""Counts which fields the objects of a cluster set, page by page.

``instar census --fields``, ``instar fields`` and the console's fields view call it.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

from instar.base import offload
from instar.base.errors import ApiError
from instar.kube.apply.field_usage import FieldTally
from instar.tools.migrator.live_crd import LiveCrd
from instar.wire.client.client import Client


class FieldCount(NamedTuple):
    """How many stored objects set each field, and which managers set it."""

    tally: FieldTally
    version: str
    """The version at which the objects were read."""
    complete: bool


async def count_fields(
    client: Client, live: LiveCrd, *, most: int = 0, seconds: float = 0.0
) -> FieldCount:
    """Count fields at the first version that can be listed, within limits of objects and time if
    given. Raises ``ApiError`` if no version can be listed.
    """
    trouble: ApiError | None = None
    for version in live.read_versions:
        try:
            return await _count(client, live, version, most, seconds)
        except ApiError as error:
            trouble = trouble or error
    raise trouble or ApiError(f"no version of {live.name} is served")


async def _count(
    client: Client, live: LiveCrd, version: str, most: int, seconds: float
) -> FieldCount:
    known = live.crd.version(version)
    tally = FieldTally(None if known is None else known.schema)
    until = time.monotonic() + seconds
    async for page in client.pages(live.path(version)):
        items = page.get("items") or []
        room = len(items) if not most else most - tally.total
        await offload.run_in_thread(partial(_add, tally, items[:room]))
        more = bool((page.get("metadata") or {}).get("continue")) or len(items) > room
        full = bool(most) and tally.total >= most
        late = bool(seconds) and time.monotonic() > until
        if more and (full or late):
            return FieldCount(tally, version, complete=False)
    return FieldCount(tally, version, complete=True)


def _add(tally: FieldTally, objects: list[Any]) -> None:
    for obj in objects:
        tally.add(obj)
