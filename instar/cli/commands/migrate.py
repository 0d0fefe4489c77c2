"""``instar migrate``: rewrites stored objects at the storage version, for one CRD or all.

``tools/migrator`` plans, rewrites, verifies and trims storedVersions.
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
from instar.cli.shared.common_flags import add_cluster_arguments, add_output_argument
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.progress_bar import watching
from instar.tools.migrator.census.references import dependents, repoint
from instar.tools.migrator.live_crd import USER_AGENT, LiveCrd, read_live_crd
from instar.tools.migrator.migration import MigrationOptions, migrate
from instar.tools.migrator.outcomes import DONE
from instar.tools.migrator.plan import Plan
from instar.tools.migrator.preflight import find_out
from instar.tools.migrator.progress_file import JournalBusy, ProgressFile, default_path
from instar.tools.migrator.propagation_delay import SETTLE, seconds_to_settle
from instar.tools.migrator.report import MigrationReport
from instar.tools.migrator.retries import RetryPolicy
from instar.wire.client.client import Client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("crd", nargs="*", metavar="CRD", help="for example widgets.example.com")
    add("--all", action="store_true", help="every CRD with objects at old versions")
    add_cluster_arguments(parser)
    add("--plan", action="store_true", help="print what would be done, and exit")
    add("--dry-run", action="store_true", help="dry-run every object on the server, write none")
    add("--concurrency", type=int, default=16, metavar="N", help="objects rewritten concurrently")
    add("--qps", type=float, default=0, metavar="N", help="requests a second at most; 0: no limit")
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
    add(
        "--rewrite-current",
        action="store_true",
        help="rewrite even if storedVersions is clean already",
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
        help="accept the changed content of this object",
    )
    add(
        "--forget",
        action="append",
        default=[],
        metavar="[NAMESPACE/]NAME",
        help="discard what earlier runs recorded of this object",
    )
    add("--progress", type=Path, metavar="FILE", help="file that records the progress")
    add("--report", type=Path, metavar="FILE", help="write a JSON report")
    add_output_argument(parser, ("text", "json"))


def run(args: argparse.Namespace) -> int:
    if bool(args.crd) == args.all:
        raise CliFailure("name the CRDs, or pass --all", code=2)
    if args.concurrency < 1 or args.page < 1 or args.retries < 0:
        raise CliFailure("--concurrency and --page must be at least 1", code=2)
    if args.progress and (args.all or len(args.crd) > 1):
        raise CliFailure("--progress is for one CRD; several get a file each", code=2)
    if (args.accept or args.forget) and (args.all or len(args.crd) > 1):
        raise CliFailure("--accept and --forget are for the objects of one CRD", code=2)
    documents = with_client(
        args, lambda client: _migrate_all(args, client), qps=args.qps, user_agent=USER_AGENT
    )
    if args.report is not None:
        args.report.write_text(json.dumps(documents, indent=2) + "\n")
    if args.output == "json":
        print(json.dumps(documents, indent=2))
    return 0 if all(document["ok"] for document in documents) else 1


async def _migrate_all(args: argparse.Namespace, client: Client) -> list[dict[str, Any]]:
    documents = []
    for raw in await read_crds(client, args.crd):
        live = read_live_crd(raw)
        forced = args.rewrite_current or args.clean_managed_fields or args.owner_references
        if args.all and not live.old_versions and not forced:
            continue
        documents.append(await _migrate_one(args, client, raw))
    if args.all and not documents and args.output == "text":
        print("nothing to do: no CRD has objects at old versions")
    return documents


async def _migrate_one(
    args: argparse.Namespace, client: Client, raw: dict[str, Any]
) -> dict[str, Any]:
    live = read_live_crd(raw)
    if not live.crd.served():
        raise CliFailure(f"{live.name}: no version is served, so no object can be read")
    facts = await find_out(
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
    )
    _say(args, plan.lines())
    document = await _run_plan(args, client, plan)
    if args.owner_references and not plan.obstacles:
        await _repoint_owners(args, client, live, document)
    return document


async def _run_plan(args: argparse.Namespace, client: Client, plan: Plan) -> dict[str, Any]:
    if args.plan or not plan.needed or plan.obstacles:
        done = not plan.needed and not plan.obstacles
        ok = done or (args.plan and not plan.obstacles)
        return {"plan": plan.to_json(), "ok": ok}
    report = await _run(args, client, plan)
    _say(args, report.lines())
    return report.to_json()


async def _repoint_owners(
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
    _say(args, lines)


async def _run(args: argparse.Namespace, client: Client, plan: Plan) -> MigrationReport:
    path = args.progress or default_path(plan.live.name, plan.facts.server)
    try:
        journal = ProgressFile(":memory:" if args.dry_run else path)
    except JournalBusy as error:
        raise CliFailure(f"{error}; wait for it, or give --progress another file") from None
    except (OSError, sqlite3.Error) as error:
        raise CliFailure(f"{path}: {error}; give --progress a file that can be written") from None
    finished = False
    try:
        _decide(args, journal)
        with watching("migrate", args.output == "text") as progress:
            report = await migrate(client, plan, _options(args), journal, progress)
        finished = report.ok
    except asyncio.CancelledError:
        print(f"instar migrate: {_interrupted(journal)}", file=sys.stderr, flush=True)
        raise
    finally:
        journal.close(remove=finished)
    return report


def _decide(args: argparse.Namespace, journal: ProgressFile) -> None:
    """Record the user's decisions (``--accept``, ``--forget``) about single objects."""
    for key in args.accept:
        if not journal.accept(key):
            known = journal.line(key)
            why = "is not known" if known is None else f"is {known.fate}, so there is nothing new"
            raise CliFailure(f"--accept: {key} {why} to accept in {journal.path}")
    for key in args.forget:
        if not journal.forget(key):
            raise CliFailure(f"--forget: {key} is not known in {journal.path}")


def _interrupted(journal: ProgressFile) -> str:
    counts = journal.counts()
    done = sum(count for fate, count in counts.items() if fate in DONE)
    return (
        f"interrupted after {counted(done, 'object')}; storedVersions was not changed; run the "
        f"same command again to go on ({journal.path})"
    )


def _options(args: argparse.Namespace) -> MigrationOptions:
    return MigrationOptions(
        concurrency=args.concurrency,
        page=args.page,
        verify=not args.no_verify,
        dry_run=args.dry_run,
        via_status=args.via_status,
        clean_managed_fields=args.clean_managed_fields,
        keep_going=args.keep_going,
        patience=RetryPolicy(attempts=args.retries + 1),
        who=user_and_host(),
    )


def _say(args: argparse.Namespace, lines: list[str]) -> None:
    if args.output == "text":
        print("\n".join(lines), flush=True)
