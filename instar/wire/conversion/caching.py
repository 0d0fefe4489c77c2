"""Converts once what many ask for: finished results are remembered, running calls are shared.

A stored object at one resourceVersion always converts to the same thing within one generation
of its CRD, so readers may share it; the body of a write is never remembered. Results are
handed out as bytes, which nobody can change under somebody else. Make a new one per CRD
generation. How bytes are made of a converted object is the caller's (``finish``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from instar.base.json_values import Object
from instar.wire.conversion.converter import VersionConverter
from instar.wire.conversion.failure import ConversionFailed, FailureType
from instar.wire.conversion.instrumented import ConversionMetrics, NoMetrics, waiting
from instar.wire.conversion.lru_cache import Memo

Load = Callable[[Sequence[int]], Sequence[Object]]
"""The objects at these positions; called for those that must be converted and no others."""
Finish = Callable[[int, Object], bytes]
"""(position, converted object) -> the bytes to hand out and to remember."""


class SharedConverter:
    """A ``VersionConverter`` (never remembered: for writes), and ``convert_encoded`` for reads."""

    def __init__(
        self,
        inner: VersionConverter,
        memo: Memo | None = None,
        *,
        crd: str = "",
        metrics: ConversionMetrics | None = None,
    ) -> None:
        """Without a ``memo`` running calls are still shared, but nothing is remembered."""
        self._inner = inner
        self._memo = memo
        self._crd = crd
        self._metrics: ConversionMetrics = metrics or NoMetrics()
        self._scope = object()
        self._flights: dict[Hashable, _Flight] = {}

    @property
    def remembers(self) -> bool:
        return self._memo is not None

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        with waiting():
            return await self._inner.convert(objects, api_version)

    async def convert_encoded(
        self,
        keys: Sequence[Hashable | None],
        load: Load,
        api_version: str,
        finish: Finish,
        *,
        bypass: bool = False,
    ) -> list[bytes]:
        """The bytes of every position, in order; what is missing is sent in one batch.

        A key stands for one content of one stored object, such as (uid, resourceVersion); None
        is never remembered. ``bypass`` converts everything afresh and leaves no trace.
        """
        with waiting():
            positions = range(len(keys))
            if bypass:
                converted = await self._inner.convert(load(positions), api_version)
                return [finish(at, obj) for at, obj in zip(positions, converted, strict=True)]
            # A fresh object equals no other key, so a position without a key is simply alone.
            wanted = [object() if key is None else (api_version, key) for key in keys]
            kept = {key: wanted[at] for at, key in enumerate(keys) if key is not None}
            memorable = frozenset(kept.values())
            return await self._collected(wanted, memorable, load, api_version, finish)

    @property
    def has_room(self) -> bool:
        """Whether it makes sense to convert what nobody has asked for yet."""
        return self._memo is not None and not self._memo.crowded

    async def convert_ahead(
        self, keys: Sequence[Hashable], load: Load, api_version: str, finish: Finish
    ) -> int:
        """Learn now what somebody is going to ask for, as one batch; how many were converted.

        What is known, or just being converted, is left out. Whoever asks meanwhile shares the call.
        What comes of it is the first to be forgotten where memory is short.
        """
        if self._memo is None:
            return 0
        own: dict[Hashable, int] = {}
        for at, key in enumerate(keys):
            whole = (api_version, key)
            if whole not in self._flights and not self._memo.holds(self._scope, whole):
                own[whole] = at
        if own:
            memorable = frozenset(own)
            flight = self._start(own, memorable, load, api_version, finish, first_to_go=True)
            await self._landed({flight})
            flight.task.result()
        return len(own)

    def known(self, key: Hashable, api_version: str) -> bytes | None:
        """What is remembered, at once; counts only when there is something."""
        data = None if self._memo is None else self._memo.get(self._scope, (api_version, key))
        if data is not None:
            self._count(1, 0, 0)
        return data

    def remember(self, key: Hashable, api_version: str, data: bytes) -> None:
        """Keep what the caller learnt on another way, such as the answer to a write."""
        if self._memo is not None:
            self._memo.put(self._scope, (api_version, key), data)

    def outdate(self, key: Hashable, api_versions: Iterable[str]) -> None:
        """The content a key stands for was written over: who asks for it now asks for the past."""
        if self._memo is not None:
            for api_version in api_versions:
                self._memo.outdate(self._scope, (api_version, key))

    def forget(self) -> None:
        """Keys may mean something else from now on, as after a store was restored.

        Calls that run are left to those who wait for them.
        """
        if self._memo is not None:
            self._memo.drop(self._scope)
        self._scope = object()
        self._flights.clear()

    def close(self) -> None:
        """The CRD has changed: forget, and remember nothing any more."""
        self.forget()
        self._memo = None

    async def _collected(
        self,
        wanted: Sequence[Hashable],
        memorable: frozenset[Hashable],
        load: Load,
        api_version: str,
        finish: Finish,
    ) -> list[bytes]:
        have = self._remembered(wanted)
        missing = _first_positions(wanted, have)
        any_flight, counted = True, False
        while missing:
            joined = self._joinable(missing, any_flight=any_flight)
            own = {key: at for key, at in missing.items() if key not in joined}
            flights = set(joined.values())
            if own:
                flights.add(self._start(own, memorable, load, api_version, finish))
            if not counted:
                self._count(len(wanted), len(missing), len(joined))
                counted = True
            await self._landed(flights)
            have.update(_results(flights, missing))
            missing = {key: at for key, at in missing.items() if key not in have}
            any_flight = False
        if not counted:
            self._count(len(wanted), 0, 0)
        return [have[key] for key in wanted]

    def _remembered(self, wanted: Sequence[Hashable]) -> dict[Hashable, bytes]:
        if self._memo is None:
            return {}
        return self._memo.get_many(self._scope, wanted)

    def _joinable(
        self, missing: Mapping[Hashable, int], *, any_flight: bool
    ) -> dict[Hashable, _Flight]:
        """Running calls to wait for; after a failure, only such as carry nothing but our own."""
        found = {}
        for key in missing:
            flight = self._flights.get(key)
            if flight is not None and (any_flight or flight.keys <= missing.keys()):
                found[key] = flight
        return found

    def _start(
        self,
        own: Mapping[Hashable, int],
        memorable: frozenset[Hashable],
        load: Load,
        api_version: str,
        finish: Finish,
        *,
        first_to_go: bool = False,
    ) -> _Flight:
        objects = load(list(own.values()))
        flight, scope = _Flight(frozenset(own)), self._scope

        async def fly() -> dict[Hashable, bytes]:
            try:
                converted = await self._inner.convert(objects, api_version)
                results = self._finished(own, converted, finish)
                if scope is self._scope:
                    self._keep(results, memorable, first_to_go=first_to_go)
                return results
            finally:
                self._forget(flight)

        flight.task = asyncio.create_task(fly())
        flight.task.add_done_callback(_look_at_failure)
        self._flights.update(dict.fromkeys(own, flight))
        return flight

    @staticmethod
    def _finished(
        own: Mapping[Hashable, int],
        converted: Iterable[Object],
        finish: Finish,
    ) -> dict[Hashable, bytes]:
        results = {}
        for (key, at), obj in zip(own.items(), converted, strict=True):
            results[key] = finish(at, obj)
        return results

    def _keep(
        self,
        results: Mapping[Hashable, bytes],
        memorable: frozenset[Hashable],
        *,
        first_to_go: bool,
    ) -> None:
        if self._memo is not None:
            for key in memorable & results.keys():
                self._memo.put(self._scope, key, results[key], first_to_go=first_to_go)

    async def _landed(self, flights: set[_Flight]) -> None:
        """Waits for all; a flight that nobody waits for any more is called off."""
        for flight in flights:
            flight.waiters += 1
        try:
            await asyncio.wait({flight.task for flight in flights})
        finally:
            for flight in flights:
                flight.waiters -= 1
                if not flight.waiters and not flight.task.done():
                    self._forget(flight)
                    flight.task.cancel()

    def _forget(self, flight: _Flight) -> None:
        for key in flight.keys:
            if self._flights.get(key) is flight:
                del self._flights[key]

    def _count(self, asked: int, missing: int, shared: int) -> None:
        self._metrics.looked_up(
            self._crd, hits=asked - missing, misses=missing - shared, shared=shared
        )


class _Flight:
    """A running conversion and how many wait for it."""

    __slots__ = ("keys", "task", "waiters")

    task: asyncio.Task[dict[Hashable, bytes]]

    def __init__(self, keys: frozenset[Hashable]) -> None:
        self.keys = keys
        self.waiters = 0


def _first_positions(
    wanted: Sequence[Hashable], have: Mapping[Hashable, bytes]
) -> dict[Hashable, int]:
    missing: dict[Hashable, int] = {}
    for at, key in enumerate(wanted):
        if key not in have:
            missing.setdefault(key, at)
    return missing


def _results(flights: Iterable[_Flight], missing: Mapping[Hashable, int]) -> dict[Hashable, bytes]:
    """What the flights brought; raises if one failed for a reason that is ours, too."""
    results: dict[Hashable, bytes] = {}
    for flight in flights:
        failure = flight.task.exception()
        if failure is None:
            results.update(
                (key, data) for key, data in flight.task.result().items() if key in missing
            )
        elif _concerns(failure, flight, missing):
            # Many wait for the same failure: each must not add its frames to the others'.
            raise failure.with_traceback(None)
    return results


def _concerns(failure: BaseException, flight: _Flight, missing: Mapping[Hashable, int]) -> bool:
    """A batch may fail for an object that only somebody else asked for: then ask again alone."""
    if flight.keys <= missing.keys():
        return True
    return isinstance(failure, ConversionFailed) and failure.failure_type is FailureType.CALL


def _look_at_failure(task: asyncio.Task[dict[Hashable, bytes]]) -> None:
    """Keeps asyncio from reporting failures whose last waiter left in the same moment."""
    if not task.cancelled():
        task.exception()
