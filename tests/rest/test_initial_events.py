"""The objects that a watch begins with are encoded when they are sent, and not all at once."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import UnreadableEntry
from instar.server.registry.stored.views import Views
from instar.server.registry.verbs.watch import WatchStream
from instar.server.registry.verbs.watch_events import EventRenderer, InitialEvents
from instar.server.rest.watch_stream import WatchFeed
from tests.rest.test_watch_feed import Opened, Reading

_BODIES = [b'{"number":%d}' % number for number in range(250)]
_LINES = [b'{"type":"ADDED","object":%b}\n' % body for body in _BODIES]


class Counted(EventRenderer):
    """Counts the lines that it encodes."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, type_: str, view: bytes) -> bytes:
        self.made += 1
        return super().__call__(type_, view)


class Damaged(Views):
    def __getitem__(self, index: Any) -> Any:
        raise UnreadableEntry("the packed value of d/a cannot be read: damaged")


def fed(opening: InitialEvents) -> tuple[WatchFeed, Reading]:
    opened = Opened()
    opened.opening = cast(Any, opening)
    feed = WatchFeed(
        cast(Backend, None), cast(WatchStream, opened), bookmarks=False, timeout_seconds=60
    )
    outlet = Reading()
    feed.open(cast(Any, outlet))
    return feed, outlet


@pytest.mark.parametrize("cut", [slice(0, 100), slice(200, 300), slice(250, 260), slice(7, 7)])
def test_any_part_has_the_lines_of_a_list(cut: slice) -> None:
    events = InitialEvents(Views(_BODIES), EventRenderer(), [b"end\n"])

    assert len(events) == 251
    assert events[cut] == [*_LINES, b"end\n"][cut]
    assert (events[3], events[250]) == (_LINES[3], b"end\n")


def test_lines_that_the_client_has_not_read_yet_are_not_encoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("instar.server.rest.watch_stream._PACE", 10)

    async def run() -> None:
        render = Counted()
        feed, outlet = fed(InitialEvents(Views(_BODIES), render, [b"end\n"]))
        assert render.made == 32
        for _ in range(250 // 32):
            outlet.read(feed)
        assert render.made == 250
        assert b"".join(outlet.taken) == b"".join([*_LINES, b"end\n"])

    asyncio.run(run())


def test_an_object_that_cannot_be_read_ends_the_stream_with_an_error_event() -> None:
    async def run() -> None:
        _, outlet = fed(InitialEvents(Damaged(_BODIES), EventRenderer(), []))

        [line] = outlet.taken
        assert line.startswith(b'{"type":"ERROR"')
        assert b"d/a" in line
        assert outlet.finished

    asyncio.run(run())
