"""Running totals of what the objects of a namespace take from a ResourceQuota.

The ResourceQuota plugin (``resource_quota.py``) and the quota controller use them. A total is
summed up once, in slices, and from then on follows the changes of its collection: a create costs
the same in a namespace of ten objects and of a hundred thousand.
"""

from __future__ import annotations

import asyncio
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import orjson

from instar.base import offload
from instar.base.json_values import Object
from instar.base.supervision import report_failure
from instar.server.registry.admission.plugins.quota.quota_scopes import in_scope
from instar.server.registry.admission.plugins.quota.quota_usage import needs_content, object_usage
from instar.server.registry.stored.backend import Backend, Objects
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.wire.storage.watchcache.collection import Change

_MOST_KEPT = 10_000
"""Totals; the oldest is summed up again when it is needed."""
Usage = dict[str, Fraction]


class QuotaSelection(NamedTuple):
    """The objects that count, and the quota's names of what they take."""

    place: tuple[str, str]
    """Group and plural."""
    namespace: str
    names: tuple[str, ...]
    scopes: bytes
    """The scopes of the quota as JSON; empty if it has none."""


def selection(
    place: tuple[str, str], namespace: str, names: list[str], quota: Object
) -> QuotaSelection:
    """Return which objects of a namespace a quota counts, and what of them."""
    spec = quota["spec"]
    scopes = {key: spec[key] for key in ("scopes", "scopeSelector") if spec.get(key)}
    return QuotaSelection(place, namespace, tuple(names), orjson.dumps(scopes) if scopes else b"")


class UsageTotals:
    def __init__(self, backend: Backend) -> None:
        self._kept: dict[QuotaSelection, _Total] = {}
        self._following: dict[tuple[str, str], list[_Total]] = {}
        """By the prefix of the collection and the namespace."""
        self._observed: set[str] = set()
        backend.cache.on_reset(self._start_over)

    def known(self, wanted: QuotaSelection) -> Usage | None:
        """Return the usage, or None where it must be summed up first."""
        total = self._kept.get(wanted)
        return dict(total.used) if total is not None and total.complete.is_set() else None

    async def of(self, objects: Objects, wanted: QuotaSelection) -> Usage:
        while (used := self.known(wanted)) is None:
            total = self._kept.get(wanted)
            if total is not None:
                await total.complete.wait()  # another task sums it up
            else:
                await self._sum_up(objects, wanted)
        return used

    async def _sum_up(self, objects: Objects, wanted: QuotaSelection) -> None:
        total = self._keep(objects, wanted)
        try:
            # The objects of this moment: changes from now on reach the total as events.
            below = f"{wanted.namespace}/"
            entries = [objects.entries[suffix] for suffix in objects.suffixes(below)]
            breaks = offload.Breaks()
            for entry in entries:
                total.add(entry, 1)
                await breaks.between()
        except BaseException:
            self._drop(total)
            raise
        finally:
            total.complete.set()

    def _keep(self, objects: Objects, wanted: QuotaSelection) -> _Total:
        if objects.prefix not in self._observed:
            self._observed.add(objects.prefix)
            objects.observers.append(partial(self._changed, objects.prefix))
        if len(self._kept) >= _MOST_KEPT:
            self._drop(next(iter(self._kept.values())))
        total = self._kept[wanted] = _Total(objects.prefix, wanted)
        self._following.setdefault((objects.prefix, wanted.namespace), []).append(total)
        return total

    def _changed(self, prefix: str, change: Change[CacheEntry]) -> None:
        namespace = change.suffix.partition("/")[0]
        for total in tuple(self._following.get((prefix, namespace), ())):
            try:
                if change.old is not None:
                    total.add(change.old, -1)
                if change.new is not None:
                    total.add(change.new, 1)
            except Exception as error:  # it is summed up again
                report_failure("quota-usage", error, change.suffix)
                self._drop(total)

    def _drop(self, total: _Total) -> None:
        if self._kept.get(total.wanted) is total:
            del self._kept[total.wanted]
        place = (total.prefix, total.wanted.namespace)
        left = [each for each in self._following.get(place, ()) if each is not total]
        if left:
            self._following[place] = left
        else:
            self._following.pop(place, None)

    def _start_over(self) -> None:
        self._kept.clear()
        self._following.clear()


class _Total:
    def __init__(self, prefix: str, wanted: QuotaSelection) -> None:
        self.prefix, self.wanted = prefix, wanted
        self.used: Usage = dict.fromkeys(wanted.names, Fraction())
        self.complete = asyncio.Event()
        self._scoped: Object = {"spec": orjson.loads(wanted.scopes or b"{}")}
        self._reads = bool(wanted.scopes) or any(map(needs_content, wanted.names))

    def add(self, entry: CacheEntry, sign: int) -> None:
        for name, amount in self._amounts(entry).items():
            if name in self.used:
                self.used[name] += sign * amount

    def _amounts(self, entry: CacheEntry) -> Usage:
        if not self._reads:
            return dict.fromkeys(self.wanted.names, Fraction(1))
        try:
            obj = entry.decode()
        except UnreadableEntry:
            return {}
        if not in_scope(self._scoped, *self.wanted.place, obj):
            return {}
        return object_usage(*self.wanted.place, obj)
