"""Connects to the PostgreSQL primary and checks its database, timeline and latest revision.

Used by ``link.py`` for every connection of a store. The module looks for the primary among the
hosts, creates or checks the tables once per process, and compares each new connection with what
this process has seen before. Another database is refused. An older timeline means a primary that
was replaced. If revisions are missing that this process has seen, for example after a failover to a
standby that lagged, the watch caches load everything again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from instar.wire.storage.postgres import schema
from instar.wire.storage.postgres.driver import Connection, load_driver
from instar.wire.storage.postgres.failures import CallFailure, explain
from instar.wire.storage.postgres.url import DatabaseHost, PostgresSettings
from instar.wire.storage.store import StoreError, StoreLost, Unavailable

_log = logging.getLogger(__name__)

_PARAMETERS = {
    "default_transaction_isolation": "read committed",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "60000",
    "jit": "off",
    "enable_seqscan": "off",
    # Planning a batch anew costs as much as committing it.
    "plan_cache_mode": "force_generic_plan",
}
_SET_PARAMETERS = "select " + ", ".join(
    f"set_config('{name}', '{value}', false)" for name, value in _PARAMETERS.items()
)
_UNKNOWN_PARAMETER = "08P01"
_OLDEST = 130000
_CHECKS_CLIENTS = 140000
_NEVER = 2**31 - 1
_FACTS = """
select pg_is_in_recovery(), current_setting('server_version_num')::int,
  version() like 'PostgreSQL %', current_setting('transaction_isolation'),
  current_setting('transaction_read_only') = 'on', current_setting('fsync') = 'on',
  current_setting('full_page_writes') = 'on', current_setting('synchronous_standby_names'),
  current_setting('synchronous_commit') in ('off', 'local')
"""
_HISTORY = """
select (select system_identifier::text from pg_control_system()),
  ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
"""
_INTERVAL = "select set_config('client_connection_check_interval', '2s', false)"
_DURABLE = "select set_config('synchronous_commit', 'on', false)"
_ENTER = "select * from {schema}.enter_1($1, $2, $3)"
_ECHO_SECONDS = 2.0
_SILENT_SECONDS = 0.5
"""How long a host may be silent while another one has answered as a primary."""


class ServerFacts(NamedTuple):
    """Identity, version and settings that a server reports."""

    system: str
    """Identifier of the cluster's files; a copy has the same one."""
    timeline: int
    """Raised by each promotion; 0 if the server does not report it."""
    version: int
    safe: bool
    """Whether fsync and full_page_writes are on."""
    synchronous: str
    """The synchronous standbys; empty where a failover may lose acknowledged writes."""


class _Candidate(NamedTuple):
    host: DatabaseHost
    connection: Connection
    facts: ServerFacts


class _KnownHistory(NamedTuple):
    identity: UUID
    system: str
    timeline: int
    ordinal: int


class PostgresServer:
    """The PostgreSQL installation of one URL, with the history that this process has seen."""

    def __init__(self, settings: PostgresSettings, *, must_exist: bool = False) -> None:
        self.settings = settings
        self.facts: ServerFacts | None = None
        self.seen = 0
        """The greatest revision that this process has seen."""
        self.reconnections = 0
        self.writing: Connection | None = None
        """The connection that ``commit.py`` writes through."""
        self._must_exist = must_exist
        self._known: _KnownHistory | None = None
        self._prepared = False
        self._pooled = False
        """Whether the address is a pooler in session mode."""
        self._open: set[Connection] = set()
        self._went_back: list[Callable[[StoreError], None]] = []
        self._admitting = asyncio.Lock()

    def sql(self, text: str) -> str:
        return schema.filled(text, self.settings.schema)

    def on_went_back(self, listener: Callable[[StoreError], None]) -> None:
        """Register a listener for a history that lacks revisions that this process has seen."""
        self._went_back.append(listener)

    def saw(self, revision: int) -> None:
        if revision > self.seen:
            self.seen = revision

    def explain(self, error: BaseException) -> CallFailure:
        return explain(error, str(self.settings))

    async def connect(self, purpose: str) -> Connection:
        """Open a connection to the primary. Raises ``StoreError``."""
        candidate = await self._find_primary(purpose)
        try:
            # One at a time: the first of a process creates tables, the first on a new timeline
            # decides whether history went back.
            async with self._admitting:
                await self._admit(candidate)
        except BaseException as error:
            candidate.connection.terminate()
            if isinstance(error, StoreError | asyncio.CancelledError):
                raise
            raise self.explain(error).error from error
        self.reconnections += 1
        return candidate.connection

    async def _find_primary(self, purpose: str) -> _Candidate:
        """Ask all hosts, and take the primary of the highest timeline. A host that is silent while
        another one is a primary is waited for only shortly."""
        hosts = self.settings.hosts
        if len(hosts) == 1:
            return await self._ask_host(hosts[0], purpose)
        loop = asyncio.get_running_loop()
        asking = [loop.create_task(self._ask_host(host, purpose)) for host in hosts]
        left: float | None = None
        pending: set[asyncio.Task[_Candidate]] = set(asking)
        try:
            while pending:
                done, pending = await asyncio.wait(
                    pending, timeout=left, return_when=asyncio.FIRST_COMPLETED
                )
                if left is not None and not done:
                    break
                if any(each.exception() is None for each in done):
                    left = _SILENT_SECONDS
        except asyncio.CancelledError:
            pending = set(asking)
            raise
        finally:
            for each in pending:
                each.add_done_callback(_end_connection)
        found = [each.result() for each in asking if each.done() and each.exception() is None]
        if not found:
            raise _most_informative([error for each in asking if (error := each.exception())])
        found.sort(key=lambda candidate: candidate.facts.timeline, reverse=True)
        for other in found[1:]:
            other.connection.terminate()
        if len(found) > 1:
            _log.warning("two primaries: %s and %s; using the first", found[0].host, found[1].host)
        return found[0]

    async def _ask_host(self, host: DatabaseHost, purpose: str) -> _Candidate:
        where = f"postgresql {host}/{self.settings.database}"
        try:
            connection = await self._dial(host, purpose)
        except StoreError:
            raise
        except Exception as error:
            raise explain(error, where).error from error
        try:
            return _Candidate(host, connection, await self._facts(connection, where))
        except Exception as error:
            connection.terminate()
            raise error if isinstance(error, StoreError) else explain(error, where).error from error

    async def _dial(self, host: DatabaseHost, purpose: str) -> Connection:
        """Open a session with our parameters. A pooler refuses them at the start; one in session
        mode takes them afterwards, and one in transaction mode would keep them for others."""
        if self.settings.polls:
            return await self._open_session(host, purpose, {})
        if not self._pooled:
            try:
                return await self._open_session(host, purpose, _PARAMETERS)
            except Exception as error:
                if getattr(error, "sqlstate", "") != _UNKNOWN_PARAMETER:
                    raise
        connection = await self._open_session(host, purpose, {})
        try:
            if not self._pooled:
                await self._check_notifications(host, connection)
                self._pooled = True
            await connection.fetch(_SET_PARAMETERS)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _open_session(
        self, host: DatabaseHost, purpose: str, parameters: Mapping[str, str]
    ) -> Connection:
        settings = self.settings
        given = {"application_name": f"instar/{purpose}", **dict(settings.session)}
        connection: Connection = await load_driver().connect(
            f"postgresql:///?{urlencode(settings.driver)}",
            host=host.host,
            port=host.port,
            user=settings.user,
            database=settings.database,
            password=self._password(),
            timeout=max(1.0, settings.timeout / 2),
            statement_cache_size=0 if settings.polls else 100,
            server_settings={**given, **parameters},
        )
        self._open.add(connection)
        connection.add_termination_listener(self._open.discard)
        return connection

    def _password(self) -> str | None:
        file = self.settings.password_file
        if not file:
            return self.settings.password
        try:
            lines = Path(file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(f"--postgres-password-file {file}: {error}") from error
        if not lines or not lines[0]:
            raise Unavailable(f"--postgres-password-file {file}: its first line is empty")
        return lines[0]

    async def _facts(self, connection: Connection, where: str) -> ServerFacts:
        row = await connection.fetchrow(_FACTS)
        assert row is not None
        standby, version, genuine, isolation, read_only, fsync, pages, synchronous, lax = row
        if not genuine or version < _OLDEST:
            raise StoreError(f"{where}: not a PostgreSQL of version 13 or later")
        if standby or read_only:
            kind = "a standby" if standby else "set to read-only"
            raise Unavailable(f"{where}: {kind}; instar needs the primary")
        if isolation != "read committed":
            raise StoreError(
                f"{where}: sessions start as {isolation!r}; instar needs read committed"
            )
        if lax:
            await self._make_durable(connection, where)
        if version >= _CHECKS_CLIENTS and not self.settings.polls:
            with contextlib.suppress(Exception):  # some systems cannot check clients
                await connection.fetchval(_INTERVAL)
        system, timeline = await self._history_of(connection)
        self._refuse_replaced(where, system, timeline)
        return ServerFacts(system, timeline, version, fsync and pages, synchronous)

    async def _make_durable(self, connection: Connection, where: str) -> None:
        """Have commits wait for the disk and for the synchronous standby, whatever the server, the
        database or the role sets; a stronger setting than ``on`` is left as it is."""
        if self.settings.polls:  # the session belongs to the pooler
            raise StoreError(
                f"{where}: synchronous_commit is off or local, so a crash loses acknowledged "
                "writes; through a pooler it cannot be set for a session: alter role … set "
                "synchronous_commit = on"
            )
        await connection.fetchval(_DURABLE)

    async def _history_of(self, connection: Connection) -> tuple[str, int]:
        """Return system identifier and timeline; not every compatible server has them."""
        try:
            row = await connection.fetchrow(_HISTORY)
        except Exception:
            if connection.is_closed():
                raise
            return "", 0
        assert row is not None
        return str(row[0]), int(row[1])

    def _refuse_replaced(self, where: str, system: str, timeline: int) -> None:
        known = self._known
        if known is not None and system == known.system and timeline < known.timeline:
            raise Unavailable(
                f"{where}: a replaced primary (timeline {timeline}, the data is on timeline "
                f"{known.timeline}); it must not be used"
            )

    async def _admit(self, candidate: _Candidate) -> None:
        connection, facts = candidate.connection, candidate.facts
        if not self._prepared:
            await self._prepare(connection)
            if not self.settings.polls:
                await self._check_notifications(candidate.host, connection)
            self._prepared = True
        known, seen = self._known, self.seen
        since = _NEVER if known is None else known.ordinal
        row = await connection.fetchrow(self.sql(_ENTER), facts.system, facts.timeline, since)
        assert row is not None
        identity, revision, ordinal, forked = row
        if known is not None and identity != known.identity:
            raise StoreLost(
                f"{self.settings}: the data of another instance; instar goes on with the data it "
                "knows, or after a restart"
            )
        moved = known is not None and (facts.system, facts.timeline) != known[1:3]
        if moved:
            _log.warning("%s: now on timeline %d", self.settings, facts.timeline)
            for other in self._open - {connection}:
                other.terminate()
        lost = revision < seen if not moved else forked is not None and forked < seen
        self._known = _KnownHistory(identity, facts.system, facts.timeline, ordinal)
        if not facts.safe and (self.facts is None or self.facts.safe):
            _log.warning("%s: fsync or full_page_writes is off: a crash loses data", self.settings)
        self.facts = facts
        if lost:
            self.revisions_lost(revision if not moved else forked)
        self.saw(revision)

    def revisions_lost(self, kept: int) -> None:
        """Make followers reload, because the server lacks revisions that this process has seen."""
        error = StoreError(
            f"{self.settings}: history went back: revision {self.seen} was seen, the server has "
            f"kept {kept}"
        )
        _log.error("%s", error)
        self.seen = 0
        for listener in self._went_back:
            listener(error)

    async def _prepare(self, connection: Connection) -> None:
        """Create or check the tables. Done once: a running server does not recreate tables that
        were dropped."""
        name = self.settings.schema
        found = await schema.stored_version(connection, name)
        if not found and self._must_exist:
            raise StoreError(f"{self.settings}: no data of instar in the schema {name}")
        newest = max(schema.migrations())
        if found < newest:
            await schema.migrate(connection, name)
        schema.check_version(found, newest, name)

    async def _check_notifications(self, host: DatabaseHost, connection: Connection) -> None:
        """Refuse a pooler in transaction mode: LISTEN succeeds there, but no notification
        arrives."""
        heard = asyncio.Event()
        channel = f"{self.settings.schema}_echo"

        def hear(*_: object) -> None:
            heard.set()

        await connection.add_listener(channel, hear)
        other = await self._open_session(host, "echo", {})
        try:
            await other.fetchval("select pg_notify($1, '')", channel)
            async with asyncio.timeout(_ECHO_SECONDS):
                await heard.wait()
            # Every notification of the database wakes each backend that listens to anything.
            await connection.remove_listener(channel, hear)
        except TimeoutError as error:
            raise StoreError(
                f"{self.settings}: notifications do not arrive: the address is a pooler in "
                "transaction mode; connect to the server itself, to a pooler in session mode, or "
                "add feed=poll to the URL"
            ) from error
        finally:
            other.terminate()


def _end_connection(asking: asyncio.Task[_Candidate]) -> None:
    """Close what a host answered that was not waited for."""
    if not asking.cancelled() and asking.exception() is None:
        asking.result().connection.terminate()


def _most_informative(errors: list[BaseException]) -> BaseException:
    """Return the most informative error: preferably of a host that is reachable and not a
    standby."""
    for error in errors:
        if not isinstance(error, Unavailable):
            return error
    if len(errors) == 1:
        return errors[0]
    return Unavailable("; ".join(str(error) for error in errors))
