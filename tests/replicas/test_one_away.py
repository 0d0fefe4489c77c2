"""Three members, two replicas, one of either killed under load: what a client that tries again
sees of it. ``-s`` shows how much it had to try again, and how long it waited."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.replicas import faults
from tests.replicas.checker import Told
from tests.replicas.client import Client, Lost, Refused, Reply
from tests.replicas.processes import Deployment
from tests.replicas.resources import CRDS, crd, note, path

WORKERS = 8
ATTEMPTS = 6
"""What a client is made to try at most; client-go tries ten times."""
PAUSE = 1.0
"""What ``Retry-After`` says."""


class Load:
    """What all workers were told, for the one who breaks something meanwhile."""

    def __init__(self) -> None:
        self.acknowledged: list[Told] = []
        self._news = asyncio.Event()

    def tell(self, reply: Reply) -> None:
        meta = reply.json["metadata"]
        self.acknowledged.append(Told(meta["name"], "", int(meta["resourceVersion"])))
        self._news.set()

    async def more_acknowledged(self, count: int) -> None:
        until = len(self.acknowledged) + count
        while len(self.acknowledged) < until:
            self._news.clear()
            await self._news.wait()


class Worker:
    """Makes, reads, changes, lists and deletes objects of its own, as a controller does: what is
    refused or not answered is tried again, at the next replica."""

    def __init__(self, client: Client, load: Load, group: str, number: int) -> None:
        self._client, self._load, self._group, self._number = client, load, group, number
        self.attempts: list[int] = []
        self.longest = 0.0

    async def run(self, over: asyncio.Event) -> None:
        round_ = 0
        while not over.is_set():
            await self._round(f"n{self._number}-{round_}")
            round_ += 1

    async def _round(self, name: str) -> None:
        mark = uuid.uuid4().hex
        where = path(self._group, name)
        made = await self._insist("POST", path(self._group), note(self._group, name, last=mark))
        if made.status == 409:  # an attempt that was not answered was carried out
            made = await self._insist("GET", where)
        assert made.json["spec"]["last"] == mark
        self._load.tell(made)
        changed = await self._insist("PATCH", where, {"spec": {"count": 1}})
        assert changed.json["spec"] == {"last": mark, "count": 1}
        self._load.tell(changed)
        seen = await self._insist("GET", where)
        assert (
            seen.json["metadata"]["resourceVersion"] == changed.json["metadata"]["resourceVersion"]
        )
        listed = await self._insist("GET", f"{path(self._group)}?limit=500")
        assert name in {each["metadata"]["name"] for each in listed.json["items"]}
        gone = await self._insist("DELETE", where)
        assert gone.status in (200, 404)
        assert (await self._insist("GET", where)).status == 404

    async def _insist(self, method: str, where: str, body: Any = None) -> Reply:
        began = time.monotonic()
        for attempt in range(ATTEMPTS):
            try:
                reply = await self._client.ask(self._number + attempt, method, where, body)
            except Refused:
                await asyncio.sleep(PAUSE)
            except Lost:
                pass  # the other replica is asked at once
            else:
                self.attempts.append(attempt + 1)
                self.longest = max(self.longest, time.monotonic() - began)
                return reply
        raise AssertionError(f"{method} {where}: no answer in {ATTEMPTS} attempts")


Fault = Callable[[Deployment, faults.Load], Awaitable[None]]


@pytest.mark.parametrize("fault", [faults.leader_killed, faults.replica_killed])
def test_a_client_that_tries_again_sees_no_error(trio: Deployment, fault: Fault) -> None:
    async def run() -> list[int]:
        group = f"{fault.__name__.replace('_', '-')}.away.io"
        async with Client.over(trio.replicas) as client:
            assert (await client.ask(0, "POST", CRDS, crd(group))).status == 201
            load, over = Load(), asyncio.Event()
            workers = [Worker(client, load, group, number) for number in range(WORKERS)]
            running = [asyncio.ensure_future(worker.run(over)) for worker in workers]
            await asyncio.wait_for(_broken(trio, fault, load, running), 120)
            over.set()
            await asyncio.gather(*running)
            left = await client.ask(0, "GET", path(group))
            assert left.json["items"] == []
        print(f"longest {max(worker.longest for worker in workers):.2f} s")
        return [attempt for worker in workers for attempt in worker.attempts]

    attempts = asyncio.run(run())
    print(f"{len(attempts)} requests; attempts: {sorted(Counter(attempts).items())}")
    assert sum(attempt > 1 for attempt in attempts) < len(attempts) / 2


async def _broken(
    deployment: Deployment, fault: Fault, load: Load, running: list[asyncio.Task[None]]
) -> None:
    async def breaking() -> None:
        await load.more_acknowledged(100)
        await fault(deployment, load)
        await load.more_acknowledged(100)

    breaks = asyncio.ensure_future(breaking())
    done, _ = await asyncio.wait([breaks, *running], return_when=asyncio.FIRST_COMPLETED)
    for each in done:
        each.result()
