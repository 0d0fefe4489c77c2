"""``instar migrate --undo JOURNAL``: restores the objects of a migration from its undo journal.

Called by ``cli/commands/migrate.py``; ``tools/migrator/undo`` does the work.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from datetime import UTC, datetime

from instar.base.errors import NotFound
from instar.cli.shared.failure import CliFailure
from instar.cli.shared.progress_bar import progress_for
from instar.tools.migrator.census.version_census import exact_census
from instar.tools.migrator.live_crd import LiveCrd
from instar.tools.migrator.preflight import fetch_crd
from instar.tools.migrator.progress import Progress
from instar.tools.migrator.propagation_delay import seconds_to_settle, waiting_text
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.migrator.undo.journal import UndoJournal, UndoJournalError
from instar.tools.migrator.undo.put_back import ObjectRestorer
from instar.wire.client.client import Client


async def undo_migration(args: argparse.Namespace, client: Client) -> int:
    """Restore the objects. Return exit code 0 if every object of the journal is as it was."""
    try:
        journal = UndoJournal(args.undo)
    except UndoJournalError as error:
        raise CliFailure(str(error)) from None
    try:
        journal.reopen()
        subject = journal.subject
        try:
            live = await fetch_crd(client, subject.crd)
        except NotFound:
            raise CliFailure(f"the cluster has no CustomResourceDefinition {subject.crd}") from None
        if live.crd.uid != subject.uid:
            raise CliFailure(
                f"{args.undo} is about another {subject.crd}: the CRD was deleted and created "
                f"since, or it is one of {subject.server}"
            )
        restorer = ObjectRestorer(client, live, RetryPolicy(attempts=args.retries + 1), journal)
        with progress_for("migrate", args.output == "text") as progress:
            await _settle(args, client, live, progress)
            report = await restorer.put_all_back(progress, concurrency=args.concurrency)
    except UndoJournalError as error:
        raise CliFailure(str(error)) from None
    finally:
        journal.close()
    document = json.dumps(report.to_json(), indent=2)
    if args.report is not None:
        args.report.write_text(document + "\n", encoding="utf-8")
    print(document if args.output == "json" else "\n".join(report.lines()))
    return 0 if report.ok else 1


async def _settle(
    args: argparse.Namespace, client: Client, live: LiveCrd, progress: Progress
) -> None:
    """Wait until every API server knows the CRD. An API server that still writes the storage
    version of before would drop again what the undo writes.
    """
    if await exact_census(client) is not None:
        return
    seconds = seconds_to_settle(live, args.settle, datetime.now(UTC))
    if seconds > 0:
        progress.note(waiting_text(seconds))
        await asyncio.sleep(seconds)
