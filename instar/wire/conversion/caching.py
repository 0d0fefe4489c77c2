"""Caches conversion results and shares conversions in flight.

Used by the codec of a CRD (``server/registry/stored/codec.py``) for reads. Within one generation of
its CRD, a stored object at one resourceVersion always converts to the same result; the body of a
write is never cached. Results are immutable bytes, which the caller encodes by ``finish``. There is
one instance per CRD generation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from instar.base.json_values import Object
from instar.wire.conversion.converter import VersionConverter
from instar.wire.conversion.failure import ConversionFailed, FailureType
from instar.wire.conversion.instrumented import ConversionMetrics, NoMetrics, waiting
from instar.wire.conversion.lru_cache import ConversionCache

Load = Callable[[Sequence[int]], Sequence[Object]]
"""Return the objects at these positions; called only for those that must be converted."""
Finish = Callable[[int, Object], bytes]
"""(position, converted object) -> the bytes to return and cache."""


class SharedConverter:
    """A ``VersionConverter`` (never cached: for writes), and ``convert_encoded`` for reads."""

    def __init__(
        self,
        inner: VersionConverter,
        memo: ConversionCache | None = None,
        *,
        crd: str = "",
        metrics: ConversionMetrics | None = None,
    ) -> None:
        """Without a ``memo``, calls in flight are still shared but nothing is cached."""
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
        """Return the bytes of every position, in order; missing ones are converted in one batch.

        A key stands for one content of one stored object, such as (uid, resourceVersion); None is
        never cached. ``bypass`` converts everything again and does not touch the cache.
        """
        with waiting():
            positions = range(len(keys))
            if bypass:
                converted = await self._inner.convert(load(positions), api_version)
                return [finish(at, obj) for at, obj in zip(positions, converted, strict=True)]
            # A fresh object equals no other key, so a position without a key is never shared.
            wanted = [object() if key is None else (api_version, key) for key in keys]
            kept = {key: wanted[at] for at, key in enumerate(keys) if key is not None}
            memorable = frozenset(kept.values())
            return await self._collect_results(wanted, memorable, load, api_version, finish)

    @property
    def has_room(self) -> bool:
        """Return whether the cache has space for results that no client has requested yet."""
        return self._memo is not None and not self._memo.crowded

    async def convert_ahead(
        self, keys: Sequence[Hashable], load: Load, api_version: str, finish: Finish
    ) -> int:
        """Convert in one batch objects that clients will probably read; return how many were
        converted.

        Cached keys and those in flight are skipped. Readers that come meanwhile share the call. The
        results are the first to be evicted.
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
            await self._await_flights({flight})
            flight.task.result()
        return len(own)

    def known(self, key: Hashable, api_version: str) -> bytes | None:
        """Return the cached bytes without waiting; only a hit is counted."""
        data = None if self._memo is None else self._memo.get(self._scope, (api_version, key))
        if data is not None:
            self._count(1, 0, 0)
        return data

    def remember(self, key: Hashable, api_version: str, data: bytes) -> None:
        """Cache a result that the caller computed itself, such as the response to a write."""
        if self._memo is not None:
            self._memo.put(self._scope, (api_version, key), data)

    def outdate(self, key: Hashable, api_versions: Iterable[str]) -> None:
        """Mark a superseded object's results for early eviction: only reads at an old revision need
        them."""
        if self._memo is not None:
            for api_version in api_versions:
                self._memo.outdate(self._scope, (api_version, key))

    def forget(self) -> None:
        """Drop everything, because keys may have another meaning (after a restore of the store).

        Calls in flight are left to their waiters.
        """
        if self._memo is not None:
            self._memo.drop(self._scope)
        self._scope = object()
        self._flights.clear()

    def close(self) -> None:
        """Drop everything and cache no more, because the CRD has changed."""
        self.forget()
        self._memo = None

    async def _collect_results(
        self,
        wanted: Sequence[Hashable],
        memorable: frozenset[Hashable],
        load: Load,
        api_version: str,
        finish: Finish,
    ) -> list[bytes]:
        have = self._cached_results(wanted)
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
            await self._await_flights(flights)
            have.update(_results(flights, missing))
            missing = {key: at for key, at in missing.items() if key not in have}
            any_flight = False
        if not counted:
            self._count(len(wanted), 0, 0)
        return [have[key] for key in wanted]

    def _cached_results(self, wanted: Sequence[Hashable]) -> dict[Hashable, bytes]:
        if self._memo is None:
            return {}
        return self._memo.get_many(self._scope, wanted)

    def _joinable(
        self, missing: Mapping[Hashable, int], *, any_flight: bool
    ) -> dict[Hashable, _Flight]:
        """Return calls in flight to wait for; after a failure, only those with keys of this
        caller."""
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
                results = self._finish_results(own, converted, finish)
                if scope is self._scope:
                    self._keep(results, memorable, first_to_go=first_to_go)
                return results
            finally:
                self._forget(flight)

        flight.task = asyncio.create_task(fly())
        flight.task.add_done_callback(_retrieve_failure)
        self._flights.update(dict.fromkeys(own, flight))
        return flight

    @staticmethod
    def _finish_results(
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

    async def _await_flights(self, flights: set[_Flight]) -> None:
        """Wait for all; a call without any waiter left is cancelled."""
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
        self._metrics.count_lookups(
            self._crd, hits=asked - missing, misses=missing - shared, shared=shared
        )


class _Flight:
    """A conversion in flight and the number of its waiters."""

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
    """Return the results of the calls; raise if one failed for a reason that concerns this
    caller."""
    results: dict[Hashable, bytes] = {}
    for flight in flights:
        failure = flight.task.exception()
        if failure is None:
            results.update(
                (key, data) for key, data in flight.task.result().items() if key in missing
            )
        elif _concerns(failure, flight, missing):
            # Many callers raise the same error, so clear the traceback.
            raise failure.with_traceback(None)
    return results


def _concerns(failure: BaseException, flight: _Flight, missing: Mapping[Hashable, int]) -> bool:
    """Return whether a failure concerns this caller. A batch may fail for an object of another
    caller; then this caller's objects are converted alone."""
    if flight.keys <= missing.keys():
        return True
    return isinstance(failure, ConversionFailed) and failure.failure_type is FailureType.CALL


def _retrieve_failure(task: asyncio.Task[dict[Hashable, bytes]]) -> None:
    """Retrieve the exception, so that asyncio does not report it when the last waiter just left."""
    if not task.cancelled():
        task.exception()
