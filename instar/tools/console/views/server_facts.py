"""What a server of ours tells beyond the Kubernetes API, where it does; and why not, where not."""

from __future__ import annotations

from dataclasses import field

from instar.base.errors import ApiError, Forbidden
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.wire.client.client import Client

_OTHER = {
    "census": "this server does not count stored objects by version",
    "migrations": "this server does not tell how far its migrations are",
    "usage": "this server does not count requests",
    "webhooks": "this server does not tell how its webhooks do",
}


@dataclass
class Unknown:
    """What could not be found out, for the page to say."""

    lines: list[Object] = field(default_factory=list)

    def add(self, what: str, why: str) -> None:
        self.lines.append({"what": what, "why": why})


async def told(client: Client, what: str, unknown: Unknown) -> Object | None:
    """The document at ``/instar/WHAT``; None where there is none, noted in ``unknown``."""
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
