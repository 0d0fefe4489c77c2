"""A failover that loses acknowledged writes: no replica goes on with what the database has lost."""

from __future__ import annotations

import asyncio
import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from tests.replicas.processes import TOKEN, Replica, prepare_pki
from tests.replicas.resources import path
from tests.replicas.test_consistency import create, create_crd, done
from tests.storage.postgres_failover import FailoverPair, failover_pair

pytestmark = pytest.mark.anyio
GROUP = "cut.io"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class OpenWatch:
    """A client's watch through one replica."""

    def __init__(self, replica: Replica, after: str) -> None:
        self._connection = replica.connection()
        self._connection.request(
            "GET",
            f"{path(GROUP)}?watch=1&resourceVersion={after}",
            headers={"Authorization": f"Bearer {TOKEN}"},
        )
        self._answer: http.client.HTTPResponse = self._connection.getresponse()

    def until(self, name: str) -> str:
        """Return the revision of the event that has this name."""
        while (event := self._next())["object"]["metadata"]["name"] != name:
            pass
        return str(event["object"]["metadata"]["resourceVersion"])

    def end(self) -> list[Any]:
        """Return the events until the server ends the watch."""
        events = [json.loads(line) for line in iter(self._answer.readline, b"")]
        self._connection.close()
        return events

    def _next(self) -> Any:
        return json.loads(self._answer.readline())


def _names(replica: Replica, query: str = "") -> list[str]:
    listed = done(replica.request("GET", path(GROUP) + query))
    return sorted(item["metadata"]["name"] for item in listed["items"])


async def _prepare(pair: FailoverPair, replicas: list[Replica]) -> list[OpenWatch]:
    def start() -> list[OpenWatch]:
        for replica in replicas:
            replica.start()
        for replica in replicas:
            replica.until_ready()
        create_crd(replicas[0], GROUP)
        revision = create(replicas[0], GROUP, "kept")["metadata"]["resourceVersion"]
        return [OpenWatch(replica, revision) for replica in replicas]

    watches = await asyncio.to_thread(start)
    query = "select revision from cut.head"
    head = await asyncio.to_thread(pair.primary.sql, query)
    while int(await asyncio.to_thread(pair.standby.sql, query)) < int(head):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    return watches


async def test_all_replicas_load_again_and_end_their_watches(tmp_path: Path) -> None:
    prepare_pki(tmp_path)
    async with failover_pair(synchronous=False) as pair:
        storage = pair.url("cut", pair.primary, pair.standby)
        replicas = [
            Replica(tmp_path, f"r{n}", storage, ("--postgres-timeout", "20")) for n in range(2)
        ]
        try:
            watches = await _prepare(pair, replicas)
            pair.link.swallow_answers = True

            def lose() -> set[str]:
                for number in range(5):
                    create(replicas[0], GROUP, f"lost-{number}")
                return {watch.until("lost-4") for watch in watches}

            (lost,) = await asyncio.to_thread(lose)
            await pair.fail_over(silent=0)

            def compare() -> None:
                for watch in watches:
                    assert watch.end() == []
                for replica in replicas:  # as an informer goes on
                    (told,) = OpenWatch(replica, lost).end()
                    assert (told["type"], told["object"]["code"]) == ("ERROR", 410)
                created = create(replicas[1], GROUP, "new")
                assert int(created["metadata"]["resourceVersion"]) > 10_000_000
                for replica in replicas:
                    assert _names(replica) == ["kept", "new"]
                    assert _names(replica, "?resourceVersion=0") == ["kept", "new"]
                    assert replica.request("GET", path(GROUP, "lost-1")).status == 404

            await asyncio.to_thread(compare)
        finally:
            for replica in replicas:
                replica.kill()
