"""Reads of the log: one key, a range at a revision, the past events of a key.

Called by ``store.py``. Every answer comes from one snapshot together with the head and the
compacted revision, so that no compaction and no write can happen between them.
"""

from __future__ import annotations

from instar.base.plurals import counted
from instar.wire.storage.postgres.driver import Connection, Row
from instar.wire.storage.postgres.link import PostgresLink
from instar.wire.storage.postgres.server import PostgresServer
from instar.wire.storage.store import Ahead, Compacted, Event, Page, Past, Record

_CHUNK_ROWS = 2000
_LOAD_SECONDS = 600.0
_BEYOND_ALL = b"\xff" * 2001
"""After every key: none is longer than 2,000 bytes."""

_HEAD = "select revision, compacted from {schema}.head"
# Not "key = $1", so that only the index by key has the order.
_GET = """
select revision, value from {schema}.log
where key >= $1 and key <= $1 order by key, revision desc limit 1
"""
# Walks from key to key by the index, so that a key with many versions costs no more than others.
_PAGE = """
with recursive head as materialized (
  select revision, compacted, case when $3::bigint = 0 then revision else $3 end as at
  from {schema}.head
), walk as (
  (select key from {schema}.log where key >= $1 and key < $2 order by key limit 1)
  union all
  select (select l.key from {schema}.log l where l.key > walk.key and l.key < $2
    order by l.key limit 1)
  from walk where walk.key is not null
), found as (
  select walk.key, newest.revision, newest.value from walk, head, lateral (
    select l.revision, l.value from {schema}.log l
    where l.key = walk.key and l.revision <= head.at order by l.key, l.revision desc limit 1
  ) newest
  where newest.value is not null limit $4
)
select head.revision, head.compacted, found.key, found.revision, found.value
from head left join found on true
"""
_NEWEST = """
select log.key, log.revision, log.value from (
  select max(revision) as revision from {schema}.log
  where key >= $1 and key < $2 and revision <= $3 group by key
) newest join {schema}.log on log.revision = newest.revision
where log.value is not null
"""
_PAST = """
select head.compacted, part.revision, part.value from {schema}.head left join lateral (
  select revision, value from {schema}.log
  where key = $1 and ($2::bigint = 0 or revision < $2) order by key, revision desc limit $3
) part on true
"""


_DISORDER = """
select count(*), min(l.revision) from {schema}.head, {schema}.log l left join lateral (
  select p.revision, p.value from {schema}.log p
  where p.key = l.key and p.revision < l.revision order by p.key, p.revision desc limit 1
) older on true
where l.revision > head.compacted
  and l.previous <> case when older.value is null then 0 else older.revision end
"""
_BEYOND = """
select count(*) from {schema}.log where revision > (select revision from {schema}.head)
"""


class PostgresReads:
    """Reads rows and the head revision from the primary."""

    def __init__(self, server: PostgresServer, link: PostgresLink) -> None:
        self._server, self._link = server, link
        texts = (_HEAD, _GET, _PAGE, _NEWEST, _PAST)
        self._head, self._get, self._page, self._newest, self._past = map(server.sql, texts)

    async def get(self, key: str) -> Record | None:
        rows = await self._link.ask(self._get, encoded(key))
        if not rows or rows[0][1] is None:
            return None
        return Record(key, rows[0][1], rows[0][0])

    async def range(self, prefix: str, start: str, limit: int, revision: int) -> Page:
        first, end = encoded(max(prefix, start)), _after_prefix(encoded(prefix))
        if not limit or limit > _CHUNK_ROWS:
            return await self._whole(first, end, limit, revision)
        rows = await self._link.ask(self._page, first, end, revision, limit + 1)
        at = self._readable(revision, rows[0][0], rows[0][1])
        records = [Record(decoded(row[2]), row[4], row[3]) for row in rows if row[2] is not None]
        return Page(records[:limit], at, len(records) > limit)

    async def past(self, key: str, before: int, limit: int) -> Past:
        most = limit + 2 if limit else None
        rows = await self._link.ask(self._past, encoded(key), before, most)
        compacted: int = rows[0][0]
        events: list[Event] = []
        for _, revision, value in rows:
            if revision is None or (revision <= compacted and value is None):
                break
            events.append(Event(key, value, revision))
            if revision <= compacted:
                break  # what was current then; older rows are about to be deleted
        more = bool(limit) and len(events) > limit
        kept = events[:limit] if limit else events
        return Past(kept[::-1], more, compacted)

    async def problems(self) -> list[str]:
        """Check the consistency of the log: order of each key's writes, no revision beyond the
        head."""
        [[wrong, first]] = await self._link.ask(self._server.sql(_DISORDER))
        [[beyond]] = await self._link.ask(self._server.sql(_BEYOND))
        found = []
        if wrong:
            found.append(f"revision {first}: names another predecessor than it has ({wrong} such)")
        if beyond:
            found.append(f"the log has {counted(beyond, 'row')} beyond the current revision")
        return found

    async def _whole(self, first: bytes, end: bytes, limit: int, revision: int) -> Page:
        """Read a whole range through a cursor, in one snapshot."""

        async def read(connection: Connection) -> tuple[Row, list[Record]]:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                head = await connection.fetchrow(self._head)
                assert head is not None
                at = self._readable(revision, *head)
                rows = connection.cursor(self._newest, first, end, at, prefetch=_CHUNK_ROWS)
                found = [Record(decoded(key), value, number) async for key, number, value in rows]
            return head, found

        head, records = await self._link.run(read, seconds=_LOAD_SECONDS)
        records.sort(key=_by_bytes)
        more = bool(limit) and len(records) > limit
        return Page(records[:limit] if limit else records, revision or head[0], more)

    def _readable(self, revision: int, head: int, compacted: int) -> int:
        self._server.saw(head)
        if revision > head:
            raise Ahead(revision, head)
        if revision and revision < compacted:
            raise Compacted(compacted)
        return revision or head


def encoded(key: str) -> bytes:
    return key.encode(errors="surrogateescape")


def decoded(key: bytes) -> str:
    return key.decode(errors="surrogateescape")


def _by_bytes(record: Record) -> bytes:
    return encoded(record.key)


def _after_prefix(prefix: bytes) -> bytes:
    """Return a key after all that start with ``prefix``."""
    prefix = prefix.rstrip(b"\xff")
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else _BEYOND_ALL
