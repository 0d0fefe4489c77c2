"""One CRD's migration from beginning to end: mark, rewrite, verify, trim, report."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import field
from itertools import islice

from instar.base.errors import ApiError
from instar.base.fast_dataclass import dataclass
from instar.base.plurals import counted
from instar.tools.migrator.census.version_census import exact_census
from instar.tools.migrator.crd_status import CrdStatus
from instar.tools.migrator.object_pages import Lister, Unlistable
from instar.tools.migrator.object_writer import NoopWriter
from instar.tools.migrator.outcomes import Commands, Fate, Quarantined, suggestion
from instar.tools.migrator.plan import Plan
from instar.tools.migrator.progress import Progress
from instar.tools.migrator.progress_file import ProgressFile
from instar.tools.migrator.report import MigrationReport
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.migrator.rewrite_pass import RewritePass, Stopped
from instar.tools.migrator.verify import Proof
from instar.wire.client.client import Client

MOST_QUARANTINED = 1000
"""A report names so many objects; the progress file knows the others."""


@dataclass(frozen=True, slots=True)
class MigrationOptions:
    concurrency: int = 16
    page: int = 500
    verify: bool = True
    dry_run: bool = False
    via_status: bool = False
    clean_managed_fields: bool = False
    leaving: tuple[str, ...] = ()
    """More versions whose ownership entries are carried over."""
    keep_going: bool = False
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    who: str = "somebody"


async def migrate(
    client: Client, plan: Plan, options: MigrationOptions, journal: ProgressFile, progress: Progress
) -> MigrationReport:
    """The plan has no obstacles. Never raises for what happens to objects."""
    began = time.monotonic()
    report = MigrationReport(plan, dry_run=options.dry_run, progress_file=journal.path)
    report.resumed = journal.begin(_identity(plan, options))
    if report.resumed and options.dry_run:
        journal.forget_position()
    status = CrdStatus(client, plan.live, options.patience, options.who)
    if not options.dry_run:
        other = await status.begin()
        if other and not report.resumed:
            progress.note(f"note: {other}; running twice does no harm")
    try:
        await _rewrite_and_prove(client, plan, options, journal, progress, report)
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


async def _rewrite_and_prove(
    client: Client,
    plan: Plan,
    options: MigrationOptions,
    journal: ProgressFile,
    progress: Progress,
    report: MigrationReport,
) -> None:
    """Raises ``Stopped`` where going on makes no sense now."""
    live, verify = plan.live, options.verify and not options.dry_run
    lister = Lister(
        client,
        live,
        options.patience,
        limit=options.page,
        verify=verify,
        leaving=[*options.leaving, *(live.leaving if options.clean_managed_fields else ())],
    )
    writer = NoopWriter(
        client,
        live,
        options.patience,
        lister,
        dry_run=options.dry_run,
        via_status=options.via_status,
    )
    rewriting = RewritePass(
        lister,
        writer,
        journal,
        progress,
        options.patience,
        concurrency=options.concurrency,
        keep_going=options.keep_going or options.dry_run,
        try_first=verify,
    )
    if not options.dry_run:
        await _take_effect(plan, lister, journal, progress)
    passed = await rewriting.run()
    report.unreadable = {key: error.message for key, error in passed.unreadable.items()}
    report.restored = passed.restored
    if not options.dry_run:
        proof = Proof(lister, journal, writer.rewrite, compare=options.verify)
        report.verification = await proof.look(progress)


async def _take_effect(
    plan: Plan, lister: Lister, journal: ProgressFile, progress: Progress
) -> None:
    """Wait until every API server writes the storage version, and note from where on it does."""
    if journal.effective:
        return
    if plan.settle > 0:
        progress.note(f"waiting {plan.settle:g} s for every API server to know the CRD (--settle)")
        await asyncio.sleep(plan.settle)
    try:
        journal.note_effective(await lister.revision())
    except (ApiError, Unlistable) as error:
        raise Stopped(f"the objects cannot be listed: {error}") from error


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
    if report.counts.get(Fate.PENDING) or report.counts.get(Fate.DEFERRED):
        return "not every object was tried"
    differing = report.counts.get(Fate.DIFFERS, 0)
    if differing:
        return f"the content of {counted(differing, 'object')} changed"
    failed = report.counts.get(Fate.FAILED, 0)
    if failed:
        return f"{counted(failed, 'object')} could not be rewritten"
    if report.verification is None or report.verification.incomplete:
        return "the verification is incomplete"
    unproven = report.verification.unproven
    if unproven:
        return f"nothing accounts for {counted(unproven, 'object')}"
    return ""


async def _left_behind(client: Client, plan: Plan) -> str:
    """Where the server can count, it has the last word."""
    if not plan.facts.is_instar:
        return ""
    census = await exact_census(client)
    storage = plan.live.storage
    found = None if census is None else census.get(plan.live.name)
    left = 0 if found is None else found.stale(storage)
    return f"not at {storage} but elsewhere: {counted(left, 'object')}" if left else ""


def _quarantine(plan: Plan, journal: ProgressFile) -> list[Quarantined]:
    return [
        Quarantined(
            line.key,
            line.reason,
            line.message,
            suggestion(line.reason, line.message, _commands(plan, line.key)),
        )
        for line in islice(journal.troubled(), MOST_QUARANTINED)
    ]


def _commands(plan: Plan, key: str) -> Commands:
    crd = plan.live.crd
    namespace, _, name = key.rpartition("/")
    about = f"{crd.names.plural}.{crd.group} {name}" + (f" -n {namespace}" if namespace else "")
    return Commands(
        edit=f"kubectl edit {about}",
        delete=f"kubectl delete {about}",
        namespace=f"kubectl create namespace {namespace}",
        accept=f"instar migrate {crd.name} --accept {key}",
    )


def _identity(plan: Plan, options: MigrationOptions) -> str:
    """A progress file belongs to one CRD in one state on one server."""
    crd = plan.live.crd
    mode = ("dry" if options.dry_run else "") + ("clean" if options.clean_managed_fields else "")
    mode += " ".join(options.leaving)
    return f"{plan.facts.server} {crd.name} {crd.uid} {crd.generation} {mode}"
