"""One CRD's migration from beginning to end: mark, rewrite, verify, trim, report."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

from instar.client.client import Client
from instar.errors import ApiError
from instar.migrator.census import exact_census
from instar.migrator.crd_status import CrdStatus
from instar.migrator.journal import Journal
from instar.migrator.outcomes import Fate, Quarantined, suggestion
from instar.migrator.pages import Lister
from instar.migrator.plan import Plan, objects
from instar.migrator.progress import Progress
from instar.migrator.report import MigrationReport
from instar.migrator.retrying import Patience
from instar.migrator.run import RewritePass, Stopped
from instar.migrator.verify import verify
from instar.migrator.writer import NoopWriter

MOST_QUARANTINED = 1000
"""A report names so many objects; the progress file knows the others."""


@dataclass(frozen=True, slots=True)
class Options:
    concurrency: int = 16
    page: int = 500
    verify: bool = True
    dry_run: bool = False
    via_status: bool = False
    clean_managed_fields: bool = False
    keep_going: bool = False
    patience: Patience = field(default_factory=Patience)
    settle: float = 0.0
    """Seconds to let pass since the CRD's last change: every API server must have seen it."""
    who: str = "somebody"


async def migrate(
    client: Client, plan: Plan, options: Options, journal: Journal, progress: Progress
) -> MigrationReport:
    """The plan has no obstacles. Never raises for what happens to objects."""
    began = time.monotonic()
    report = MigrationReport(plan, dry_run=options.dry_run)
    live = plan.live
    report.resumed = journal.begin(_identity(plan, options))
    if report.resumed and options.dry_run:
        journal.forget_position()
    status = CrdStatus(client, live, options.patience, options.who)
    lister = Lister(
        client,
        live,
        options.patience,
        limit=options.page,
        verify=options.verify and not options.dry_run,
        clean_managed_fields=options.clean_managed_fields,
    )
    writer = NoopWriter(
        client,
        live,
        options.patience,
        dry_run=options.dry_run,
        via_status=options.via_status,
    )
    rewriting = RewritePass(
        lister,
        writer,
        journal,
        progress,
        concurrency=options.concurrency,
        keep_going=options.keep_going or options.dry_run,
        try_first=options.verify and not options.dry_run,
    )
    if not options.dry_run:
        other = await status.begin()
        if other and not report.resumed:
            progress.note(f"note: {other}; running twice does no harm")
        await _settled(plan, options)
    try:
        passed = await rewriting.run()
        report.unreadable = {key: error.message for key, error in passed.unreadable.items()}
        if options.verify and not options.dry_run:
            checker = Lister(client, live, options.patience, limit=options.page)
            report.verification = await verify(checker, journal, progress)
    except Stopped as stopped:
        report.stopped = str(stopped)
    except asyncio.CancelledError:
        # Ctrl-C: nobody else should believe that this still runs.
        if not options.dry_run:
            with suppress(ApiError):
                await status.end(prune=False, message="the run was interrupted")
        raise
    report.counts = journal.counts()
    report.quarantine = _quarantine(plan, journal)
    if not options.dry_run:
        await _finish(client, plan, status, report)
    report.seconds = time.monotonic() - began
    return report


async def _settled(plan: Plan, options: Options) -> None:
    changed = plan.live.changed
    if plan.facts.is_instar or changed is None:
        return
    left = options.settle - (datetime.now(UTC) - changed).total_seconds()
    if left > 0:
        await asyncio.sleep(left)


async def _finish(client: Client, plan: Plan, status: CrdStatus, report: MigrationReport) -> None:
    try:
        refusal = _refusal(report) or await _left_behind(client, plan)
        report.not_pruned = await status.end(prune=not refusal, message=refusal)
    except ApiError as error:
        report.not_pruned = f"the CRD's status could not be written: {error.message}"
    report.pruned = not report.not_pruned


def _refusal(report: MigrationReport) -> str:
    """Why nothing may be trimmed, going by the run itself."""
    if report.stopped:
        return "the run was stopped"
    if report.counts.get(Fate.PENDING):
        return "not every object was tried"
    differing = report.counts.get(Fate.DIFFERS, 0)
    if differing:
        return f"the content of {objects(differing)} changed"
    failed = report.counts.get(Fate.FAILED, 0)
    if failed:
        return f"{objects(failed)} could not be rewritten"
    if report.verification is not None and report.verification.incomplete:
        return "the verification is incomplete"
    return ""


async def _left_behind(client: Client, plan: Plan) -> str:
    """Where the server can count, it has the last word."""
    if not plan.facts.is_instar:
        return ""
    census = await exact_census(client)
    storage = plan.live.storage
    found = None if census is None else census.get(plan.live.name)
    left = 0 if found is None else found.stale(storage)
    return f"not at {storage} but elsewhere: {objects(left)}" if left else ""


def _quarantine(plan: Plan, journal: Journal) -> list[Quarantined]:
    found = []
    resource = f"{plan.live.crd.names.plural}.{plan.live.crd.group}"
    for line in islice(journal.troubled(), MOST_QUARANTINED):
        namespace, _, name = line.key.rpartition("/")
        command = f"kubectl edit {resource} {name}" + (f" -n {namespace}" if namespace else "")
        fix = suggestion(line.reason, line.message, command)
        found.append(Quarantined(line.key, line.reason, line.message, fix))
    return found


def _identity(plan: Plan, options: Options) -> str:
    """A progress file belongs to one CRD in one state on one server."""
    crd = plan.live.crd
    mode = ("dry" if options.dry_run else "") + ("clean" if options.clean_managed_fields else "")
    return f"{plan.facts.server} {crd.name} {crd.uid} {crd.generation} {mode}"
