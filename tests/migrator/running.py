"""Runs the migrator the way the command does, in this process or as the command itself."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

from instar.client.client import Client
from instar.migrator.journal import Journal
from instar.migrator.migration import Options, migrate
from instar.migrator.plan import Plan
from instar.migrator.preflight import find_out, read_crd_subject
from instar.migrator.report import Report
from instar.migrator.retrying import Patience
from instar.migrator.subject import USER_AGENT
from tests.migrator.support import client, name_of
from tests.support.server import LiveServer

Object = dict[str, Any]
QUICK = Patience(attempts=4, first_delay=0.01, longest_delay=0.05)


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
    subject = await read_crd_subject(api, name_of(definition))
    facts = await find_out(api, subject, via_status=False)
    return Plan(subject, facts, 8, 0, forced)


def migrated(
    server: LiveServer,
    definition: Object,
    *,
    journal: Journal | None = None,
    forced: bool = False,
    **options: Any,
) -> Report:
    async def work() -> Report:
        async with client(server, user_agent=USER_AGENT) as api:
            plan = await plan_for(api, definition, forced=forced)
            chosen = Options(**{"patience": QUICK, **options})
            return await migrate(api, plan, chosen, journal or Journal(), Silent())

    return asyncio.run(work())


def command(server: LiveServer, *words: str, state: Any = None) -> list[str]:
    return [sys.executable, "-m", "instar", *words, "--kubeconfig", str(server.kubeconfig)]


def instar(server: LiveServer, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(server, *words),
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )
