"""Lock of a file that one process at a time may use: the file ``NAME.lock`` beside it.

The progress file and the undo journal of a migration and the journal of ``instar adopt`` hold one
as long as they are open. The system releases it when the process ends, however it ends.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO


def lock_beside(path: str | Path) -> IO[str]:
    """Lock a file, which need not exist; closing the result releases the lock. Raises
    ``BlockingIOError`` if another process has it, and other ``OSError``s if it cannot be made."""
    Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = Path(f"{path}.lock").open("w", encoding="utf-8")  # noqa: SIM115 - the caller closes it
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise
    return lock
