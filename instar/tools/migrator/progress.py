"""Who watches a run."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A progress bar, a log, nobody."""

    def begin(self, phase: str, total: int | None) -> None: ...

    def advance(self, count: int) -> None: ...

    def note(self, text: str) -> None: ...


class Nobody:
    """Nobody watches: what is to be said is in the report."""

    def begin(self, phase: str, total: int | None) -> None:
        return

    def advance(self, count: int) -> None:
        return

    def note(self, text: str) -> None:
        return
