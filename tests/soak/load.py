"""Readers, writers and watchers of a few objects, in two versions with a webhook between them.

Everything they do is written down. A *chapter* is a handful of objects that live for some seconds;
at its end every history is checked, and what the watchers saw is held against what the writers
were told.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from instar.base.json_values import Object
from tests.replicas.checker import Told
from tests.replicas.client import Client, Lost, Refused, Reply
from tests.replicas.follower import Follower, Seen
from tests.replicas.resources import CRDS
from tests.soak.history import Answer, Contradiction, Operation, State, Verb, contradiction
from tests.support import crds

GROUP = "soak.example.com"
NAME = f"notes.{GROUP}"
_ANSWERS = {200: Answer.DONE, 201: Answer.DONE, 404: Answer.ABSENT, 409: Answer.CONFLICT}
_OBJECTS = 5
_CHAPTER_SECONDS = 300.0
Change = tuple[Verb, str, str, Any, State]
"""Verb, method, rest of the path, body, and the token a swap expects."""


def convert(obj: Object, api_version: str) -> Object:
    """v1 keeps its token in ``spec.last``, v2 in ``spec.value.last``."""
    made = {**obj, "apiVersion": api_version}
    if "spec" in obj:
        spec = dict(obj["spec"])
        if api_version.endswith("/v2") and "last" in spec:
            spec = {"value": {"last": spec["last"]}}
        elif api_version.endswith("/v1") and "value" in spec:
            spec = {"last": spec["value"]["last"]}
        made["spec"] = spec
    return made


def crd(conversion: Object, number: int) -> Object:
    """The one of so many changes: a field more, and the other version stored."""
    text = {"type": "string"}
    more = {f"extra{number % 7}": text}
    one = crds.fields(spec=crds.fields(last=text, **more))
    two = crds.fields(spec=crds.fields(value=crds.fields(last=text), **more))
    versions = [
        crds.version("v1", one, storage=number % 2 == 0),
        crds.version("v2", two, storage=number % 2 == 1),
    ]
    return crds.crd(*versions, group=GROUP, plural="notes", kind="Note", conversion=conversion)


def path(version: str) -> str:
    return f"/apis/{GROUP}/{version}/namespaces/default/notes"


class Load:
    def __init__(self, client: Client, conversion: Object, chance: random.Random) -> None:
        self.acknowledged: list[Told] = []
        self.operations = self.unanswered = self.events = self.changes = self.histories = 0
        self._client, self._conversion, self._chance = client, conversion, chance
        self._tokens = itertools.count()
        self._chapter = 0
        self._histories: dict[str, list[Operation]] = {}
        self._progress = asyncio.Event()
        self._ending = False

    # --- one chapter ---------------------------------------------------------------------------

    async def prepare(self) -> None:
        await self._insist("POST", CRDS, crd(self._conversion, 0))

    async def chapter(self, clients: int, meanwhile: Callable[[], Any]) -> None:
        """``meanwhile`` disturbs; when it is done, so is the chapter."""
        self._chapter += 1
        self._histories = {f"n{self._chapter}-{at}": [] for at in range(_OBJECTS)}
        self.acknowledged, self._ending = [], False
        listed = await self._insist("GET", path("v1"))
        revision = listed.json["metadata"]["resourceVersion"]
        replicas = range(max(len(self._client.replicas), 2))
        followers = [Follower(self._client, path("v1"), revision, at) for at in replicas]
        tasks = [asyncio.create_task(self._work()) for _ in range(clients)]
        tasks.append(asyncio.create_task(self._change_crd()))
        disturbing = asyncio.ensure_future(meanwhile())
        watched = [*tasks, *(follower.task for follower in followers)]
        try:
            async with asyncio.timeout(_CHAPTER_SECONDS):
                await asyncio.wait([disturbing, *watched], return_when=asyncio.FIRST_COMPLETED)
                _raise_failures(watched)
                await disturbing
                self._ending = True
                await asyncio.gather(*tasks)
                await self._compared(followers)
        finally:
            for task in (disturbing, *watched):
                task.cancel()
            await asyncio.gather(disturbing, *watched, return_exceptions=True)

    async def more_acknowledged(self, count: int) -> None:
        goal = len(self.acknowledged) + count
        async with asyncio.timeout(60):
            while len(self.acknowledged) < goal:
                self._progress.clear()
                await self._progress.wait()

    async def _compared(self, followers: Sequence[Follower]) -> None:
        marker = await self._insist(
            "POST", path("v1"), self._note(f"m{self._chapter}", "v1", "end")
        )
        end = int(marker.json["metadata"]["resourceVersion"])
        async with asyncio.timeout(90):
            for follower in followers:
                await follower.reached(end)
                await follower.stop()
        streams = [[seen for seen in each.seen if seen.revision < end] for each in followers]
        self._check_watched(streams)
        for name, history in self._histories.items():
            states = [event.last for event in streams[0] if event.name == name]
            wrong = await asyncio.to_thread(contradiction, history, states)
            assert wrong is None, f"{name}: {_told(history, wrong)}"
        self.histories += len(self._histories)
        for name in [*self._histories, f"m{self._chapter}"]:
            await self._insist("DELETE", f"{path('v1')}/{name}")

    def _check_watched(self, streams: list[list[Seen]]) -> None:
        first = streams[0]
        self.events += len(first)
        assert all(stream == first for stream in streams), "two watchers saw different things"
        seen: dict[tuple[str, State], int] = {
            (event.name, event.last): event.revision for event in first if event.last
        }
        assert len(seen) == sum(bool(event.last) for event in first), "a write was applied twice"
        for told in self.acknowledged:
            assert seen.get((told.name, told.last)) == told.revision, f"not as told: {told}"
        asked = {
            (name, each.token)
            for name, history in self._histories.items()
            for each in history
            if each.verb is not Verb.READ
        }
        assert set(seen) <= asked, f"nobody wrote {list(set(seen) - asked)[:3]}"
        for name, history in self._histories.items():
            final = next((event.last for event in reversed(first) if event.name == name), None)
            late = Operation(Verb.READ, Answer.DONE, monotonic(), monotonic() + 1, final)
            history.append(late if final else late._replace(answer=Answer.ABSENT))

    # --- clients -------------------------------------------------------------------------------

    async def _work(self) -> None:
        """One client: what it saw last is what it expects when it swaps."""
        expects: dict[str, tuple[State, str]] = {}
        while not self._ending:
            name = self._chance.choice(list(self._histories))
            version = self._chance.choice(("v1", "v2"))
            what = self._chance.random()
            if what < 0.35:
                await self._read(name, version, expects)
            elif what < 0.5:
                await self._list(version, expects)
            else:
                await self._write(name, version, expects)

    async def _read(self, name: str, version: str, expects: dict[str, tuple[State, str]]) -> None:
        began = monotonic()
        reply = await self._ask("GET", f"{path(version)}/{name}")
        if reply is None:
            return
        token = _token(reply.json) if reply.status == 200 else None
        if token:
            expects[name] = token, reply.json["metadata"]["resourceVersion"]
        answer = _answer(reply, name)
        self._note_done(name, Operation(Verb.READ, answer, began, monotonic(), token))

    async def _list(self, version: str, expects: dict[str, tuple[State, str]]) -> None:
        """A list is a read of every object at one moment."""
        began = monotonic()
        reply = await self._ask("GET", path(version))
        if reply is None:
            return
        ended = monotonic()
        found = {item["metadata"]["name"]: _token(item) for item in reply.json["items"]}
        for name in self._histories:
            token = found.get(name)
            answer = Answer.DONE if token else Answer.ABSENT
            self._note_done(name, Operation(Verb.READ, answer, began, ended, token))

    async def _write(self, name: str, version: str, expects: dict[str, tuple[State, str]]) -> None:
        token = f"t{next(self._tokens)}"
        verb, method, rest, body, expected = self._change(name, version, token, expects)
        began = monotonic()
        reply = await self._ask(method, path(version) + rest, body)
        if reply is None:
            self.unanswered += 1
            self._note_done(
                name, Operation(verb, Answer.NONE, began, token=token, expected=expected)
            )
            return
        answer = _answer(reply, name)
        if answer is Answer.DONE and verb is not Verb.DELETE:
            revision = reply.json["metadata"]["resourceVersion"]
            expects[name] = token, revision
            self.acknowledged.append(Told(name, token, int(revision)))
            self._progress.set()
        self._note_done(name, Operation(verb, answer, began, monotonic(), token, expected))

    def _change(
        self, name: str, version: str, token: str, expects: dict[str, tuple[State, str]]
    ) -> Change:
        obj = self._note(name, version, token)
        what = self._chance.random()
        if what < 0.3:
            return Verb.CREATE, "POST", "", obj, None
        if what < 0.55:
            return Verb.SET, "PATCH", f"/{name}", {"spec": obj["spec"]}, None
        if what < 0.85 and name in expects:
            expected, revision = expects[name]
            obj["metadata"]["resourceVersion"] = revision
            return Verb.SWAP, "PUT", f"/{name}", obj, expected
        return Verb.DELETE, "DELETE", f"/{name}", None, None

    async def _change_crd(self) -> None:
        while not self._ending:
            await asyncio.sleep(1.0)
            number = self.changes + 1
            body = {"spec": {"versions": crd(self._conversion, number)["spec"]["versions"]}}
            reply = await self._ask("PATCH", f"{CRDS}/{NAME}", body)
            if reply is not None:
                assert reply.status == 200, reply
                self.changes = number

    # --- requests ------------------------------------------------------------------------------

    async def _ask(self, method: str, where: str, body: Any = None) -> Reply | None:
        """None where nothing is known of what became of it."""
        at = self._chance.randrange(len(self._client.replicas))
        self.operations += 1
        try:
            return await self._client.ask(at, method, where, body)
        except (Refused, Lost):
            await asyncio.sleep(0.05)
            return None

    async def _insist(self, method: str, where: str, body: Any = None) -> Reply:
        async with asyncio.timeout(90):
            while True:
                reply = await self._ask(method, where, body)
                if reply is not None:
                    return reply

    def _note_done(self, name: str, operation: Operation) -> None:
        self._histories[name].append(operation)

    def _note(self, name: str, version: str, token: str) -> Object:
        spec: Object = {"last": token} if version == "v1" else {"value": {"last": token}}
        frame = {"apiVersion": f"{GROUP}/{version}", "kind": "Note", "metadata": {"name": name}}
        return {**frame, "spec": spec}


def _told(history: list[Operation], wrong: Contradiction) -> str:
    """What no order explains, with what was going on then."""
    stuck = {each.token for each in wrong.stuck}
    when = min(each.began for each in wrong.stuck)
    near = [
        each
        for each in sorted(history, key=lambda each: each.began)
        if each.token in stuck
        or (each.began - 1 < when < each.ended + 1 and each.verb != Verb.READ)
    ]
    lines = (
        f"{each.began - when:+.4f} … {each.ended - when:+.4f} {each.verb.name} {each.answer.name} "
        f"{each.token} (expected {each.expected})"
        for each in near
    )
    return f"{wrong.explained} operations explained, then stuck:\n" + "\n".join(lines)


def _answer(reply: Reply, name: str) -> Answer:
    """A refusal must be about the object: a resource that is not known is no absent object."""
    assert reply.status in _ANSWERS, reply
    answer = _ANSWERS[reply.status]
    assert answer is Answer.DONE or reply.json["details"]["name"] == name, reply
    return answer


def _token(obj: Object) -> str:
    spec = obj["spec"]
    token: str = spec["last"] if "last" in spec else spec["value"]["last"]
    return token


def _raise_failures(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done():
            task.result()
