"""Who joins a channel sees each change once, whatever waited for a conversion meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from instar.registry.stored.entry import Entry, Held
from instar.registry.stored.watchers import WatchHub
from instar.storage.collection import Change, Collection, WindowLimits


class Slow:
    """Frames that wait for a conversion until it is released, and then come at once."""

    def __init__(self) -> None:
        self.released = asyncio.Event()

    def __call__(self, change: Change[Entry]) -> bytes | Coroutine[Any, Any, bytes]:
        if self.released.is_set():
            return b"%d;" % change.revision
        return self._framed(change)

    async def _framed(self, change: Change[Entry]) -> bytes:
        await self.released.wait()
        return b"%d;" % change.revision

    async def prefetch(self, changes: Sequence[Change[Entry]]) -> None:
        await asyncio.sleep(0)


class Taken:
    def __init__(self) -> None:
        self.data = b""
        self.complete = asyncio.Event()

    def receive(self, data: bytes) -> None:
        self.data += data
        if data.endswith(b"3;"):
            self.complete.set()

    def over(self) -> None:
        self.complete.set()


def change(revision: int) -> Change[Entry]:
    return Change(revision, "a", Held(b"{}", revision, "a"), None)


async def joined_while_changes_wait() -> tuple[bytes, bytes]:
    objects: Collection[Entry] = Collection("p/", 0, WindowLimits())
    hub, frames, old, new = WatchHub(objects), Slow(), Taken(), Taken()
    hub.join("kind", frames, 0).attach(old)
    objects.apply(change(1))
    objects.apply(change(2))
    hub.join("kind", frames, 2).attach(new)
    objects.apply(change(3))
    frames.released.set()
    await asyncio.gather(old.complete.wait(), new.complete.wait())
    return old.data, new.data


def test_who_joins_while_changes_wait_is_not_told_what_it_has_seen() -> None:
    told_before, told_since = asyncio.run(joined_while_changes_wait())
    assert told_before == b"1;2;3;"
    assert told_since == b"3;"
