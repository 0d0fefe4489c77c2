"""Runs the migration of one CRD: mark the CRD, rewrite, verify, trim storedVersions, report.

Called by ``instar migrate``, ``instar upgrade``, ``instar rehearse`` and the console, which open
the progress file and the undo journal.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import field
from itertools import islice

from instar.base.errors import ApiError
from instar.base.escaping import shell_word
from instar.base.fast_dataclass import dataclass
from instar.base.plurals import counted
from instar.tools.migrator.census.version_census import exact_census
from instar.tools.migrator.crd_status import CrdStatus
from instar.tools.migrator.object_pages import Lister, Unlistable
from instar.tools.migrator.object_writer import StorageVersionRewriter
from instar.tools.migrator.outcomes import Commands, Fate, Quarantined, suggestion
from instar.tools.migrator.plan import Plan
from instar.tools.migrator.progress import Progress
from instar.tools.migrator.progress_file import ProgressFile, ProgressFileError
from instar.tools.migrator.propagation_delay import waiting_text
from instar.tools.migrator.report import MigrationReport
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.migrator.rewrite_checks.admission_rules import may_be_mutated
from instar.tools.migrator.rewrite_checks.rewrite_checker import RewriteChecker
from instar.tools.migrator.rewrite_pass import RewritePass, Safeguards, Stopped
from instar.tools.migrator.undo.journal import JournalSubject, UndoJournal, UndoJournalError
from instar.tools.migrator.undo.put_back import ObjectRestorer
from instar.tools.migrator.verify import Proof
from instar.wire.client.client import Client

MOST_QUARANTINED = 1000
"""A report names so many objects; the others are in the progress file."""


@dataclass(frozen=True, slots=True)
class MigrationOptions:
    """What the flags of ``instar migrate`` choose."""

    concurrency: int = 16
    page: int = 500
    verify: bool = True
    dry_run: bool = False
    via_status: bool = False
    clean_managed_fields: bool = False
    leaving: tuple[str, ...] = ()
    """More versions whose ownership entries are carried over."""
    keep_going: bool = False
    prove: bool = True
    """Compute or try before each write what it would change. A rehearsal works on a copy."""
    accept_changes: tuple[str, ...] = ()
    """Paths whose change by a rewrite the user accepts."""
    accept_keys: tuple[str, ...] = ()
    """Objects whose change by a rewrite the user accepts."""
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    who: str = "unknown"
    """User and host of the run, for the condition of the CRD."""


async def migrate(
    client: Client,
    plan: Plan,
    options: MigrationOptions,
    journal: ProgressFile,
    progress: Progress,
    undo: UndoJournal | None = None,
) -> MigrationReport:
    """Run a plan that has no obstacles. Errors of single objects are in the report, not raised.

    ``undo`` keeps objects as they were before their write; None on copies and in dry runs.
    """
    began = time.monotonic()
    report = MigrationReport(plan, dry_run=options.dry_run, progress_file=journal.path)
    report.resumed = journal.begin(_identity(plan, options))
    if undo is not None:
        crd = plan.live.crd
        try:
            undo.begin(JournalSubject(plan.facts.server, crd.name, crd.uid), resumed=report.resumed)
        except UndoJournalError as error:
            report.stopped = str(error)
            return report
        report.undo_journal = undo.path
    if report.resumed and options.dry_run:
        journal.forget_position()
    status = CrdStatus(client, plan.live, options.patience, options.who)
    if not options.dry_run:
        other = await status.begin()
        if other and not report.resumed:
            progress.note(f"note: {other}; running twice does no harm")
    try:
        await _rewrite_and_verify(client, plan, options, journal, progress, undo, report, status)
    except (Stopped, ProgressFileError) as stopped:
        report.stopped = str(stopped)
    except asyncio.CancelledError:
        # Ctrl-C: the condition of the CRD must not say that this still runs.
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


async def _rewrite_and_verify(
    client: Client,
    plan: Plan,
    options: MigrationOptions,
    journal: ProgressFile,
    progress: Progress,
    undo: UndoJournal | None,
    report: MigrationReport,
    status: CrdStatus,
) -> None:
    """Rewrite and verify all objects. Raises ``Stopped`` if the run cannot continue now."""
    live, verify = plan.live, options.verify and not options.dry_run
    lister = Lister(
        client,
        live,
        options.patience,
        limit=options.page,
        verify=verify or options.prove,
        leaving=[*options.leaving, *(live.leaving if options.clean_managed_fields else ())],
    )
    checker = RewriteChecker(
        client,
        live,
        options.patience,
        accepted=options.accept_changes,
        accepted_keys=options.accept_keys,
        concurrency=options.concurrency,
        admission=options.prove and await may_be_mutated(client, live),
    )
    writer = StorageVersionRewriter(
        client,
        live,
        options.patience,
        lister,
        checker,
        dry_run=options.dry_run,
        via_status=options.via_status,
    )
    restorer = None if undo is None else ObjectRestorer(client, live, options.patience, undo)
    rewriting = RewritePass(
        lister,
        writer,
        journal,
        progress,
        options.patience,
        Safeguards(
            checker,
            prove=options.prove,
            undo=undo,
            restorer=restorer,
            compare=verify,
            why_changed=None if options.dry_run else status.why_changed,
        ),
        concurrency=options.concurrency,
        keep_going=options.keep_going or options.dry_run,
        try_first=verify,
    )
    report.changes, report.put_back = checker.tally, rewriting.result.put_back
    if not options.dry_run:
        await _take_effect(plan, lister, journal, progress)
    try:
        await rewriting.run()
    finally:
        passed = rewriting.result
        report.unreadable = {key: error.message for key, error in passed.unreadable.items()}
        report.restored = passed.restored
    if not options.dry_run:
        proof = Proof(lister, journal, rewriting, compare=options.verify)
        report.verification = await proof.verify_objects(progress)
        report.revision = journal.effective


async def _take_effect(
    plan: Plan, lister: Lister, journal: ProgressFile, progress: Progress
) -> None:
    """Wait until every API server writes the storage version, and record the revision.

    A run that goes on does not wait again, but notes the present revision: what was written to the
    store between the runs is looked at again.
    """
    if plan.settle > 0 and not journal.effective:
        progress.note(waiting_text(plan.settle))
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
    """Return why storedVersions must not be trimmed, by the outcome of the run."""
    if report.stopped:
        return "the run was stopped"
    if report.counts.get(Fate.PENDING) or report.counts.get(Fate.DEFERRED):
        return "not every object was tried"
    refused = report.counts.get(Fate.REFUSED, 0)
    if refused:
        return f"a rewrite would change {counted(refused, 'object')}"
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
    """Return how many objects an instar server counts at other versions."""
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
    resource = shell_word(f"{crd.names.plural}.{crd.group}")
    about = f"{resource} {shell_word(name)}"
    if namespace:
        about += f" -n {shell_word(namespace)}"
    return Commands(
        edit=f"kubectl edit {about}",
        delete=f"kubectl delete {about}",
        namespace=f"kubectl create namespace {shell_word(namespace)}",
        accept=f"instar migrate {shell_word(crd.name)} --accept {shell_word(key)}",
        key=f"{crd.group}/{crd.names.plural}/{key}",
    )


def _identity(plan: Plan, options: MigrationOptions) -> str:
    """Return the identity of a progress file: one CRD in one state on one server."""
    crd = plan.live.crd
    mode = ("dry" if options.dry_run else "") + ("clean" if options.clean_managed_fields else "")
    mode += " ".join(options.leaving)
    return f"{plan.facts.server} {crd.name} {crd.uid} {crd.generation} {mode}"
