"""Lists a whole collection at every served version, to see that every object can be read.

Called after a version was removed from a CRD: an object that is stored in it makes every list
fail, and then the version is put back at once.
"""

from __future__ import annotations

from instar.base.errors import ApiError, Forbidden, NotFound
from instar.tools.migrator.live_crd import LiveCrd
from instar.tools.migrator.object_pages import list_page
from instar.tools.migrator.retries import RetryPolicy
from instar.wire.client.client import Client

EFFECT_SECONDS = 2.0
"""So long an API server of a cluster may take to use a changed CRD."""
_PAGE = 500
_BRIEF = RetryPolicy(attempts=3)


async def why_unreadable(client: Client, live: LiveCrd) -> str:
    """Return why some version of the collection cannot be listed; empty when all can be."""
    for version in live.read_versions:
        try:
            await _list_all(client, live.path(version))
        except (Forbidden, NotFound):
            continue
        except ApiError as error:
            return f"the objects cannot be listed at {version}: {error.message}"
    return ""


async def _list_all(client: Client, path: str) -> None:
    token = ""
    while True:
        page, _ = await list_page(client, path, token, _PAGE, _BRIEF, metadata=True)
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return
