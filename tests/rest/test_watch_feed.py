"""A client that reads, but not as fast as events come, gets them all: they wait, shared, within
bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from instar.server.registry.stored.backend import Backend
from instar.server.registry.verbs.watch import WatchStream
from instar.server.rest import watch_stream
from instar.server.rest.watch_stream import WatchFeed

LARGE = [b"%d" % number * 100 for number in range(8)]


class Reading:
    """A connection that is full after each write until its client has read it."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.unread = 0
        self.aborted = self.finished = False

    def send(self, data: bytes) -> bool:
        self.taken.append(data)
        self.unread += len(data)
        return False

    def backlog(self) -> int:
        return self.unread

    def read(self, feed: WatchFeed) -> None:
        self.unread = 0
        feed.resume()

    def abort(self) -> None:
        self.aborted = True

    def finish(self) -> None:
        self.finished = True


class Wheel:
    def put(self, what: object, when: float) -> int:
        return 0

    def take(self, what: object, step: int) -> None: ...


class Opened:
    """A stream with nothing before its events."""

    finished = False

    def __init__(self) -> None:
        self.opening: list[bytes] = []
        self.hub = self.watcher = self
        self.wheel = Wheel()

    def attach(self, receiver: object) -> None: ...

    def close(self) -> None: ...


def watched(then: Callable[[WatchFeed, Reading], None]) -> Reading:
    async def run() -> Reading:
        outlet = Reading()
        opened = cast(WatchStream, Opened())
        feed = WatchFeed(cast(Backend, None), opened, bookmarks=False, timeout_seconds=60)
        feed.open(cast(Any, outlet))
        then(feed, outlet)
        return outlet

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_stream, "MAX_TOGETHER", 100)
    monkeypatch.setattr(watch_stream, "MAX_PENDING", 1000)


def test_events_for_a_full_connection_wait_as_they_are_until_it_is_read() -> None:
    def then(feed: WatchFeed, outlet: Reading) -> None:
        for data in LARGE:
            feed.receive(data)
        assert outlet.taken == LARGE[:1]
        for _ in LARGE:
            outlet.read(feed)

    outlet = watched(then)
    assert not outlet.aborted
    assert all(taken is data for taken, data in zip(outlet.taken, LARGE, strict=True))


def test_a_client_that_reads_is_not_cut_off_however_much_there_is_in_all() -> None:
    def then(feed: WatchFeed, outlet: Reading) -> None:
        for _ in range(20):
            for data in LARGE:
                feed.receive(data)
            for _ in LARGE:
                outlet.read(feed)

    outlet = watched(then)
    assert not outlet.aborted
    assert outlet.taken == LARGE * 20


def test_a_client_that_does_not_read_is_cut_off_with_little_of_its_own() -> None:
    def then(feed: WatchFeed, outlet: Reading) -> None:
        for data in LARGE + LARGE:
            feed.receive(data)

    outlet = watched(then)
    assert outlet.aborted
    assert outlet.taken == LARGE[:1]


def test_small_events_that_waited_go_together() -> None:
    def then(feed: WatchFeed, outlet: Reading) -> None:
        for number in range(5):
            feed.receive(b"%d;" % number)
        outlet.read(feed)

    assert watched(then).taken == [b"0;", b"1;2;3;4;"]


def test_pending_events_are_sent_before_the_watch_ends() -> None:
    def then(feed: WatchFeed, outlet: Reading) -> None:
        for data in LARGE:
            feed.receive(data)
        feed.over()

    outlet = watched(then)
    assert outlet.finished
    assert outlet.taken == LARGE
