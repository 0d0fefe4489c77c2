"""``instar migrate``: rewrites the stored objects of one CRD, or of all CRDs, at the storage
version.

A run plans, rewrites, verifies and then trims ``status.storedVersions``; ``--undo`` restores the
objects of an earlier run. ``tools/migrator`` does the work; ``cli/shared/migrate_undo.py`` has
``--undo``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from instar.base.plurals import counted
from instar.cli.shared.cluster_flags import read_crds, user_and_host, with_client
from instar.cli.shared.common_flags import (
    add_cluster_arguments,
    add_output_argument,
)
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.migrate_undo import undo_migration
from instar.cli.shared.progress_bar import progress_for
from instar.tools.migrator.census.references import dependents, repoint
from instar.tools.migrator.live_crd import USER_AGENT, LiveCrd, read_live_crd
from instar.tools.migrator.migration import MigrationOptions, migrate
from instar.tools.migrator.outcomes import DONE, Fate
from instar.tools.migrator.plan import Plan
from instar.tools.migrator.preflight import run_preflight
from instar.tools.migrator.progress_file import (
    JournalBusy,
    ProgressFile,
    ProgressFileError,
    default_path,
)
from instar.tools.migrator.propagation_delay import SETTLE, seconds_to_settle
from instar.tools.migrator.report import MigrationReport
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.migrator.rewrite_checks.admission_rules import may_be_mutated
from instar.tools.migrator.rewrite_checks.change_scan import scan_rewrites
from instar.tools.migrator.rewrite_checks.pass_record import save_record
from instar.tools.migrator.rewrite_checks.rewrite_checker import RewriteChecker
from instar.tools.migrator.undo.journal import (
    DEFAULT_LIMIT,
    UndoJournal,
    UndoJournalError,
    journal_path,
)
from instar.wire.client.client import Client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("crd", nargs="*", metavar="CRD", help="for example widgets.example.com")
    add("--all", action="store_true", help="every CRD that may have objects at old versions")
    add_cluster_arguments(parser)
    add(
        "--plan",
        action="store_true",
        help="say what would be done and which fields a rewrite would change, and stop",
    )
    add(
        "--undo",
        type=Path,
        metavar="JOURNAL",
        help="put every object back as the undo journal of a run has it",
    )
    add("--dry-run", action="store_true", help="try every object on the server, write none of them")
    add("--concurrency", type=int, default=16, metavar="N", help="objects at a time")
    add("--page", type=int, default=500, metavar="N", help="objects per list request")
    add(
        "--via-status",
        action="store_true",
        help="write through /status, where other admission webhooks apply",
    )
    add(
        "--clean-managed-fields",
        action="store_true",
        help="carry ownership entries of versions that are deprecated or not served over to the "
        "storage version",
    )
    add(
        "--owner-references",
        action="store_true",
        help="also make owner references of other objects, of every kind, name the storage "
        "version instead of versions that are deprecated, not served or gone",
    )
    add("--rewrite-current", action="store_true", help="even if no object is at another version")
    add(
        "--trust-stored-versions",
        action="store_true",
        help="do nothing if status.storedVersions names the storage version alone; any client can "
        "patch it, so it proves nothing",
    )
    add("--no-verify", action="store_true", help="do not compare contents before and after")
    add(
        "--keep-going",
        action="store_true",
        help="continue even when a rewrite changed an object's content",
    )
    add("--retries", type=int, default=5, metavar="N", help="retries per request, with back-off")
    add(
        "--settle",
        type=float,
        default=SETTLE,
        metavar="SECONDS",
        help="seconds to wait after the CRD's last change, for all API servers (not on instar)",
    )
    add(
        "--accept",
        action="append",
        default=[],
        metavar="[NAMESPACE/]NAME",
        help="let a rewrite change this object, or take its changed content for the right one",
    )
    add(
        "--accept-change",
        action="append",
        default=[],
        metavar="PATH",
        help="let a rewrite change or drop this field, for example spec.legacy; may be repeated",
    )
    add(
        "--forget",
        action="append",
        default=[],
        metavar="[NAMESPACE/]NAME",
        help="discard what earlier runs recorded of this object",
    )
    add("--progress", type=Path, metavar="FILE", help="where to note how far it got")
    add(
        "--journal-limit",
        type=int,
        default=DEFAULT_LIMIT >> 20,
        metavar="MIB",
        help="stop before the undo journal, which lies beside the progress file, is larger",
    )
    add("--report", type=Path, metavar="FILE", help="write a JSON report")
    add_output_argument(parser, ("text", "json"))


def run(args: argparse.Namespace) -> int:
    if args.undo is not None:
        if args.crd or args.all:
            raise CliFailure("--undo takes the CRD from the journal; name none", code=2)
        return with_client(args, lambda client: undo_migration(args, client), user_agent=USER_AGENT)
    if bool(args.crd) == args.all:
        raise CliFailure("name the CRDs, or pass --all", code=2)
    if args.concurrency < 1 or args.page < 1 or args.retries < 0:
        raise CliFailure("--concurrency and --page must be at least 1", code=2)
    if args.progress and (args.all or len(args.crd) > 1):
        raise CliFailure("--progress is for one CRD; several get a file each", code=2)
    if (args.accept or args.forget) and (args.all or len(args.crd) > 1):
        raise CliFailure("--accept and --forget are for the objects of one CRD", code=2)
    documents = with_client(args, lambda client: _migrate_all(args, client), user_agent=USER_AGENT)
    if args.report is not None:
        args.report.write_text(json.dumps(documents, indent=2) + "\n", encoding="utf-8")
    if args.output == "json":
        print(json.dumps(documents, indent=2))
    return 0 if all(document["ok"] for document in documents) else 1


async def _migrate_all(args: argparse.Namespace, client: Client) -> list[dict[str, Any]]:
    documents = []
    for raw in await read_crds(client, args.crd):
        live = read_live_crd(raw)
        forced = args.rewrite_current or args.clean_managed_fields or args.owner_references
        trusted = args.trust_stored_versions and not live.old_versions
        if args.all and (not live.crd.served() or (trusted and not forced)):
            continue
        document = await _migrate_one(args, client, raw)
        if document is not None:
            documents.append(document)
    if args.all and not documents and args.output == "text":
        print("nothing to do: no CRD has objects at old versions")
    return documents


async def _migrate_one(
    args: argparse.Namespace, client: Client, raw: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the report; None for a CRD of ``--all`` without objects at other versions."""
    live = read_live_crd(raw)
    if not live.crd.served():
        raise CliFailure(f"{live.name}: no version is served, so no object can be read")
    facts = await run_preflight(
        client,
        live,
        via_status=args.via_status,
        dry_run=args.dry_run,
        concurrency=args.concurrency,
    )
    settle = 0.0 if facts.is_instar or args.dry_run else args.settle
    plan = Plan(
        live,
        facts,
        args.concurrency,
        args.qps,
        forced=args.rewrite_current or args.clean_managed_fields,
        settle=seconds_to_settle(live, settle, datetime.now(UTC)),
        verify=not (args.no_verify or args.dry_run),
        trusting=args.trust_stored_versions,
        accepted=tuple(args.accept_change),
    )
    if args.all and not plan.needed and not args.owner_references:
        return None
    _print_lines(args, plan.lines())
    document = await _plan_or_run(args, client, plan)
    if args.owner_references and not plan.obstacles:
        await _repoint_references(args, client, live, document)
    return document


async def _plan_or_run(args: argparse.Namespace, client: Client, plan: Plan) -> dict[str, Any]:
    if not plan.needed or plan.obstacles:
        return {"plan": plan.to_json(), "ok": not plan.obstacles}
    if args.plan:
        return await _scan_changes(args, client, plan)
    report = await _run(args, client, plan)
    _print_lines(args, report.lines())
    return report.to_json()


async def _scan_changes(args: argparse.Namespace, client: Client, plan: Plan) -> dict[str, Any]:
    """Prove the rewrite of every object, and report what it would change."""
    options = _options(args, ())
    checker = RewriteChecker(
        client,
        plan.live,
        options.patience,
        accepted=options.accept_changes,
        accepted_keys=tuple(args.accept),
        concurrency=args.concurrency,
        admission=await may_be_mutated(client, plan.live),
    )
    with progress_for("migrate", args.output == "text") as progress:
        scan = await scan_rewrites(
            client, plan.live, checker, options.patience, progress, page=args.page
        )
    _print_lines(args, [f"  {line}" for line in scan.lines(plan.live.storage)])
    ok = not (scan.changing or scan.unknown or scan.stopped)
    return {"plan": {**plan.to_json(), "rewrites": scan.to_json()}, "ok": ok}


async def _repoint_references(
    args: argparse.Namespace, client: Client, live: LiveCrd, document: dict[str, Any]
) -> None:
    """Find owner references at versions that will be removed, and change them unless planning."""
    found = await dependents(client, live, live.leaving)
    lines = [f"  owner references at leaving versions: {len(found.found)}"]
    document["ownerReferences"] = {"found": [str(item) for item in found.found]}
    document["ownerReferences"]["unseen"] = found.unseen
    lines += [f"  not looked at: {kind}: {why}" for kind, why in sorted(found.unseen.items())]
    if not (args.plan or args.dry_run):
        patience = RetryPolicy(attempts=args.retries + 1)
        done = await repoint(client, live, live.leaving, found.found, patience)
        document["ownerReferences"] |= {"changed": done.changed, "failed": done.failed}
        document["ok"] = document["ok"] and not done.failed
        lines.append(f"  now naming {live.write_version}: {done.changed}")
        lines += [f"  {name}: {why}" for name, why in sorted(done.failed.items())]
    _print_lines(args, lines)


async def _run(args: argparse.Namespace, client: Client, plan: Plan) -> MigrationReport:
    path = args.progress or default_path(plan.live.name, plan.facts.server)
    undo: UndoJournal | None = None
    try:
        journal = ProgressFile(":memory:" if args.dry_run else path)
        if not args.dry_run:
            undo = UndoJournal(journal_path(path), limit=args.journal_limit << 20)
    except JournalBusy as error:
        raise CliFailure(f"{error}; wait for it, or give --progress another file") from None
    except (OSError, sqlite3.Error, UndoJournalError) as error:
        raise CliFailure(f"{path}: {error}; give --progress a file that can be written") from None
    finished = False
    try:
        options = _options(args, _decide(args, journal))
        with progress_for("migrate", args.output == "text") as progress:
            report = await migrate(client, plan, options, journal, progress, undo)
        finished = report.ok
        if finished and not args.dry_run:
            _save_pass_record(report)
    except ProgressFileError as error:
        raise CliFailure(str(error)) from None
    except asyncio.CancelledError:
        print(f"instar migrate: {_interrupted(journal)}", file=sys.stderr, flush=True)
        raise
    finally:
        journal.close(remove=finished)
        if undo is not None:
            undo.close()
    return report


def _save_pass_record(report: MigrationReport) -> None:
    """Save the record of the pass, as evidence for ``instar versions`` and ``instar census``."""
    try:
        save_record(report.pass_record())
    except OSError as error:
        print(f"instar migrate: the record of the pass: {error}", file=sys.stderr)


def _decide(args: argparse.Namespace, journal: ProgressFile) -> tuple[str, ...]:
    """Apply the user's decisions about single objects; return the objects that may change."""
    accepted = []
    for key in args.accept:
        known = journal.line(key)
        if known is not None and known.fate is Fate.REFUSED:
            accepted.append(key)
        if not journal.accept(key):
            why = "is not known" if known is None else f"is {known.fate}, so there is nothing new"
            raise CliFailure(f"--accept: {key} {why} to accept in {journal.path}")
    for key in args.forget:
        if not journal.forget(key):
            raise CliFailure(f"--forget: {key} is not known in {journal.path}")
    return tuple(accepted)


def _interrupted(journal: ProgressFile) -> str:
    counts = journal.counts()
    done = sum(count for fate, count in counts.items() if fate in DONE)
    return (
        f"interrupted after {counted(done, 'object')}; storedVersions was not changed; run the "
        f"same command again to go on ({journal.path})"
    )


def _options(args: argparse.Namespace, accepted_keys: tuple[str, ...]) -> MigrationOptions:
    return MigrationOptions(
        concurrency=args.concurrency,
        page=args.page,
        verify=not args.no_verify,
        dry_run=args.dry_run,
        via_status=args.via_status,
        clean_managed_fields=args.clean_managed_fields,
        keep_going=args.keep_going,
        accept_changes=tuple(args.accept_change),
        accept_keys=accepted_keys,
        patience=RetryPolicy(attempts=args.retries + 1),
        who=user_and_host(),
    )


def _print_lines(args: argparse.Namespace, lines: list[str]) -> None:
    if args.output == "text":
        print("\n".join(lines), flush=True)
