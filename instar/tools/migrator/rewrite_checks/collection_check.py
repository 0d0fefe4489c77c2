"""Lists a whole collection at every served version, to see that every object can be read.

Called by ``cli/shared/version_edits.py`` and ``tools/upgrader/cluster.py`` after a version was
removed from a CRD: an object that is stored in that version makes every list fail, and then the
caller adds the version again at once. A list that is refused or not found does not prove that the
objects can be read, so it is a failure too.
"""

from __future__ import annotations

import asyncio
import time

from instar.base.errors import ApiError, NotFound
from instar.tools.migrator.live_crd import LiveCrd
from instar.tools.migrator.object_pages import list_page
from instar.tools.migrator.retries import RetryPolicy
from instar.wire.client.client import Client

EFFECT_SECONDS = 2.0
"""Seconds an API server may need to pick up a changed CRD."""
_PAGE = 500
_BRIEF_RETRIES = RetryPolicy(attempts=3)
_NOT_FOUND_SECONDS = 10.0
"""Seconds in which an API server may still answer 404 for a version that the CRD serves."""
_POLL = 0.25


async def why_unreadable(client: Client, live: LiveCrd) -> str:
    """Return why the collection cannot be listed at some version; empty if it can at all."""
    for version in live.read_versions:
        try:
            await _list_all(client, live.path(version))
        except ApiError as error:
            return f"the objects cannot be listed at {version}: {error.message}"
    return ""


async def _list_all(client: Client, path: str) -> None:
    token = ""
    until = time.monotonic() + _NOT_FOUND_SECONDS
    while True:
        try:
            page, _ = await list_page(client, path, token, _PAGE, _BRIEF_RETRIES, metadata=True)
        except NotFound:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(_POLL)
            continue
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return
