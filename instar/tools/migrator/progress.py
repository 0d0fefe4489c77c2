"""Progress reporting of a migration run: the interface and a no-op implementation.

The commands pass in a progress bar, the console a page; ``rewrite_pass.py`` and ``verify.py``
report to it.
"""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receiver of the progress of a run: a progress bar, a log, or ``NoProgress``."""

    def begin(self, phase: str, total: int | None) -> None: ...

    def advance(self, count: int) -> None: ...

    def note(self, text: str) -> None: ...


class NoProgress:
    """Ignores all progress; the report of the run still has the results."""

    def begin(self, phase: str, total: int | None) -> None:
        return

    def advance(self, count: int) -> None:
        return

    def note(self, text: str) -> None:
        return
