"""Runs the migration of a step: the migrator itself, with the sandbox in place of a cluster.

``batch.py`` and ``faults.py`` call it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from instar.base.errors import ApiError
from instar.tools.migrator.live_crd import LiveCrd, read_live_crd
from instar.tools.migrator.migration import MigrationOptions, migrate
from instar.tools.migrator.plan import Facts, Plan
from instar.tools.migrator.progress import NoProgress
from instar.tools.migrator.progress_file import ProgressFile
from instar.tools.migrator.report import MigrationReport
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.redacting import is_secret, last_name
from instar.tools.rehearsal.model import MOST_EXAMPLES, MigrationOutcome
from instar.tools.rehearsal.sandbox import Sandbox, SandboxSender

_PATIENCE = RetryPolicy(attempts=2, first_delay=0.05, longest_delay=0.1)
_PAGE = 500


async def run_migration(
    stage: Sandbox, leaving: Sequence[str] = (), sender: SandboxSender | None = None
) -> MigrationReport:
    live = read_live_crd(await stage.refresh())
    options = MigrationOptions(
        concurrency=16,
        page=_PAGE,
        clean_managed_fields=True,
        leaving=tuple(leaving),
        keep_going=True,
        prove=False,
        patience=_PATIENCE,
        who="instar rehearse",
    )
    journal = ProgressFile()
    try:
        async with stage.client(sender) as client:
            plan = _plan(live, len(stage.keys))
            return await migrate(client, plan, options, journal, NoProgress())
    finally:
        journal.close()
        await stage.refresh()


async def killed_migration(stage: Sandbox, after: int) -> None:
    """Run a migration that stops after so many writes, as if its process was killed."""
    sender = SandboxSender(stage.api)
    sender.dead_after = after
    task = asyncio.create_task(run_migration(stage, sender=sender))
    death = asyncio.create_task(sender.died.wait())
    await asyncio.wait((task, death), return_when=asyncio.FIRST_COMPLETED)
    for each in (task, death):
        each.cancel()
        with suppress(asyncio.CancelledError, ApiError):
            await each


def outcome(report: MigrationReport, versions: int) -> MigrationOutcome:
    """Summarise a migration report for the rehearsal: trouble, and an estimate of requests."""
    trouble = [
        f"{item.key}: {item.reason}: {_redact_message(item.message)}" for item in report.quarantine
    ]
    if report.stopped:
        trouble.insert(0, report.stopped)
    if report.not_pruned and not trouble:
        trouble.append(report.not_pruned)
    pages = -(-report.total // _PAGE) * versions * 2
    return MigrationOutcome(
        counts=Counter({fate.value: number for fate, number in report.counts.items()}),
        trouble=trouble[:MOST_EXAMPLES],
        trimmed=report.pruned or not report.plan.needed,
        seconds=report.seconds,
        pages=pages,
    )


def _redact_message(message: str) -> str:
    """Return the message, without values that may be secret."""
    places = [word.rstrip(":") for word in message.split() if word.endswith(":")]
    secret = any(is_secret(last_name(place)) for place in places)
    return f"{message.partition(':')[0]} (redacted)" if secret else message


def _plan(live: LiveCrd, number: int) -> Plan:
    """Return a plan without permission checks or waiting: the copy belongs to the rehearsal."""
    facts = Facts(
        server="the rehearsal's copy",
        is_instar=False,
        objects=number,
        census=None,
        missing_permissions=(),
        version_trouble={},
        warnings=(),
        seconds_per_write=None,
    )
    return Plan(live, facts, concurrency=16, qps=0, forced=False)
