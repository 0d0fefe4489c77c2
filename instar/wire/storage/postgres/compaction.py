"""Compaction: marks history as compacted, deletes it in slices, and runs VACUUM to reuse the space.

Called by ``store.py`` for ``Store.compact`` and ``excess``. The mark is one short transaction under
the head's lock; slices do not take that lock, so writers do not wait for them. The progress of the
deletion is stored, so that any process can finish what another began. Without this VACUUM the log
would grow to several times its size before the server's autovacuum starts.
"""

from __future__ import annotations

import logging

from instar.wire.storage.postgres.driver import Connection
from instar.wire.storage.postgres.link import PostgresLink
from instar.wire.storage.postgres.metrics import PostgresMetrics
from instar.wire.storage.postgres.server import PostgresServer
from instar.wire.storage.store import Ahead, StoreError

_log = logging.getLogger(__name__)

_SLICE = 500
_VACUUM_SECONDS = 600.0
_VACUUM_ROWS = 1000
"""Number of deleted rows from which VACUUM is worth its cost."""
_OLD_SNAPSHOT = 100_000
"""Age of a snapshot, in transactions, from which a warning is logged."""
_NOT_OWNER, _LOCKED = "01000", "55P03"
"""Warnings of a VACUUM that did nothing: for want of rights, or because autovacuum is at it."""

_COMPACT = "select latest, oldest from {schema}.compact_1($1)"
_SWEEP = "select {schema}.sweep_1($1)"
_VACUUM = "vacuum (skip_locked, analyze) {schema}.log"
_SIZE = "select pg_total_relation_size('{schema}.log')"
_OLDEST = """
select coalesce(max(age(xmin)), 0)::bigint as oldest from (
  select backend_xmin from pg_stat_activity
  where pid <> pg_backend_pid() and (datname = current_database() or datname is null)
  union all select transaction from pg_prepared_xacts where database = current_database()
  union all select xmin from pg_replication_slots
  union all select catalog_xmin from pg_replication_slots
) holders(xmin)
"""
_BOUNDS = """
select revision - compacted, pg_table_size('{schema}.log'), compacted from {schema}.head
"""
# Running total, from the newest write backwards, of the space of superseded values. The result is
# the newest write that no longer fits.
_EXCESS = """
select max(revision) from (
  select l.revision,
    sum(octet_length(coalesce(old.value, ''))) over newest as bytes,
    count(*) over newest as writes
  from {schema}.log l join {schema}.log old on old.revision = l.previous
  where l.revision > $1
  window newest as (order by l.revision desc)
) added where bytes > $2 or writes > $3
"""


class PostgresCompaction:
    """Deletes superseded rows of the log and runs VACUUM."""

    def __init__(
        self, server: PostgresServer, link: PostgresLink, metrics: PostgresMetrics
    ) -> None:
        self._server, self._link, self._metrics = server, link, metrics
        self._told_not_owner = False

    async def compact(self, revision: int) -> None:
        rows = await self._link.ask(self._server.sql(_COMPACT), revision)
        latest = rows[0][0]
        if revision > latest:
            raise Ahead(revision, latest)
        if await self._sweep() >= _VACUUM_ROWS:
            await self._reclaim()

    async def excess(self, most_bytes: int, most_writes: int) -> int:
        """Return the revision to compact to; the log is read only when it may be too large."""
        rows = await self._link.ask(self._server.sql(_BOUNDS))
        writes, size, compacted = rows[0]
        if writes <= most_writes and size <= most_bytes:
            return 0
        found = await self._link.ask(self._server.sql(_EXCESS), compacted, most_bytes, most_writes)
        return found[0][0] or 0

    async def _sweep(self) -> int:
        deleted = 0
        while (rows := await self._link.ask(self._server.sql(_SWEEP), _SLICE))[0][0] is not None:
            deleted += rows[0][0]
        self._metrics.swept.add(amount=deleted)
        return deleted

    async def _reclaim(self) -> None:
        """Run VACUUM on a separate connection, and measure what it could not remove."""
        link = PostgresLink(self._server, "vacuum")
        try:
            await link.run(self._vacuum, seconds=_VACUUM_SECONDS)
            size = await link.ask(self._server.sql(_SIZE))
            self._metrics.table_bytes = size[0][0]
            self._metrics.snapshot_age = age = (await link.ask(_OLDEST))[0][0]
            if age > _OLD_SNAPSHOT:
                _log.warning(
                    "%s: a snapshot, prepared transaction or replication slot is %d transactions "
                    "old; until it ends the tables grow and writes become slower",
                    self._server.settings,
                    age,
                )
        except StoreError as error:
            self._metrics.vacuums.add(("failed",))
            _log.warning("cannot reclaim space after a compaction: %s", error)
        finally:
            await link.close()

    async def _vacuum(self, connection: Connection) -> None:
        warned: list[str] = []
        connection.add_log_listener(lambda _, notice: warned.append(notice.sqlstate))
        await connection.execute(self._server.sql(_VACUUM))
        refused, busy = _NOT_OWNER in warned, _LOCKED in warned
        self._metrics.vacuums.add(("refused" if refused else "left" if busy else "done",))
        if refused and not self._told_not_owner:
            self._told_not_owner = True
            _log.warning(
                "%s: the role does not own the tables, so VACUUM is left to autovacuum",
                self._server.settings,
            )
