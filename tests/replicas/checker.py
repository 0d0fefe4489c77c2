"""Clients that keep a record of what the replicas told them, and hold the replicas to it.

The promise: an acknowledged write is there, at the revision told, once; a write that was refused
or lost its answer is there at most once; whoever reads after an acknowledged write sees it,
through whichever replica; every watcher saw exactly that, in order, without a gap, although it
moved from replica to replica; and the final state is what the events add up to.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.replicas.client import Client, Gone, Lost, Refused, Reply
from tests.replicas.follower import Follower, Seen
from tests.replicas.resources import CRDS, crd, note, path

COUNTER = "counter"
_STEPS = 6


class Told(NamedTuple):
    """An acknowledged write; ``last`` is None for a deletion, which tells no revision."""

    name: str
    last: str | None
    revision: int


class Doubt(Exception):
    """Nobody knows what became of a write: its object is left alone from now on."""


class Checker:
    def __init__(self, client: Client, group: str, *, seed: int = 0) -> None:
        self.acknowledged: list[Told] = []
        self.doubtful: set[tuple[str, str | None]] = set()
        self.refused = self.lost = self.reads = 0
        self._client, self._group = client, group
        self._chance = random.Random(seed)
        self._tokens = itertools.count()
        self._names = itertools.count()
        self._followers: list[Follower] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._progress = asyncio.Event()

    async def start(self, writers: int) -> None:
        answer = await self._client.ask(0, "POST", CRDS, crd(self._group))
        assert answer.status == 201, answer
        created = await self._client.ask(0, "POST", path(self._group), self._note(COUNTER, count=0))
        revision = created.json["metadata"]["resourceVersion"]
        collection = path(self._group)
        for at in range(len(self._client.replicas)):
            self._followers.append(Follower(self._client, collection, revision, at))
        self._tasks = [asyncio.create_task(self._write()) for _ in range(writers)]

    async def until(self, condition: Callable[[], bool], within: float = 40.0) -> None:
        async with asyncio.timeout(within):
            while not condition():
                self._progress.clear()
                progress = asyncio.ensure_future(self._progress.wait())
                await asyncio.wait([progress, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
                progress.cancel()
                self._raise_failures()

    async def more_acknowledged(self, count: int) -> None:
        goal = len(self.acknowledged) + count
        await self.until(lambda: len(self.acknowledged) >= goal)

    async def finish(self) -> None:
        """Stop writing, and compare. All replicas and a majority of etcd must be up."""
        self._stopping = True
        async with asyncio.timeout(60):
            await asyncio.gather(*self._tasks)
            lists = [await self._listed(at) for at in range(len(self._client.replicas))]
            marker = await self._insist("POST", path(self._group), self._note("marker"))
            end = int(marker.json["metadata"]["resourceVersion"])
            for follower in self._followers:
                await follower.reached(end)
            for follower in self._followers:
                await follower.stop()
        self._verify([[seen for seen in f.seen if seen.revision < end] for f in self._followers])
        for revision, items in lists:
            assert items == _state_at(self._followers[0].seen, revision)

    def _verify(self, streams: list[list[Seen]]) -> None:
        first = streams[0]
        for other in streams[1:]:
            assert other == first, f"two watchers saw different things: {_difference(first, other)}"
        seen = {(s.name, s.last): s.revision for s in first}
        lost = [t for t in self.acknowledged if seen.get((t.name, t.last)) is None]
        assert not lost, f"acknowledged and never seen by a watcher: {lost[:3]}"
        moved = [t for t in self.acknowledged if t.revision and seen[t.name, t.last] != t.revision]
        assert not moved, f"acknowledged at another revision than seen: {moved[:3]}"
        assert len(seen) == len(first), "a write was applied twice"
        known = {(t.name, t.last) for t in self.acknowledged} | self.doubtful
        assert not set(seen) - known, f"nobody wrote {sorted(set(seen) - known)[:3]}"
        for state in first:
            assert len(state.tokens) == len(set(state.tokens)), f"a patch applied twice: {state}"
        counts = [s.number for s in first if s.name == COUNTER]
        assert counts == list(range(1, len(counts) + 1)), "an increment was lost"

    async def _listed(self, at: int) -> tuple[int, dict[str, str]]:
        answer = await self._insist("GET", path(self._group), at=at)
        items = {i["metadata"]["name"]: i["spec"]["last"] for i in answer.json["items"]}
        items.pop(COUNTER)
        return int(answer.json["metadata"]["resourceVersion"]), items

    async def _write(self) -> None:
        while not self._stopping:
            with contextlib.suppress(Doubt):
                await self._life_of_one(f"note-{next(self._names)}")
                await self._increment()

    async def _life_of_one(self, name: str) -> None:
        """Create, change in every way there is, and (mostly) delete one object."""
        obj = self._note(name, tokens=[])
        answer = await self._change(name, obj["spec"]["last"], "POST", "", obj, 201)
        for step in range(_STEPS):
            if self._stopping:
                return
            token = self._token()
            if step % 3 == 0:
                body: Any = answer.json
                body["spec"]["last"] = token
                answer = await self._change(name, token, "PUT", f"/{name}", body, 200)
            elif step % 3 == 1:
                body = [
                    {"op": "add", "path": "/spec/tokens/-", "value": token},
                    {"op": "replace", "path": "/spec/last", "value": token},
                ]
                answer = await self._change(name, token, "PATCH", f"/{name}", body, 200)
            else:
                body = {"spec": {"last": token}}
                answer = await self._change(name, token, "PATCH", f"/{name}", body, 200)
            await self._read_elsewhere(name, answer.json["metadata"]["resourceVersion"])
        if self._chance.random() < 0.7:
            await self._change(name, None, "DELETE", f"/{name}", None, 200)
            await self._read_elsewhere(name, None)

    async def _increment(self) -> None:
        """All writers meet here: read, add one, write if nobody else was faster."""
        try:
            current = (await self._ask("GET", f"/{COUNTER}")).json
        except (Refused, Lost):
            return
        token = self._token()
        current["spec"] = {"last": token, "count": current["spec"]["count"] + 1}
        try:
            answer = await self._ask("PUT", f"/{COUNTER}", current)
        except (Refused, Lost):
            self._note_doubt(COUNTER, token)
            return
        if answer.status == 200:
            self._note_told(COUNTER, token, answer)
        else:
            assert answer.status == 409, answer

    async def _change(
        self, name: str, last: str | None, method: str, rest: str, body: Any, expected: int
    ) -> Reply:
        try:
            answer = await self._ask(method, rest, body)
        except (Refused, Lost) as error:
            self._note_doubt(name, last)
            self.refused += isinstance(error, Refused)
            self.lost += isinstance(error, Lost)
            await asyncio.sleep(0.05)
            raise Doubt from error
        assert answer.status == expected, f"{method} {name}: {answer}"
        self._note_told(name, last, answer)
        return answer

    async def _read_elsewhere(self, name: str, revision: str | None) -> None:
        """What was acknowledged is seen by a read through any replica, at once."""
        if self._chance.random() > 0.5:
            return
        try:
            answer = await self._ask("GET", f"/{name}")
        except (Refused, Lost):
            return
        self.reads += 1
        if revision is None:
            assert answer.status == 404, f"a stale read of what was deleted: {answer}"
        else:
            assert answer.status == 200, f"a stale read: {answer}"
            assert answer.json["metadata"]["resourceVersion"] == revision, "a stale read"

    async def _ask(self, method: str, rest: str, body: Any = None) -> Reply:
        at = self._chance.randrange(len(self._client.replicas))
        return await self._client.ask(at, method, path(self._group) + rest, body)

    async def _insist(self, method: str, where: str, body: Any = None, at: int = 0) -> Reply:
        while True:
            try:
                return await self._client.ask(at, method, where, body)
            except (Refused, Lost):
                await asyncio.sleep(0.1)

    def _note_told(self, name: str, last: str | None, answer: Reply) -> None:
        revision = 0 if last is None else int(answer.json["metadata"]["resourceVersion"])
        self.acknowledged.append(Told(name, last, revision))
        self._progress.set()

    def _note_doubt(self, name: str, last: str | None) -> None:
        self.doubtful.add((name, last))
        self._progress.set()

    def _raise_failures(self) -> None:
        for task in [*self._tasks, *(f.task for f in self._followers)]:
            if task.done():
                task.result()

    def _note(self, name: str, **spec: Any) -> dict[str, Any]:
        return note(self._group, name, last=self._token(), **spec)

    def _token(self) -> str:
        return f"t{next(self._tokens)}"


def _state_at(seen: list[Seen], revision: int) -> dict[str, str]:
    state: dict[str, str] = {}
    for event in seen:
        if event.revision > revision:
            break
        state.pop(event.name, None)
        if event.last is not None:
            state[event.name] = event.last
    state.pop(COUNTER, None)
    return state


def _difference(one: list[Seen], other: list[Seen]) -> Iterator[Any] | str:
    pairs = itertools.zip_longest(one, other)
    return next((f"{a} / {b}" for a, b in pairs if a != b), "")


__all__ = ["Checker", "Gone"]
