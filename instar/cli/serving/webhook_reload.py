"""``instar webhook --reload``: restarts the webhook process when a source file changes.

Called by ``cli/commands/webhook.py``. The flag is meant for the development of a converter, not for
production.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_LOOK_SECONDS = 0.3
_SUFFIXES = (".py", ".yaml", ".yml")
_STOP_SECONDS = 10.0

Snapshot = dict[Path, int]


def snapshot(folder: Path) -> Snapshot:
    """Return the modification time of each source below a folder, skipping hidden folders."""
    found: Snapshot = {}
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts
        if path.suffix in _SUFFIXES and not any(part.startswith(".") for part in inside):
            with contextlib.suppress(OSError):
                found[path] = path.stat().st_mtime_ns
    return found


def changed_files(before: Snapshot, after: Snapshot) -> list[Path]:
    """Return the files that were added, removed or changed between two snapshots."""
    return sorted(path for path in before.keys() | after if before.get(path) != after.get(path))


def run_reloading(
    arguments: Sequence[str], folder: Path, wait: Callable[[float], None] = time.sleep
) -> int:
    """Run until interrupted. A failing command waits for the next change."""
    words = [sys.executable, "-m", "instar", "webhook"]
    words += [word for word in arguments if word != "--reload"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        known = snapshot(folder)
        process = subprocess.Popen(words)
        try:
            while not (found := changed_files(known, snapshot(folder))):
                wait(_LOOK_SECONDS)
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shown = ", ".join(str(path.relative_to(folder)) for path in found[:3])
        print(f"instar webhook: {shown} changed, starting anew", file=sys.stderr, flush=True)
