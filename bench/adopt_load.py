"""Clients that write, read and watch a group while ``bench.adopt_rounds`` moves it forth and back.

Writers keep what was acknowledged; ``lost`` compares that with what the cluster has afterwards.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.tools.adopter.cluster import within
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path, resource_path
from instar.wire.client.reflector import CollectionState, follow
from instar.wire.client.transport import ConnectionLost

GROUP = "rounds.example.com"
_FORBIDDEN, _NOT_FOUND = 403, 404
_AT_ONCE = 40
_READ_PAUSE = 0.05


@dataclass(frozen=True)
class MovedKind:
    """One of the two kinds of the group: several versions of one, another version of the other."""

    plural: str
    kind: str
    namespace: str
    versions: tuple[str, ...]

    def path(self, name: str = "", version: str = "v1") -> str:
        return resource_path(GROUP, version, self.plural, namespace=self.namespace, name=name)

    def crd(self) -> Object:
        text = {"type": "string"}
        spec = {"type": "object", "properties": {"count": {"type": "integer"}, "text": text}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced" if self.namespace else "Cluster",
                "names": {
                    "plural": self.plural,
                    "singular": self.kind.lower(),
                    "kind": self.kind,
                    "listKind": f"{self.kind}List",
                },
                "versions": [
                    {"name": name, "served": True, "storage": name == "v1", "schema": schema}
                    for name in self.versions
                ],
            },
        }

    def object(self, name: str, count: int = 0, text: str = "") -> Object:
        return {
            "apiVersion": f"{GROUP}/v1",
            "kind": self.kind,
            "metadata": {"name": name},
            "spec": {"count": count, "text": text},
        }


KINDS = (
    MovedKind("reports", "Report", "default", ("v1", "v2")),
    MovedKind("scans", "Scan", "", ("v1", "v1alpha1")),
)


async def install(client: Client, objects: int, size: int) -> None:
    """Create both CRDs, and this number of objects; every second one is never written again."""
    for kind in KINDS:
        with suppress(ApiError):
            await client.post(crd_path(), kind.crd())
        await within(partial(_served, client, kind), f"{kind.plural} are not served")
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(kind: MovedKind, name: str) -> None:
        async with turns:
            with suppress(ApiError):
                await client.post(kind.path(), kind.object(name, text="x" * size))

    await asyncio.gather(*(one(*each) for each in _names(objects)))


def _names(objects: int) -> Iterator[tuple[MovedKind, str]]:
    for number in range(objects):
        use = "quiet" if number % 2 else "written"
        yield KINDS[number % 8 == 0], f"{use}-{number:06}"


async def _served(client: Client, kind: MovedKind) -> bool:
    try:
        await client.list(kind.path(), limit=1)
    except ApiError:
        return False
    return True


async def contents(client: Client) -> dict[tuple[str, str, str], Object]:
    """Return every object at every version, without resourceVersion."""
    found: dict[tuple[str, str, str], Object] = {}
    for kind in KINDS:
        for version in kind.versions:
            async for page in client.pages(kind.path(version=version)):
                for item in page.get("items") or ():
                    del item["metadata"]["resourceVersion"]
                    found[kind.plural, version, item["metadata"]["name"]] = item
    return found


@dataclass
class RefusedWrite:
    """When a write was sent that the freeze refused, and when that was answered."""

    sent: float
    answered: float


@dataclass
class GroupLoad:
    """Steady clients of a group, alternating between API servers."""

    clients: Sequence[Client]
    names: Sequence[tuple[MovedKind, str]]
    per_second: float
    acknowledged: int = 0
    last: dict[tuple[str, str], int | None] = field(default_factory=dict)
    """Last acknowledged count by resource and name; None: the deletion was acknowledged."""
    refused: list[RefusedWrite] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Writes that failed for another reason: they count as not acknowledged."""
    reads: int = 0
    unread: list[str] = field(default_factory=list)
    lists: list[int] = field(default_factory=list)
    _states: list[dict[str, int]] = field(default_factory=list)
    _run: str = field(default_factory=lambda: f"new-{time.time():.0f}")
    """Prefix of the names of created objects: those of an earlier run may be there."""
    _in_flight: set[tuple[str, str]] = field(default_factory=set)
    _created: list[tuple[MovedKind, str]] = field(default_factory=list)
    _stopping: bool = False
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _watches: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        run = asyncio.get_running_loop().create_task
        self._tasks = [run(self._write()), *(run(self._read(each)) for each in self.clients)]
        for client in self.clients:
            self.lists.append(0)
            self._states.append({})
            self._watches.append(run(self._watch(client, len(self.lists) - 1)))

    async def stop(self) -> None:
        self._stopping = True
        await asyncio.gather(*self._tasks)

    async def end_watches(self, now: dict[str, int], seconds: float = 20.0) -> list[int]:
        """Wait until each watch has seen the state ``now``; return in how many objects each
        differs."""
        for _ in range(int(seconds / _READ_PAUSE)):
            if all(state == now for state in self._states):
                break
            await asyncio.sleep(_READ_PAUSE)
        for task in self._watches:
            task.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        return [len(set(state.items()) ^ set(now.items())) for state in self._states]

    def lost(self, found: dict[tuple[str, str, str], Object]) -> list[str]:
        """Return the objects that do not have what was acknowledged last."""
        wrong = []
        for (plural, name), count in self.last.items():
            there = found.get((plural, "v1", name))
            if (None if there is None else there["spec"]["count"]) != count:
                wrong.append(f"{plural} {name}")
        return wrong

    def refused_span(self, since: int) -> float:
        """Return seconds from the first refused write to the last answer of one."""
        spans = self.refused[since:]
        if not spans:
            return 0.0
        return max(each.answered for each in spans) - min(each.sent for each in spans)

    async def _write(self) -> None:
        began, busy, number = time.monotonic(), set[asyncio.Task[None]](), 0
        while not self._stopping:
            number += 1
            task = asyncio.get_running_loop().create_task(self._write_one(number))
            busy.add(task)
            task.add_done_callback(busy.discard)
            await asyncio.sleep(max(0.0, began + number / self.per_second - time.monotonic()))
            if len(busy) > _AT_ONCE:
                await asyncio.wait(busy, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*busy)

    async def _write_one(self, number: int) -> None:
        """One of ten creates, one deletes what was created, the others patch."""
        client = self.clients[number % len(self.clients)]
        kind, name = random.choice(self.names)
        if number % 10 == 0:
            kind, name = KINDS[number % 20 == 0], f"{self._run}-{number:07}"
        elif number % 10 == 5 and self._created:
            kind, name = self._created.pop(random.randrange(len(self._created)))
        key = (kind.plural, name)
        if key in self._in_flight:
            return
        self._in_flight.add(key)
        sent = time.monotonic()
        try:
            if number % 10 == 0:
                await client.post(kind.path(), kind.object(name, number))
                self._created.append((kind, name))
            elif name.startswith("new-"):
                await client.delete(kind.path(name))
            else:
                await client.patch(kind.path(name), {"spec": {"count": number}})
            self.acknowledged += 1
            self.last[key] = None if number % 10 == 5 and name.startswith("new-") else number
        except (ApiError, ConnectionLost) as error:
            code = error.code if isinstance(error, ApiError) else 0
            if code == _FORBIDDEN:
                self.refused.append(RefusedWrite(sent, time.monotonic()))
                if number % 10 == 5 and name.startswith("new-"):
                    self._created.append((kind, name))
            else:
                self.failed.append(f"{code} {error}")
                self.last.pop(key, None)  # it may or may not be stored
        finally:
            self._in_flight.discard(key)

    async def _read(self, client: Client) -> None:
        kind, name = self.names[0]
        while not self._stopping:
            try:
                await client.get(kind.path(name))
                await client.list(kind.path(), limit=50)
                self.reads += 2
            except (ApiError, ConnectionLost) as error:
                self.unread.append(str(error))
            await asyncio.sleep(_READ_PAUSE)

    async def _watch(self, client: Client, number: int) -> None:
        state = self._states[number]
        async for change in follow(client, KINDS[0].path()):
            if isinstance(change, CollectionState):
                self.lists[number] += 1
                state.clear()
                state.update((_name(obj), obj["spec"]["count"]) for obj in change.items)
            elif change.type == "DELETED":
                state.pop(_name(change.object), None)
            else:
                state[_name(change.object)] = change.object["spec"]["count"]


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def written_names(objects: int) -> list[tuple[MovedKind, str]]:
    """Return the objects of ``install`` that are written by clients."""
    return [each for each in _names(objects) if each[1].startswith("written")]
