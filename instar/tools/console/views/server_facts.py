"""Reads ``/instar/…`` documents of our servers, with a reason where they are not available.

Used by the other views.
"""

from __future__ import annotations

from dataclasses import field

from instar.base.errors import ApiError, Forbidden
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.wire.client.client import Client

_OTHER = {
    "census": "this server does not count stored objects by version",
    "migrations": "migration progress is not available on this cluster",
    "usage": "this server does not count requests",
    "webhooks": "webhook statistics are not available on this cluster",
}


@dataclass
class Unknown:
    """Collects what is not available, for the page to show."""

    lines: list[Object] = field(default_factory=list)

    def add(self, what: str, why: str) -> None:
        self.lines.append({"what": what, "why": why})


async def told(client: Client, what: str, unknown: Unknown) -> Object | None:
    """Return the document at ``/instar/WHAT``; None if not available, noted in ``unknown``."""
    try:
        return await client.get(f"/instar/{what}")
    except Forbidden:
        unknown.add(what, f"you may not read /instar/{what}")
    except ApiError as error:
        if error.retryable:
            unknown.add(what, error.message)
        else:
            unknown.add(what, _OTHER[what])
    return None
