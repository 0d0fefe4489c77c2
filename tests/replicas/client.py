"""A client of several replicas for tests under load: says what an answer means for a write."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.replicas.processes import TOKEN, Replica

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"


class Refused(Exception):
    """Busy or without storage, said as it must be said: 429, 503 or 504 with ``Retry-After``."""


class Lost(Exception):
    """No answer: the replica went away, or did not speak in time."""


class Gone(Exception):
    """410: the history asked for is compacted."""


@dataclass(frozen=True)
class Reply:
    status: int
    json: Any


class Client:
    def __init__(self, replicas: Sequence[Replica], session: aiohttp.ClientSession) -> None:
        self.replicas = replicas
        self._session = session

    @classmethod
    @asynccontextmanager
    async def over(cls, replicas: Sequence[Replica]) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=30)
        async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:
            # It would repeat a PUT by itself where another process takes over the port.
            session._retry_connection = False
            yield cls(replicas, session)
        await asyncio.sleep(0.05)  # aiohttp leaves closing TLS connections to the loop

    async def ask(self, at: int, method: str, path: str, body: Any = None) -> Reply:
        """An answer that may be relied on; everything else is ``Refused`` or ``Lost``."""
        replica = self.replicas[at % len(self.replicas)]
        kind = "application/json"
        if method == "PATCH":
            kind = JSON_PATCH if isinstance(body, list) else MERGE_PATCH
        try:
            async with self._session.request(
                method,
                replica.url + path,
                data=None if body is None else json.dumps(body).encode(),
                headers={"Content-Type": kind},
                ssl=replica.context,
            ) as answer:
                return judged(answer.status, answer.headers.get("Retry-After"), await answer.read())
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            raise Lost(f"{replica.name}: {error!r}") from error

    async def watch(self, at: int, path: str, revision: str) -> AsyncIterator[dict[str, Any]]:
        """Events after a revision until the stream ends for whatever reason."""
        replica = self.replicas[at % len(self.replicas)]
        query = f"?watch=1&allowWatchBookmarks=true&resourceVersion={revision}"
        try:
            async with self._session.get(
                replica.url + path + query,
                ssl=replica.context,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=None),
            ) as answer:
                if answer.status != 200:
                    judged(answer.status, answer.headers.get("Retry-After"), await answer.read())
                async for line in answer.content:
                    yield judged_event(json.loads(line))
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            raise Lost(f"{replica.name}: {error!r}") from error


def judged(status: int, retry_after: str | None, body: bytes) -> Reply:
    if status in (429, 503, 504):
        assert retry_after, f"{status} without Retry-After: {body!r}"
        raise Refused(body.decode())
    assert status < 500, f"a failure nobody explains: {status} {body!r}"
    return Reply(status, json.loads(body) if body[:1] == b"{" else body.decode())


def judged_event(event: dict[str, Any]) -> dict[str, Any]:
    if event["type"] == "ERROR":
        if event["object"]["code"] == 410:
            raise Gone(event["object"]["message"])
        raise AssertionError(f"a watch failed: {event}")
    return event
