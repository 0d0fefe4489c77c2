"""End of the parent process, for ``instar serve --exit-with-parent``.

``cli/commands/serve.py`` awaits it beside the server. The parent is asked for again and again: a
pipe or a signal would not tell of a test run that was killed on every system.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_EVERY_SECONDS = 0.5


async def wait_for_orphaning(
    first: int, parent: Callable[[], int], every: float = _EVERY_SECONDS
) -> None:
    """Return when the parent is another process than ``first``, which started this one."""
    while True:
        if parent() != first:
            return
        await asyncio.sleep(every)
