"""Stored objects in ``instar upgrade``: compares each with how it would read under the new CRDs,
migrates them, and restores them when the upgrade is rolled back.

Called by ``cli/commands/upgrade.py``; ``tools/migrator`` does the work.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from instar.base.json_values import Object
from instar.cli.shared.cluster_flags import user_and_host
from instar.tools.migrator.live_crd import read_live_crd
from instar.tools.migrator.migration import MigrationOptions, migrate
from instar.tools.migrator.plan import Plan
from instar.tools.migrator.preflight import run_preflight
from instar.tools.migrator.progress_file import (
    JournalBusy,
    ProgressFile,
    ProgressFileError,
    default_path,
)
from instar.tools.migrator.propagation_delay import seconds_to_settle
from instar.tools.migrator.report import MigrationReport
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.migrator.rewrite_checks.change_scan import scan_release
from instar.tools.migrator.undo.journal import UndoJournal, UndoJournalError, journal_path
from instar.tools.migrator.undo.put_back import ObjectRestorer, UndoReport
from instar.tools.upgrader.transition_crds import crd_to_apply, moves_objects
from instar.wire.client.client import Client


async def fields_lost_by_release(
    args: argparse.Namespace, client: Client, old: Object, new: Object
) -> tuple[str, ...]:
    """Return the fields that the release's CRD would drop from stored objects, one line each.

    Only for conversion None, where that is computed; with a webhook the migration proves it page
    by page before it writes. It does so in any case, under a CRD that drops nothing yet, so that
    objects which clients write after this look are proven, too.
    """
    release, live = read_live_crd(crd_to_apply(new)), read_live_crd(old)
    moves = moves_objects(new, old)
    if release.crd.conversion.strategy != "None" or not moves or not live.crd.served():
        return ()
    scan = await scan_release(
        client,
        live,
        release,
        RetryPolicy(attempts=args.retries + 1),
        accepted=args.accept_change,
    )
    if scan.stopped:
        return (f"error: the objects cannot be compared with the release: {scan.stopped}",)
    return tuple(f"error: {line}" for line in scan.tally.lines(release.storage))


class UpgradedObjects:
    """Migrates the objects of one CRD after another; keeps their undo journals open."""

    def __init__(self, args: argparse.Namespace, client: Client) -> None:
        self._args = args
        self._client = client
        self._journals: dict[str, UndoJournal] = {}
        self._settle = 0.0

    def close(self) -> None:
        for journal in self._journals.values():
            journal.close()

    async def migrate(self, live: Object, leaving: Sequence[str]) -> MigrationReport | str | None:
        """Migrate the objects of a CRD before the ``leaving`` versions are removed. The progress
        file stays until that is done: it has the field owners of objects that a killed run wrote.
        """
        args, client, crd = self._args, self._client, read_live_crd(live)
        facts = await run_preflight(client, crd, via_status=False, concurrency=args.concurrency)
        self._settle = 0.0 if facts.is_instar else args.settle
        plan = Plan(
            crd,
            facts,
            args.concurrency,
            args.qps,
            forced=False,
            settle=seconds_to_settle(crd, self._settle, datetime.now(UTC)),
            accepted=tuple(args.accept_change),
        )
        if plan.obstacles:
            return "; ".join(plan.obstacles)
        if not plan.needed:
            return None
        options = MigrationOptions(
            concurrency=args.concurrency,
            clean_managed_fields=True,
            leaving=tuple(leaving),
            accept_changes=tuple(args.accept_change),
            patience=RetryPolicy(attempts=args.retries + 1),
            who=user_and_host(),
        )
        path = default_path(crd.name, facts.server)
        try:
            progress_file = ProgressFile(path)
        except (JournalBusy, OSError, sqlite3.Error) as error:
            return f"{path}: {error}"
        finished = False
        try:
            undo = self._journals[crd.name] = UndoJournal(journal_path(path))
            report = await migrate(client, plan, options, progress_file, UpgradeNotes(), undo)
            finished = report.ok
            return report
        except (UndoJournalError, ProgressFileError) as error:
            return str(error)
        finally:
            progress_file.close(remove=finished)

    async def put_back(self, live: Object) -> UndoReport | None:
        """Restore the objects that the migration wrote, after the CRD was rolled back."""
        journal = self._journals.get(live["metadata"]["name"])
        try:
            if journal is None or not journal.keys():
                return None
        except UndoJournalError:
            return None
        await asyncio.sleep(self._settle)
        patience = RetryPolicy(attempts=self._args.retries + 1)
        restorer = ObjectRestorer(
            self._client, read_live_crd(live), patience, journal, served_only=True
        )
        return await restorer.put_all_back(UpgradeNotes(), concurrency=self._args.concurrency)


class UpgradeNotes:
    """Progress of an upgrade: log lines on standard error, because a Job's log cannot show
    a bar.
    """

    def begin(self, phase: str, total: int | None) -> None:
        return

    def advance(self, count: int) -> None:
        return

    def note(self, text: str) -> None:
        print(f"instar upgrade: {text}", file=sys.stderr, flush=True)
