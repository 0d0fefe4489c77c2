"""Migrations run by the standalone console, for clusters without StorageVersionMigration.

``api.py`` and the migration view call it. The console uses the migrator and the progress file of
``instar migrate``, so that the console and the command can each continue a run that the other
began. On an instar server, the server's migration controller runs migrations instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from instar.base.json_values import Object
from instar.tools.migrator.migration import MigrationOptions, migrate
from instar.tools.migrator.plan import Plan
from instar.tools.migrator.progress_file import (
    JournalBusy,
    ProgressFile,
    ProgressFileError,
    default_path,
)
from instar.tools.migrator.report import MigrationReport
from instar.tools.migrator.undo.journal import UndoJournal, UndoJournalError, journal_path
from instar.wire.client.client import Client

log = logging.getLogger(__name__)
_MOST_FAILURES = 100


class LocalRun:
    """One migration run; implements ``Progress``."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._began = time.monotonic()
        self._started = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self._phase = "starting"
        self._total: int | None = plan.facts.objects
        self._done = 0
        self._said = ""
        self._report: MigrationReport | None = None
        self._trouble = ""
        self._ended: float | None = None
        self.state = "running"

    def begin(self, phase: str, total: int | None) -> None:
        self._phase, self._total, self._done = phase, total, 0
        self._began = time.monotonic()

    def advance(self, count: int) -> None:
        self._done += count

    def note(self, text: str) -> None:
        self._said = text

    def finished(self, report: MigrationReport) -> None:
        self._report = report
        self._end("succeeded" if report.ok else "failed")

    def failed(self, why: str) -> None:
        self._trouble = why
        self._end("failed")

    def paused(self) -> None:
        self._end("paused")

    def _end(self, state: str) -> None:
        self.state, self._ended = state, time.monotonic()

    def document(self) -> Object:
        seconds = max((self._ended or time.monotonic()) - self._began, 0.001)
        rate, left = self._done / seconds, self._left()
        return {
            "name": "instar console",
            "state": self.state,
            "message": self._message(),
            "started": self._started,
            "total": self._total,
            "left": left,
            **self._failures(),
            "trouble": self._trouble or None,
            "seconds": round(seconds, 3),
            "perSecond": round(rate, 3),
            "secondsLeft": None if not rate or left is None else round(left / rate, 3),
        }

    def _left(self) -> int | None:
        if self.state == "succeeded":
            return 0
        return None if self._total is None else max(self._total - self._done, 0)

    def _message(self) -> str:
        if self._report is not None:
            return "\n".join(line.strip() for line in self._report.lines())
        return self._trouble or self._said or f"{self._phase} {self.plan.live.name}"

    def _failures(self) -> dict[str, Any]:
        report = self._report
        if report is None:
            return {"failed": 0, "failures": []}
        return {
            "failed": report.troubled,
            "failures": [
                {"object": item.key, "message": f"{item.message} (fix: {item.fix})"}
                for item in report.quarantine[:_MOST_FAILURES]
            ],
        }


class LocalMigrations:
    """Runs at most one migration per CRD."""

    def __init__(self, client: Client, path: Callable[[str, str], Path] = default_path) -> None:
        self._client = client
        self._path = path
        self._runs: dict[str, LocalRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def of(self, crd: str) -> LocalRun | None:
        return self._runs.get(crd)

    def start(self, plan: Plan) -> None:
        """Start or resume a migration. The plan must have no obstacles, and no other run may be
        active.
        """
        name = plan.live.name
        run = self._runs[name] = LocalRun(plan)
        self._tasks[name] = asyncio.get_running_loop().create_task(self._work(run))

    async def pause(self, crd: str) -> None:
        """Stop a run; the progress file records the objects that were rewritten."""
        task = self._tasks.get(crd)
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def close(self) -> None:
        for name in list(self._tasks):
            await self.pause(name)

    async def _work(self, run: LocalRun) -> None:
        plan = run.plan
        try:
            journal = ProgressFile(self._path(plan.live.name, plan.facts.server))
        except JournalBusy as error:
            run.failed(f"{error}; another instar migrate works on it")
            return
        except (OSError, sqlite3.Error) as error:
            run.failed(f"the progress file cannot be written: {error}")
            return
        finished, undo = False, None
        try:
            undo = UndoJournal(journal_path(journal.path))
            options = MigrationOptions(who="instar console")
            report = await migrate(self._client, plan, options, journal, run, undo)
            run.finished(report)
            finished = report.ok
        except (UndoJournalError, ProgressFileError) as error:
            run.failed(str(error))
        except asyncio.CancelledError:
            run.paused()
            raise
        except Exception as error:
            log.exception("the migration of %s failed", plan.live.name)
            run.failed(f"{type(error).__name__}: {error}")
        finally:
            journal.close(remove=finished)
            if undo is not None:
                undo.close()
