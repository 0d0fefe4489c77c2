"""Progress of long commands: a bar with rate and time left on a terminal, otherwise log lines only.

Used by ``instar migrate`` and ``instar snapshot``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from instar.tools.migrator.progress import Progress


@contextmanager
def progress_for(command: str, people: bool = True) -> Iterator[Progress]:
    """Return the progress display. ``people``: the output is for a person, not for a program."""
    if people and sys.stderr.isatty():
        with _bar() as bar:
            yield bar
    else:
        yield _Quiet(command)


class _Quiet:
    def __init__(self, command: str) -> None:
        self._command = command

    def begin(self, phase: str, total: int | None) -> None:
        return

    def advance(self, count: int) -> None:
        return

    def note(self, text: str) -> None:
        print(f"instar {self._command}: {text}", file=sys.stderr, flush=True)


@contextmanager
def _bar() -> Iterator[Progress]:
    rate = TextColumn("{task.fields[rate]}")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        rate,
        TimeRemainingColumn(),
    )

    class Bar:
        def __init__(self, shown: RichProgress) -> None:
            self._shown = shown
            self._task = shown.add_task("listing", total=None, rate="")

        def begin(self, phase: str, total: int | None) -> None:
            self._shown.remove_task(self._task)
            self._task = self._shown.add_task(phase, total=total, rate="")

        def advance(self, count: int) -> None:
            self._shown.advance(self._task, count)
            speed = self._shown.tasks[0].speed
            self._shown.update(self._task, rate=f"{speed:.0f}/s" if speed else "")

        def note(self, text: str) -> None:
            self._shown.console.print(text, highlight=False)

    with RichProgress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield Bar(shown)
