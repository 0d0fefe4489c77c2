"""Event feed: reads the events of the log, in order and without gaps, for the followers in this
process.

``store.py`` makes one feed; the task of the feed runs while there are followers. A notification
carries no event, because any role of the database may listen and notify: it causes a read of the
log from the last revision that followers have. The log is also read after every connect and at
least every few seconds, so that no event is lost with a notification or a connection. This
process's own writes reach followers through ``learn`` without being read back.

Notifications arrive on the connection that writes. PostgreSQL wakes each session that listens,
except the one that notifies, so a session that only listened would be woken by each own write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from instar.base.supervision import is_being_cancelled, report_failure
from instar.wire.storage.event_followers import Follower, Followers
from instar.wire.storage.postgres.driver import Connection, Row
from instar.wire.storage.postgres.link import PostgresLink
from instar.wire.storage.postgres.metrics import PostgresMetrics
from instar.wire.storage.postgres.server import PostgresServer
from instar.wire.storage.store import (
    Compacted,
    Ended,
    Event,
    Sink,
    StoreError,
    Subscription,
    Unavailable,
)

_log = logging.getLogger(__name__)

_ROWS = 1000
_BYTES = 8 << 20
_SAFETY_SECONDS = 5.0
_POLL_SECONDS = 0.1
_STUCK_SECONDS = 2.0
_STALLED_SECONDS = 10.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0

# One statement, so that the head, the compacted revision and the rows are of one snapshot. "place"
# is the row at which this process knows the stamp: a stamp that differs is another history.
_READ = """
select head.revision, head.compacted, place.stamp, part.revision, part.key, part.value, part.stamp
from {schema}.head
left join {schema}.log place on place.revision = $2
left join lateral (
  select * from (
    select found.*, sum(octet_length(found.value)) over (
      order by found.revision rows between unbounded preceding and 1 preceding) as before
    from (
      select revision, key, value, stamp from {schema}.log
      where revision > $1 and revision <= head.revision order by revision limit $3
    ) found
  ) measured where coalesce(before, 0) < $4
) part on true
order by part.revision
"""


class PostgresFeed:
    """Delivers new rows of the log to the watch cache."""

    def __init__(
        self,
        server: PostgresServer,
        hearing: PostgresLink,
        check_hearing: Callable[[], None],
        metrics: PostgresMetrics,
    ) -> None:
        """``hearing`` is the connection that hears notifications; ``check_hearing`` makes sure that
        it still answers."""
        self._server, self._metrics = server, metrics
        self._hearing, self._check_hearing = hearing, check_hearing
        self._link = PostgresLink(server, "feed")
        self._sql = server.sql(_READ)
        self._followers = Followers()
        self._all: list[Follower] = []
        self._wake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._place, self._stamp = 0, 0
        self._wanted = 0
        self._since = 0.0
        self._check: asyncio.TimerHandle | None = None
        server.on_went_back(self.end)

    async def listen(self, connection: Connection) -> None:
        """Listen on a new connection, and read what was written before."""
        if not self._server.settings.polls:
            await connection.add_listener(self._server.settings.schema, self._notified)
            connection.add_termination_listener(self._lost)
            self._wake.set()

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        follower = self._followers.add(after, sink, ended, ())
        self._all = [*self._live(), follower]
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._run())
        self._wake.set()
        return follower

    def learn(self, events: Sequence[Event], revision: int, stamp: int) -> None:
        """Deliver own writes, of one batch, at once to followers that have everything before
        them."""
        first = events[0].revision
        for follower in self._live():
            if follower.reached == first - 1:
                follower.take(events, revision)
        if revision > self._place:
            self._place, self._stamp = revision, stamp
        self.expect(revision)

    def expect(self, revision: int) -> None:
        """Make sure that followers reach this revision, because a reader waits for it."""
        if revision > self._wanted:
            self._wanted = revision
        reached = self._reached()
        if reached is None or reached >= self._wanted:
            return
        self._metrics.feed_lag = self._wanted - reached
        self._wake.set()
        if self._check is None:
            loop = asyncio.get_running_loop()
            self._since = loop.time()
            self._check = loop.call_later(_STUCK_SECONDS, self._check_progress, reached)

    def end(self, why: StoreError) -> None:
        """End every subscription, so that followers reload."""
        self._place, self._stamp, self._wanted = 0, 0, 0
        self._followers.end(why)

    async def close(self) -> None:
        self.end(Unavailable("the store is closed"))
        if self._check is not None:
            self._check.cancel()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
        await self._link.close()

    # -- reading -------------------------------------------------------------------------------

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while self._live():
            reads = self._metrics.feed_reads.value()
            try:
                await self._follow()
            except StoreError as error:
                _log.info("the feed is interrupted: %s", error)
            except (Exception, asyncio.CancelledError) as error:
                if is_being_cancelled(error):
                    raise
                report_failure("postgres-feed", error)
            self._link.drop()
            pause = _FIRST_PAUSE if self._metrics.feed_reads.value() > reads + 1 else pause * 2
            await asyncio.sleep(min(pause, _LONGEST_PAUSE))
        self._link.drop()

    async def _follow(self) -> None:
        """Read until a connection breaks or no follower is left."""
        while self._live():
            self._wake.clear()
            if not self._server.settings.polls:
                await self._hearing.ready()
            while await self._read():
                pass
            await self._woken()

    async def _woken(self) -> None:
        loop = asyncio.get_running_loop()
        polls = self._server.settings.polls
        timer = loop.call_later(_POLL_SECONDS if polls else _SAFETY_SECONDS, self._long_silent)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    def _long_silent(self) -> None:
        self._wake.set()
        if not self._server.settings.polls:
            self._check_hearing()

    def _lost(self, connection: object) -> None:
        self._wake.set()

    def _notified(self, connection: object, pid: int, channel: str, payload: str) -> None:
        """Wake the feed, unless this process wrote the batch: the answer to it has the events, and
        ``learn`` gets them also if the answer is lost and the batch is settled."""
        writing = self._server.writing
        if writing is None or writing.is_closed() or writing.get_server_pid() != pid:
            self._wake.set()

    async def _read(self) -> bool:
        """Read the next events for the follower that is furthest behind; True if more remain."""
        after = min((follower.reached for follower in self._live()), default=None)
        if after is None:
            return False
        connection = await self._link.ready()
        loop = asyncio.get_running_loop()
        limit = loop.call_later(self._server.settings.timeout, connection.terminate)
        known = (
            self._server.seen
        )  # the answer is newer than everything seen before it was asked for
        place = self._place, self._stamp
        try:
            rows = await connection.fetch(self._sql, after, place[0], _ROWS, _BYTES)
        except Exception as error:
            raise self._server.explain(error).error from error
        finally:
            limit.cancel()
        self._metrics.feed_reads.add()
        return self._deliver(after, known, place, rows)

    def _deliver(self, after: int, known: int, place: tuple[int, int], rows: Sequence[Row]) -> bool:
        head, compacted, stamp = rows[0][:3]
        if head < known or _is_other_history(place, compacted, stamp):
            self._server.revisions_lost(head)
            return False
        self._server.saw(head)
        for follower in self._live():
            if follower.reached < compacted:
                follower.end(Compacted(compacted))
        events = [
            Event(row[4].decode(errors="surrogateescape"), row[5], row[3])
            for row in rows
            if row[3] is not None
        ]
        last = events[-1].revision if events else head
        more = bool(events) and last < head and _is_truncated(rows)
        upto = last if more else max(head, last)
        if events and last > self._place:
            self._place, self._stamp = last, rows[-1][6]
        live = self._live()
        for follower in live:
            if follower.reached >= after:
                follower.take(events, upto)
        self._metrics.feed_lag = head - upto
        # One that subscribed during the read may need rows before those that were read.
        return more or any(follower.reached < after for follower in live)

    # -- followers -----------------------------------------------------------------------------

    def _live(self) -> list[Follower]:
        return [follower for follower in self._all if not follower.closed]

    def _reached(self) -> int | None:
        return min((follower.reached for follower in self._live()), default=None)

    def _check_progress(self, before: int) -> None:
        """Reconnect a feed that makes no progress although the revision increases; if that does not
        help, end the subscriptions, so that the failure becomes visible."""
        self._check = None
        reached = self._reached()
        if reached is None or reached >= self._wanted:
            return
        loop = asyncio.get_running_loop()
        if reached > before:
            self._since = loop.time()
        stalled = loop.time() - self._since
        if stalled > _STALLED_SECONDS:
            self.end(Unavailable(f"the feed stands at revision {reached}, not {self._wanted}"))
            return
        if stalled >= _STUCK_SECONDS:
            _log.warning("the feed stands at revision %d, not %d", reached, self._wanted)
            self._link.drop()
        self._wake.set()
        self._check = loop.call_later(_STUCK_SECONDS, self._check_progress, reached)


def _is_other_history(place: tuple[int, int], compacted: int, stamp: int | None) -> bool:
    """Return whether the log is not the one that was read before: the row at ``place``, the last
    one known, has another stamp, or is missing although it is not compacted."""
    revision, known = place
    if not revision:
        return False
    return stamp != known if stamp is not None else revision > compacted


def _is_truncated(rows: Sequence[Row]) -> bool:
    """Return whether the statement's limits left rows out."""
    return len(rows) == _ROWS or sum(len(row[5] or b"") for row in rows) >= _BYTES
