"""etcd store: the ``Store`` contract on an etcd cluster, with kube-apiserver's key layout.

Opened by ``wire/storage/open.py``. Our key ``group/plural/namespace/name`` is etcd's
``<prefix>/group/plural/namespace/name``; the revision is etcd's own. Any number of processes may
share the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from instar.wire.storage.coalesced_call import CoalescedCall
from instar.wire.storage.etcd import messages as wire
from instar.wire.storage.etcd.client import (
    COMPACT,
    PUT,
    RANGE,
    TXN,
    EtcdClient,
    EtcdOptions,
    HistoryGone,
    RevisionNotReached,
    UnansweredCall,
)
from instar.wire.storage.etcd.history import past_events
from instar.wire.storage.etcd.watch import EtcdWatch, compacted_revision
from instar.wire.storage.etcd.write_outcome import WriteOutcome, resolve
from instar.wire.storage.event_followers import Followers
from instar.wire.storage.memory import check_write
from instar.wire.storage.store import (
    Ahead,
    Compacted,
    Ended,
    Event,
    Page,
    Past,
    Record,
    Sink,
    Stale,
    Subscription,
    Unavailable,
    Write,
)

DEFAULT_PREFIX = "/registry"
_CHUNK = 2000


class EtcdStore:
    """Store in etcd: one key for each object, etcd's revisions."""

    def __init__(
        self,
        addresses: list[str],
        prefix: str = DEFAULT_PREFIX,
        options: EtcdOptions | None = None,
    ) -> None:
        self._base = prefix.rstrip("/").encode() + b"/"
        # A key under our prefix that only our watches see, written to advance a watch: see
        # watch.py.
        self._nudge_key = self._base + b"instar.progress"
        self._client = EtcdClient(addresses, options or EtcdOptions())
        self._followers = Followers()
        self._watches: dict[EtcdWatch, None] = {}
        self._revision = CoalescedCall(self._current_revision)
        self._closed = False

    async def snapshot(self, write: Callable[[bytes], object]) -> None:
        """Pass a snapshot of the whole cluster to ``write``, with etcd's checksum at its end."""
        await self.barrier()  # finds a member that answers
        await self._client.snapshot(write)

    async def get(self, key: str) -> Record | None:
        self._check_open()
        request = wire.range_request(self.place(key))
        answer = await self._client.ask(RANGE, request, wire.read_range)
        return next(iter(self._records(answer.kvs)), None)

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        self._check_open()
        first, end = self.place(max(prefix, start)), _after_prefix(self.place(prefix))
        records: list[Record] = []
        while True:
            ask = min(limit - len(records), _CHUNK) if limit else _CHUNK
            answer = await self._read(first, end, ask, revision)
            revision = revision or answer.revision  # all chunks show the same revision
            records += self._records(answer.kvs)
            if not answer.more or len(records) == limit:
                return Page(records, revision, answer.more)
            first = answer.kvs[-1].key + b"\0"

    async def past(self, key: str, *, before: int = 0, limit: int = 0) -> Past:
        self._check_open()
        compacted, found = await past_events(self._client, self.place(key))
        events = [event for event in map(self._event, found) if event is not None]
        if before:
            events = [event for event in events if event.revision < before]
        cut = max(0, len(events) - limit) if limit else 0
        return Past(events[cut:], cut > 0, compacted)

    async def commit(self, write: Write) -> int:
        self._check_open()
        check_write(write)
        key = self.place(write.key)
        request = wire.swap_request(key, write.value, write.expected)
        try:
            answer = await self._client.send(TXN, request, partial(wire.read_swap, write.expected))
        except UnansweredCall as doubt:
            return await self._after_doubt(write, doubt)
        if not answer.succeeded:
            raise Stale(write.key, write.expected, answer.actual)
        event = Event(write.key, write.value, answer.revision)
        for watch in self._watches:
            watch.learn(event)
        return answer.revision

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        self._check_open()
        follower = self._followers.add(after, sink, ended, ())
        span = (self._base, _after_prefix(self._base))
        watch = EtcdWatch(self._client, span, self._event, follower, self._nudge)
        self._watches = {known: None for known in self._watches if not known.done}
        self._watches[watch] = None
        return watch

    async def barrier(self) -> int:
        self._check_open()
        return await self._revision.get()

    async def compact(self, revision: int) -> None:
        self._check_open()
        try:
            await self._client.ask(COMPACT, wire.compaction_request(revision), bytes)
        except HistoryGone:
            return
        except RevisionNotReached as error:
            raise Ahead(revision, await self.barrier()) from error

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for watch in self._watches:
            watch.end(Unavailable("the store is closed"))
            await watch.stopped()
        await self._client.close()

    async def _read(self, first: bytes, end: bytes, limit: int, revision: int) -> wire.RangeAnswer:
        request = wire.range_request(first, end, limit=limit, revision=revision)
        try:
            return await self._client.ask(RANGE, request, wire.read_range)
        except HistoryGone as error:
            raise Compacted(await compacted_revision(self._client, self._base)) from error
        except RevisionNotReached as error:
            raise Ahead(revision, await self.barrier()) from error

    async def _after_doubt(self, write: Write, doubt: UnansweredCall) -> int:
        outcome, revision = await resolve(self._client, self.place(write.key), write)
        if outcome is WriteOutcome.DONE:
            self.expect(revision)
            return revision
        if outcome is WriteOutcome.LOST:
            raise Stale(write.key, write.expected, revision) from doubt
        raise Unavailable(f"{write.key}: unknown whether the write was executed: {doubt}")

    async def _current_revision(self) -> int:
        """Return the cluster's revision by a linearizable read; which key is read does not
        matter."""
        request = wire.range_request(self._base, count_only=True)
        answer = await self._client.ask(RANGE, request, wire.read_range, prompt=True)
        revision = answer.revision
        self.expect(revision)
        return revision

    async def _nudge(self) -> None:
        await self._client.ask(PUT, wire.put_request(self._nudge_key, b"-"), bytes)

    def expect(self, revision: int) -> None:
        for watch in self._watches:
            watch.expect(revision)

    def place(self, key: str) -> bytes:
        return self._base + key.encode(errors="surrogateescape")

    def _key(self, raw: bytes) -> str:
        return raw[len(self._base) :].decode(errors="surrogateescape")

    def _records(self, kvs: list[wire.KeyValue]) -> list[Record]:
        return [
            Record(self._key(kv.key), kv.value, kv.mod_revision)
            for kv in kvs
            if kv.key != self._nudge_key
        ]

    def _event(self, event: wire.WatchEvent) -> Event | None:
        kv = event.kv
        if kv.key == self._nudge_key:
            return None
        return Event(self._key(kv.key), None if event.deleted else kv.value, kv.mod_revision)

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")


def _after_prefix(prefix: bytes) -> bytes:
    """Return the first key after all that start with ``prefix``; UTF-8 has no 0xff to carry
    over."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
