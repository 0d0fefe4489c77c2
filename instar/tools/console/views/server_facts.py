"""Reads the ``/instar/…`` documents of instar servers; for a document that is not available, it
records the reason.

Used by the other views.
"""

from __future__ import annotations

from dataclasses import field

from instar.base.errors import ApiError, Forbidden
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.wire.client.client import Client

_REASONS = {
    "census": "The stored versions of objects are not available on this cluster.",
    "migrations": "Migration progress is not available on this cluster.",
    "usage": "Requests are not counted on this cluster.",
    "webhooks": "Webhook statistics are not available on this cluster.",
}
"""What the page says, by document, for a document that a server does not have."""


@dataclass
class MissingDocuments:
    """Collects the documents that are not available, for the page."""

    lines: list[Object] = field(default_factory=list)

    def add(self, what: str, why: str) -> None:
        self.lines.append({"what": what, "why": why})


async def read_document(client: Client, what: str, unknown: MissingDocuments) -> Object | None:
    """Return the document at ``/instar/WHAT``; if not available, return None and add it to
    ``unknown``.
    """
    try:
        return await client.get(f"/instar/{what}")
    except Forbidden:
        unknown.add(what, f"You may not read /instar/{what}.")
    except ApiError as error:
        if error.retryable:
            unknown.add(what, error.message)
        else:
            unknown.add(what, _REASONS[what])
    return None
