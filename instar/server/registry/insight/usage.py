"""Usage statistics: requests per resource, version, verb, user and user agent.

Written once per request, served as ``/instar/usage``. The statistics are bounded: when they are
full, the least recently seen lines are merged into "(other)". They are kept across restarts in one
record of the store, which is written every few minutes and at the end, so "no request for 14 days"
holds across restarts. Several replicas add to the same record; a crash may lose the last minutes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from instar.base.supervision import SupervisedTask, Supervision, rest
from instar.kube.access.attributes import Attributes
from instar.kube.api.user_agents import is_ours
from instar.server.registry.insight.daily_requests import DailyRequests, VersionKey
from instar.wire.storage.store import Stale, Store, StoreError, Write

log = logging.getLogger(__name__)

RECORD = "instar.dev/usage/requests"
OTHER = "(other)"
MOST_LINES = 2_000
_AGENT_LENGTH = 160
_FLUSH_SECONDS = 300.0
_FLUSH_ATTEMPTS = 5


class UseKey(NamedTuple):
    """What a request is counted by: resource, version, verb, user and user agent."""

    group: str
    resource: str
    version: str
    verb: str
    user: str
    agent: str


class UseCount(NamedTuple):
    """Count, and first and last time (seconds since 1970)."""

    number: int
    first: float
    last: float

    def plus(self, other: UseCount) -> UseCount:
        first, last = min(self.first, other.first), max(self.last, other.last)
        return UseCount(self.number + other.number, first, last)


Lines = dict[UseKey, UseCount]


class UsageRecorder:
    """Counts loaded from the store, and those since."""

    def __init__(self, clock: Callable[[], float] = time.time, most: int = MOST_LINES) -> None:
        self._clock = clock
        self._most = most
        self._since = clock()
        self._known: Lines = {}
        self._fresh: dict[tuple[str, ...], list[float]] = {}
        """Plain tuples and lists, because this is written once per request."""
        self._recent = DailyRequests()

    def note(self, asked: Attributes, agent: str) -> None:
        """Count one request."""
        user = asked.user.name
        key = (asked.group, asked.resource, asked.version, asked.verb, user, agent[:_AGENT_LENGTH])
        now = self._clock()
        seen = self._fresh.get(key)
        if seen is not None:
            seen[0] += 1
            seen[2] = now
            return
        self._fresh[key] = [1, now, now]
        if len(self._fresh) > self._most:
            self._fresh = _counters(shorten_lines(_lines_of(self._fresh), self._most // 2))

    def document(self) -> dict[str, Any]:
        """Return the body of ``/instar/usage``."""
        lines, now = self._merged(self._known), self._clock()
        recent = self._recent.counts(now, _totals(lines))
        return {
            **_document(self._since, lines),
            "recentSince": moment_text(self._recent.since(now)),
            "recent": [{**key._asdict(), "count": count} for key, count in recent.items() if count],
        }

    def mark(self) -> None:
        """Note the totals periodically, for the counts of the last day."""
        now = self._clock()
        if self._recent.is_due(now):
            self._recent.mark(now, _totals(self._merged(self._known)))

    async def load(self, store: Store) -> None:
        """Load the counts of earlier processes; an unreadable record counts as empty."""
        record = await store.get(RECORD)
        if record is not None:
            self._since, self._known = _read(record.value, self._since)

    async def flush(self, store: Store) -> None:
        """Add new counts to the store's record; ``StoreError`` when that cannot be done now."""
        for _ in range(_FLUSH_ATTEMPTS):
            if not self._fresh:
                return
            record = await store.get(RECORD)
            since, known = self._since, self._known
            if record is not None:
                since, known = _read(record.value, since)
            merged = self._merged(known)
            taken, self._fresh = self._fresh, {}
            value = orjson.dumps(_document(since, merged)) + b"\n"
            try:
                await store.commit(Write(RECORD, value, record.revision if record else 0))
            except StoreError as error:
                self._fresh = _counters(_sum(_lines_of(taken), _lines_of(self._fresh)))
                if isinstance(error, Stale):
                    continue
                raise
            self._since, self._known = since, merged
            return

    def _merged(self, known: Lines) -> Lines:
        return shorten_lines(_sum(known, _lines_of(self._fresh)), self._most)


class UsageKeeper:
    """Writes the counts to the store periodically and at the end."""

    def __init__(
        self,
        usage: UsageRecorder,
        store: Store,
        supervision: Supervision,
        every: float = _FLUSH_SECONDS,
    ) -> None:
        self._usage, self._supervision = usage, supervision
        self._store = store
        self._every = every
        self._kept: SupervisedTask | None = None

    async def load(self) -> None:
        try:
            await self._usage.load(self._store)
        except StoreError as error:
            log.warning("usage counts of the past cannot be read: %s", error)
        self._usage.mark()

    async def start(self) -> None:
        await self.load()
        self._kept = self._supervision.keep("usage-counts", self._work)

    async def stop(self) -> None:
        if self._kept is None:
            return
        await self._kept.stop()
        await self._flush()

    async def _work(self) -> None:
        while True:
            await rest(self._every)
            await self._flush()
            self._usage.mark()

    async def _flush(self) -> None:
        try:
            await self._usage.flush(self._store)
        except StoreError as error:
            log.warning("usage counts could not be written: %s", error)


def shorten_lines(lines: Lines, most: int) -> Lines:
    """Return at most about ``most`` lines: the oldest lose user and agent, not their counts."""
    if len(lines) <= most:
        return lines
    recent = sorted(lines.items(), key=lambda item: item[1].last, reverse=True)
    kept = dict(recent[:most])
    for key, tally in recent[most:]:
        folded = key._replace(user=OTHER, agent=OTHER)
        known = kept.get(folded)
        kept[folded] = tally if known is None else known.plus(tally)
    return kept


def _lines_of(counters: dict[tuple[str, ...], list[float]]) -> Lines:
    return {
        UseKey(*key): UseCount(int(number), first, last)
        for key, (number, first, last) in counters.items()
    }


def _counters(lines: Lines) -> dict[tuple[str, ...], list[float]]:
    return {tuple(key): list(tally) for key, tally in lines.items()}


def _sum(one: Lines, other: Lines) -> Lines:
    total = dict(one)
    for key, tally in other.items():
        known = total.get(key)
        total[key] = tally if known is None else known.plus(tally)
    return total


def _totals(lines: Lines) -> dict[VersionKey, int]:
    """Return requests per version, without those of our own tools."""
    found: dict[VersionKey, int] = {}
    for key, tally in lines.items():
        if not is_ours(key.agent):
            version = VersionKey(key.group, key.resource, key.version)
            found[version] = found.get(version, 0) + tally.number
    return found


def _document(since: float, lines: Lines) -> dict[str, Any]:
    return {
        "since": moment_text(since),
        "uses": [_line(key, tally) for key, tally in lines.items()],
    }


def _line(key: UseKey, tally: UseCount) -> dict[str, Any]:
    return {
        "group": key.group,
        "resource": key.resource,
        "version": key.version,
        "verb": key.verb,
        "user": key.user,
        "userAgent": key.agent,
        "count": tally.number,
        "first": moment_text(tally.first),
        "last": moment_text(tally.last),
    }


def _read(value: bytes, since: float) -> tuple[float, Lines]:
    try:
        document = orjson.loads(value)
        return min(since, _seconds(document["since"])), dict(_lines(document["uses"]))
    except (ValueError, KeyError, TypeError) as error:
        log.warning("the record of usage counts is not readable and starts over: %s", error)
        return since, {}


def _lines(uses: list[dict[str, Any]]) -> Iterable[tuple[UseKey, UseCount]]:
    for use in uses:
        names = ("group", "resource", "version", "verb", "user", "userAgent")
        key = UseKey(*(str(use[name]) for name in names))
        yield key, UseCount(int(use["count"]), _seconds(use["first"]), _seconds(use["last"]))


def moment_text(moment: float) -> str:
    """Format RFC 3339 with milliseconds, so that requests of one second have an order."""
    shown = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return shown.replace("+00:00", "Z")


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
