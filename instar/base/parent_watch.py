"""Detects the end of the parent process, for ``--exit-with-parent``.

``cli/commands/serve.py`` and envtest's etcd await ``wait_for_orphaning`` while the server runs. The
function polls the parent's process id, because a pipe or a signal does not report on every system
that a test run was killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_POLL_SECONDS = 0.5


async def wait_for_orphaning(
    first: int, parent: Callable[[], int], every: float = _POLL_SECONDS
) -> None:
    """Return when the parent process is no longer ``first``, the process that started this one."""
    while True:
        if parent() != first:
            return
        await asyncio.sleep(every)
