"""Runs the migrator the way the command does, in this process or as the command itself."""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from instar.base.json_values import Object
from instar.cli.main import main
from instar.tools.migrator.live_crd import USER_AGENT
from instar.tools.migrator.migration import MigrationOptions, migrate
from instar.tools.migrator.plan import Plan
from instar.tools.migrator.preflight import fetch_crd, run_preflight
from instar.tools.migrator.progress_file import ProgressFile
from instar.tools.migrator.report import MigrationReport
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.migrator.undo.journal import UndoJournal
from instar.wire.client.client import Client
from tests.migrator.support import client, name_of
from tests.support.server import LiveServer

QUICK = RetryPolicy(attempts=4, first_delay=0.01, longest_delay=0.05)


class Silent:
    """A progress that only remembers."""

    def __init__(self) -> None:
        self.advanced = 0
        self.notes: list[str] = []

    def begin(self, phase: str, total: int | None) -> None:
        self.phase = phase

    def advance(self, count: int) -> None:
        self.advanced += count

    def note(self, text: str) -> None:
        self.notes.append(text)


async def plan_for(api: Client, definition: Object, *, forced: bool = False) -> Plan:
    live = await fetch_crd(api, name_of(definition))
    facts = await run_preflight(api, live, via_status=False)
    return Plan(live, facts, 8, 0, forced)


async def migrate_now(
    server: LiveServer,
    definition: Object,
    *,
    journal: ProgressFile | None = None,
    progress: Silent | None = None,
    forced: bool = False,
    undo: UndoJournal | None = None,
    planned: Callable[[], None] = lambda: None,
    **options: Any,
) -> MigrationReport:
    """``planned`` is called between the plan and the first write."""
    async with client(server, user_agent=USER_AGENT) as api:
        plan = await plan_for(api, definition, forced=forced)
        planned()
        chosen = MigrationOptions(**{"patience": QUICK, **options})
        kept = journal or ProgressFile()
        try:
            return await migrate(api, plan, chosen, kept, progress or Silent(), undo)
        finally:
            if journal is None:
                kept.close()


def migrated(server: LiveServer, definition: Object, **options: Any) -> MigrationReport:
    return asyncio.run(migrate_now(server, definition, **options))


def command(server: LiveServer, *words: str) -> list[str]:
    return [sys.executable, "-m", "instar", *words, "--kubeconfig", str(server.kubeconfig)]


class Finished(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def instar(server: LiveServer, *words: str) -> Finished:
    """The command, in this process: most of a short command is the start of Python."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([*words, "--kubeconfig", str(server.kubeconfig)])
        except SystemExit as wrong:
            code = int(str(wrong.code))
    return Finished(code, out.getvalue(), err.getvalue())
