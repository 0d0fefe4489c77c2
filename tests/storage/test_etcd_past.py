"""The past is told whole or not at all, however slowly or oddly an etcd tells it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from instar.wire.storage.etcd import history
from instar.wire.storage.etcd.client import EtcdClient
from instar.wire.storage.etcd.history import past_events
from instar.wire.storage.etcd.watch import compacted_revision
from instar.wire.storage.protobuf_fields import bytes_field, int_field
from instar.wire.storage.store import Unavailable

pytestmark = pytest.mark.anyio

RELIABLE, UNRELIABLE, UNKNOWN = (3, 5, 13), (3, 4, 23), (0,)


def header(revision: int) -> bytes:
    return bytes_field(1, int_field(3, revision))


def key_value(revision: int, value: bytes = b"") -> bytes:
    return bytes_field(1, b"/a") + int_field(3, revision) + bytes_field(5, value)


def put(revision: int) -> bytes:
    return header(9) + bytes_field(11, bytes_field(2, key_value(revision, b"x")))


def deletion(revision: int) -> bytes:
    return header(9) + bytes_field(11, int_field(1, 1) + bytes_field(2, key_value(revision)))


CREATED = header(9) + int_field(3, 1)
PROGRESS = header(9)
CANCELLED = header(9) + int_field(4, 1)


class Etcd:
    """At revision 9; ``newest`` is the revision of what it has under the key."""

    address = "fake"

    def __init__(self, version: tuple[int, ...], newest: int = 0) -> None:
        self.versions, self._newest = [version], newest
        self.asked_progress = 0
        self.progress_from = 0
        """The question for progress that is answered first; 0: none."""
        self.told: Callable[[bytes], None] = lambda data: None
        self.ended: Callable[[None], None] = lambda error: None
        self.watched: Callable[[], None] = lambda: None

    async def ask(self, method: str, request: bytes, read: Callable[[bytes], Any]) -> Any:
        found = bytes_field(2, key_value(self._newest, b"x")) if self._newest else b""
        return read(header(9) + found)

    async def version(self, endpoint: object) -> tuple[int, ...]:
        return self.versions[0] if len(self.versions) == 1 else self.versions.pop(0)

    async def watch(self, first: bytes, told: Any, ended: Any) -> tuple[Any, Any]:
        self.told, self.ended = told, ended
        told(CREATED)
        self.watched()
        return self, self

    def send(self, message: bytes) -> None:
        self.asked_progress += 1
        if self.progress_from and self.asked_progress >= self.progress_from:
            self.told(PROGRESS)

    def cancel(self) -> None:
        pass

    def tells(self, *answers: bytes, after: float = 0.0) -> None:
        def tell() -> None:
            for answer in answers:
                self.told(answer)

        def watched() -> None:
            asyncio.get_running_loop().call_later(after, tell)

        self.watched = watched

    async def past(self) -> list[tuple[int, bool]]:
        _, events = await past_events(cast(EtcdClient, self), b"/a")
        return [(event.kv.mod_revision, event.deleted) for event in events]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(history, "_SILENCE", 0.02)
    monkeypatch.setattr(history, "_PROGRESS_SECONDS", 0.02)


@pytest.mark.parametrize("version", [RELIABLE, UNRELIABLE, UNKNOWN])
async def test_history_of_an_existing_key_includes_its_last_write_however_late(
    version: tuple[int, ...],
) -> None:
    etcd = Etcd(version, newest=7)
    etcd.tells(put(3), deletion(5), put(7), after=0.2)

    assert await etcd.past() == [(3, False), (5, True), (7, False)]


@pytest.mark.parametrize("version", [RELIABLE, UNRELIABLE, UNKNOWN])
async def test_history_of_an_existing_key_never_lacks_its_last_write(
    version: tuple[int, ...],
) -> None:
    etcd = Etcd(version, newest=7)
    etcd.progress_from = 1
    etcd.tells(put(3), deletion(5))

    with pytest.raises(Unavailable):
        await etcd.past()


async def test_with_progress_notifications_silence_does_not_end_a_history() -> None:
    etcd = Etcd(RELIABLE)
    etcd.tells(put(3), deletion(5))

    with pytest.raises(Unavailable):
        await etcd.past()


async def test_progress_is_requested_until_the_watch_has_caught_up() -> None:
    etcd = Etcd(RELIABLE)
    etcd.progress_from = 6
    etcd.tells(put(3), deletion(5))

    assert await etcd.past() == [(3, False), (5, True)]
    assert etcd.asked_progress >= 6


async def test_without_progress_notifications_silence_ends_a_history_after_a_deletion() -> None:
    etcd = Etcd(UNRELIABLE)
    etcd.tells(put(3), deletion(5))

    assert await etcd.past() == [(3, False), (5, True)]


async def test_without_progress_a_deletion_that_must_have_been_is_waited_for() -> None:
    late, never = Etcd(UNRELIABLE), Etcd(UNRELIABLE)
    never.tells(put(3))

    def tell() -> None:
        late.told(put(3))
        asyncio.get_running_loop().call_later(0.2, late.told, deletion(5))

    late.watched = tell

    assert await late.past() == [(3, False), (5, True)]
    with pytest.raises(Unavailable):
        await never.past()


@pytest.mark.parametrize("versions", [[UNKNOWN], [UNRELIABLE, UNKNOWN]])
async def test_the_silence_of_an_unresponsive_member_does_not_end_a_history(
    versions: list[tuple[int, ...]],
) -> None:
    etcd = Etcd(UNKNOWN)
    etcd.versions = versions
    etcd.tells(put(3), deletion(5))

    with pytest.raises(Unavailable):
        await etcd.past()


@pytest.mark.parametrize("version", [RELIABLE, UNRELIABLE])
@pytest.mark.parametrize("newest", [0, 7])
async def test_a_watch_that_is_ended_or_refused_tells_no_past(
    version: tuple[int, ...], newest: int
) -> None:
    refused, ended = Etcd(version, newest), Etcd(version, newest)
    refused.tells(CANCELLED)
    ended.watched = lambda: ended.ended(None)

    with pytest.raises(Unavailable):
        await refused.past()
    with pytest.raises(Unavailable):
        await ended.past()


async def test_a_refusal_is_not_taken_for_compaction() -> None:
    etcd = Etcd(RELIABLE)
    etcd.tells(CANCELLED)

    with pytest.raises(Unavailable):
        await compacted_revision(cast(EtcdClient, etcd), b"/a")
