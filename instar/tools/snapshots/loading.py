"""Loads a captured cluster into an empty store, before a server starts on it.

``cli/serving/snapshot_store.py`` (``instar serve --from``) and ``tools/testing/api_server.py`` call
it. The loader writes encoded objects in batches, without API requests or admission.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import field
from datetime import UTC, datetime
from itertools import islice

import orjson

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.times import time_text
from instar.server.registry.insight.usage import RECORD
from instar.tools.snapshots.access import opens_access, without_webhook
from instar.tools.snapshots.captured_cluster import CapturedCluster
from instar.tools.snapshots.crd_status import InvalidCrd, with_status, with_stored
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.sources import open_captured_cluster
from instar.tools.snapshots.store_layout import (
    Misplaced,
    PlacedObject,
    StoreCollection,
    builtin_places,
    place_object,
    place_of_crd,
)
from instar.wire.storage.store import Local, Stale, Store, ValueTooLarge, Write, unwrapped_store

_BATCH = 500
_CRDS = StoreCollection(
    "apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", False
)
_NAMESPACES = StoreCollection("", "namespaces", "Namespace", False)


@dataclass
class Loaded:
    """Result of loading: numbers of objects that were loaded and that were not."""

    crds: int = 0
    objects: Counter[str] = field(default_factory=Counter)
    """Number of objects by CRD name."""
    others: int = 0
    namespaces: int = 0
    """Namespaces that were made because captured objects are in them."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Number of objects that were not loaded, by CRD or resource."""
    withheld: Counter[str] = field(default_factory=Counter)
    """Number of objects that were not loaded because the file is not trusted, by kind."""


async def load(
    world: CapturedCluster,
    store: Store,
    *,
    usage: bool = False,
    now: datetime | None = None,
    trust_access: bool = True,
) -> Loaded:
    """Load all of a captured cluster, with its usage counts if requested. Raises ``SnapshotError``
    if the store is not empty. What cannot be loaded is reported in ``world.problems`` once for each
    kind and reason. Without ``trust_access``, objects that grant access or name addresses to call
    (``access.py``) are left out.
    """
    if (await store.range("", limit=1)).records:
        raise SnapshotError("the store is not empty: a snapshot is loaded into an empty one")
    moment = time_text(now or datetime.now(UTC))
    document = world.usage_document() if usage else None
    if document is not None:
        await store.commit(Write(RECORD, orjson.dumps(document) + b"\n", 0))
    return await _Loading(world, store, moment, trust_access).run()


def store_filler(
    source: str, told: Callable[[CapturedCluster, Loaded], None], *, trust_access: bool
) -> Callable[[Store], Awaitable[None]]:
    """Return a function for ``Settings.fill`` that loads ``source`` at start. Raises
    ``SnapshotError``.
    """

    async def fill(store: Store) -> None:
        world = await asyncio.to_thread(open_captured_cluster, source)
        with world:
            told(world, await load(world, store, usage=True, trust_access=trust_access))

    return fill


class _Loading:
    def __init__(self, world: CapturedCluster, store: Store, now: str, trust_access: bool) -> None:
        self._world, self._store, self._now = world, store, now
        self._trust_access = trust_access
        self._loaded = Loaded()
        self._used: set[str] = set()
        """Namespaces of loaded objects."""
        self._local = isinstance(unwrapped_store(store), Local)

    async def run(self) -> Loaded:
        world, loaded = self._world, self._loaded
        crds = with_status(world.crds(), self._now, self._refused)
        known = set()
        for crd in crds:
            name = crd["metadata"]["name"]
            known.add(name)
            if not self._trust_access:
                crd, withheld = without_webhook(crd)
                loaded.withheld["conversion webhook"] += withheld
            versions: Counter[str] = Counter()
            done = await self._put(world.objects(name), place_of_crd(crd), name, versions)
            loaded.objects[name] += done
            loaded.crds += await self._put([with_stored(crd, versions)], _CRDS, "CRDs")
        for name, number in world.counts().objects.items():
            if name not in known and number:
                self._leave_out(name, number, "its CRD is not there")
        await self._put_others()
        for resource, number in world.counts().unknown.items():
            loaded.left_out[resource] += number
        await self._put_namespaces()
        if self._local:
            # no watch starts before these revisions, so the server need not replay them
            await self._store.compact(await self._store.barrier())
        return loaded

    def _refused(self, refused: InvalidCrd) -> None:
        self._world.note_problem(f"CRD {refused.name} is refused: {refused.why}")

    async def _put_others(self) -> None:
        places = builtin_places()
        by_place: dict[StoreCollection, list[Object]] = {}
        for obj in self._world.other_objects():
            if not self._trust_access and opens_access(obj):
                self._loaded.withheld[str(obj.get("kind"))] += 1
                continue
            facts = places.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
            if facts is None:
                what = f"{obj.get('kind')} of {obj.get('apiVersion')}"
                self._leave_out(what, 1, "this server does not serve it")
                continue
            place = StoreCollection(facts.group, facts.plural, facts.kind, facts.namespaced)
            waiting = by_place.setdefault(place, [])
            waiting.append(obj)
            if len(waiting) >= _BATCH:
                self._loaded.others += await self._put(by_place.pop(place), place, place.plural)
        for place, waiting in by_place.items():
            self._loaded.others += await self._put(waiting, place, place.plural)

    async def _put_namespaces(self) -> None:
        """Create the namespaces of captured objects, so that clients can write to them."""
        for name in sorted(self._used):
            obj = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            }
            made = place_object(obj, _NAMESPACES, self._now)
            if await self._store.get(made.key) is None:
                await self._store.commit(Write(made.key, made.value, 0))
                self._loaded.namespaces += 1

    async def _put(
        self,
        objects: Iterable[Object],
        place: StoreCollection,
        name: str,
        versions: Counter[str] | None = None,
    ) -> int:
        done = 0
        rows = self._placed(objects, place, name)
        while batch := tuple(islice(rows, _BATCH)):
            done += await self._commit(batch, name)
            self._used.update(each.namespace for each in batch if each.namespace)
            if versions is not None:
                versions.update(each.version for each in batch)
        return done

    def _placed(
        self, objects: Iterable[Object], place: StoreCollection, name: str
    ) -> Iterator[PlacedObject]:
        for obj in objects:
            try:
                yield place_object(obj, place, self._now)
            except Misplaced as error:
                self._leave_out(name, 1, f"an object {error}")

    async def _commit(self, batch: tuple[PlacedObject, ...], name: str) -> int:
        writes = [self._store.commit(Write(each.key, each.value, 0)) for each in batch]
        done = 0
        for outcome in await asyncio.gather(*writes, return_exceptions=True):
            if isinstance(outcome, int):
                done += 1
            elif isinstance(outcome, Stale):
                self._leave_out(name, 1, "an object is there twice; the first counts")
            elif isinstance(outcome, ValueTooLarge):
                self._leave_out(name, 1, "an object is too large for the store")
            else:
                raise outcome
        return done

    def _leave_out(self, name: str, number: int, why: str) -> None:
        self._loaded.left_out[name] += number
        self._world.note_problem(f"{name}: {why}")
