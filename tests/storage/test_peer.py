"""A store lent to another process, and what is left of it when the lender hangs up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from instar.base.errors import ServiceUnavailable
from instar.server.http.connection_balancer import SOCKET
from instar.server.http.messages import Request
from instar.server.lifecycle.lifetime import running
from instar.server.registry.stored.backend import Backend
from instar.server.settings import Settings
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import Event, Page, Record, StoreError, StoreLost, Unavailable, Write
from instar.wire.storage.workers import store_server
from instar.wire.storage.workers.store_server import StoreServer
from instar.wire.storage.workers.worker_store import PeerStore
from tests.replicas.resources import CRDS, crd


def test_a_worker_notices_that_the_owner_disconnected(tmp_path: Path) -> None:
    async def scenario() -> None:
        lender = StoreServer(MemoryStore(), tmp_path)
        await lender.start()
        lent = await PeerStore.connect(tmp_path)
        assert await lent.get("nothing") is None
        waiting = asyncio.create_task(lent.lost())

        await lender.close()

        with pytest.raises(Unavailable, match="gone"):
            await asyncio.wait_for(waiting, 30)
        await lent.close()

    asyncio.run(scenario())


def test_a_request_gets_a_retry_answer_when_the_owner_has_disconnected(tmp_path: Path) -> None:
    async def scenario() -> None:
        lender = StoreServer(MemoryStore(), tmp_path)
        await lender.start()
        lent = await PeerStore.connect(tmp_path)
        assert await lent.get("nothing") is None
        backend = Backend(lent)
        waiting = asyncio.create_task(lent.lost())
        await lender.close()
        await asyncio.wait([waiting], timeout=30)

        with pytest.raises(ServiceUnavailable, match="the storage is unavailable"):
            backend.behind()
        waiting.exception()
        await backend.stop()

    asyncio.run(scenario())


def test_a_long_past_is_handed_over_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of it than a borrower may be behind later: it came before anything could be read."""
    monkeypatch.setattr(store_server, "_MOST_BACKLOG", 1 << 20)
    seen: list[int] = []
    all_seen = asyncio.Event()

    def take(events: Sequence[Event], revision: int) -> None:
        seen.extend(event.revision for event in events)
        if events[-1].value == b"last":
            all_seen.set()

    async def scenario() -> None:
        store = MemoryStore()
        first = revision = await store.commit(Write("a", b"first", 0))
        for _ in range(20):
            revision = await store.commit(Write("a", b"x" * (1 << 20), revision))
        lender = StoreServer(store, tmp_path)
        await lender.start()
        lent = await PeerStore.connect(tmp_path)

        lent.subscribe(first, take, lambda error: None)
        assert await lent.get("nothing") is None  # by now the lender has sent it all
        await store.commit(Write("a", b"last", revision))

        await asyncio.wait_for(all_seen.wait(), 30)
        await lent.close()
        await lender.close()

    asyncio.run(scenario())
    assert seen == list(range(seen[0], seen[0] + 21))


def test_a_server_does_not_wait_for_a_lender_that_has_hung_up(tmp_path: Path) -> None:
    class Refusing(MemoryStore):
        async def range(
            self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
        ) -> Page:
            await lenders[0].close()
            return await super().range(prefix, start=start, limit=limit, revision=revision)

    async def scenario() -> None:
        lenders.append(StoreServer(Refusing(), tmp_path))
        await lenders[0].start()
        async with asyncio.timeout(30):
            with pytest.raises(StoreLost):
                async with running(storage=f"peer:{tmp_path}"):
                    pass

    lenders: list[StoreServer] = []
    asyncio.run(scenario())


def test_a_message_that_cannot_be_sent_raises_an_error(tmp_path: Path) -> None:
    class Odd(MemoryStore):
        async def get(self, key: str) -> Record | None:
            return Record(key, b"", object())  # type: ignore[arg-type]

    async def scenario() -> None:
        lender = StoreServer(Odd(), tmp_path)
        await lender.start()
        lent = await PeerStore.connect(tmp_path)

        with pytest.raises(StoreError, match="not JSON serializable"):
            await asyncio.wait_for(lent.get("a"), 30)

        await lent.close()
        await lender.close()

    asyncio.run(scenario())


def test_a_worker_accepts_no_clients_before_it_can_serve_them(tmp_path: Path) -> None:
    asked, may_answer, met = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Held(MemoryStore):
        async def range(
            self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
        ) -> Page:
            asked.set()
            await may_answer.wait()
            return await super().range(prefix, start=start, limit=limit, revision=revision)

    def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.set()
        writer.close()

    async def scenario() -> None:
        lender = StoreServer(Held(), tmp_path)
        await lender.start()
        meeting = await asyncio.start_unix_server(meet, tmp_path / SOCKET)
        settings = Settings(storage=f"peer:{tmp_path}", shared_port=tmp_path, worker=True)
        async with contextlib.AsyncExitStack() as stack:
            starting = asyncio.create_task(stack.enter_async_context(running(settings)))
            await asyncio.wait_for(asked.wait(), 30)
            assert not met.is_set()

            may_answer.set()

            await asyncio.wait_for(starting, 30)
            await asyncio.wait_for(met.wait(), 30)
        meeting.close()
        await lender.close()

    asyncio.run(scenario())


def test_discovery_through_a_worker_shows_a_crd_written_just_before(tmp_path: Path) -> None:
    group, key = "moment.io", "apiextensions.k8s.io/customresourcedefinitions/notes.moment.io"

    async def scenario() -> int:
        owned = MemoryStore()
        lender = StoreServer(owned, tmp_path)
        await lender.start()
        async with running(storage=f"peer:{tmp_path}") as worker:
            allowed = {b"authorization": f"Bearer {worker.token}".encode()}

            async def ask(method: str, path: str, body: bytes = b"") -> int:
                request = Request(method, path, {}, allowed, body)
                return (await worker.machinery.app(request, None)).status

            assert await ask("POST", CRDS, orjson.dumps(crd(group))) == 201
            established = await owned.get(key)
            assert established is not None
            assert await ask("DELETE", f"{CRDS}/notes.{group}") == 200
            assert await ask("GET", f"/apis/{group}/v1") == 404

            await owned.commit(Write(key, established.value, 0))
            found = await ask("GET", f"/apis/{group}/v1")
        await lender.close()
        return found

    assert asyncio.run(scenario()) == 200
