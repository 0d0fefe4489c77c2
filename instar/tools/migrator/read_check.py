"""Reads every object once at every served version, to see whether each still converts.

Called by the console. Writes nothing.
"""

from __future__ import annotations

import time
from dataclasses import field

from instar.base.fast_dataclass import dataclass
from instar.tools.migrator.live_crd import LiveCrd
from instar.tools.migrator.object_pages import Lister, Unlistable
from instar.tools.migrator.retries import RetryPolicy
from instar.wire.client.client import Client

SECONDS = 40.0
"""Time limit of the check."""
_PAGE = 500
_MAX_PROBLEMS = 100
"""The check stops at this number of objects that cannot be read."""
_BRIEF_RETRIES = RetryPolicy(attempts=2)


@dataclass
class ReadCheckResult:
    """What reading all objects at each version showed."""

    objects: int = 0
    problems: dict[str, str] = field(default_factory=dict)
    """By object: why it cannot be read at some version."""
    stopped: str = ""
    """Why not everything was looked at."""


async def read_everything(
    client: Client, live: LiveCrd, seconds: float = SECONDS
) -> ReadCheckResult:
    """Read all objects. Raises ``ApiError`` if the server cannot be reached."""
    lister = Lister(client, live, _BRIEF_RETRIES, limit=_PAGE, verify=True)
    reading, until, token = ReadCheckResult(), time.monotonic() + seconds, ""
    while True:
        try:
            page = await lister.page(token)
        except Unlistable as error:
            reading.stopped = str(error)
            return reading
        reading.objects += len(page.found)
        for key, trouble in page.unreadable.items():
            reading.problems.setdefault(key, trouble.message)
        token = page.token
        if not token:
            return reading
        if len(reading.problems) >= _MAX_PROBLEMS:
            reading.stopped = f"more than {_MAX_PROBLEMS} objects cannot be read"
            return reading
        if time.monotonic() > until:
            reading.stopped = f"the {seconds:.0f} s for it are over"
            return reading
