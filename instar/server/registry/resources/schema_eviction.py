"""Second-chance eviction of compiled schemas: bounds the memory that all CRDs' schemas take.

``serving.py`` registers what it compiles. Using a compiled schema must cost nothing, so no access
is recorded. When the limit is exceeded, each holder in turn first parks its schemas, where the next
use finds them; a holder that has not used its parked schemas by its next turn drops them, and
compiles them again when needed.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Protocol
from weakref import ref

from instar.base import limits


class SchemaHolder(Protocol):
    """An object that holds compiled schemas: a ``VersionServing``."""

    def park(self) -> bool:
        """Park the compiled schemas. Return False if there were none in use since the last time."""
        ...

    def drop_parked(self) -> None:
        """Drop the parked schemas."""
        ...


class CompiledSchemaBudget:
    """The holders of compiled schemas by age, held weakly: a collected holder no longer counts."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.weight = 0
        self._holders: OrderedDict[ref[SchemaHolder], int] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._holders)

    def keep(self, holder: SchemaHolder, weight: int) -> None:
        """Count a holder that has compiled, or taken back from parking, schemas of so many
        bytes."""
        with self._lock:
            key = ref(holder, self._forget_holder)
            before = self._holders.pop(key, 0)
            self._holders[key] = weight
            self.weight += weight - before
            while self.weight > self._most and len(self._holders) > 1:
                self._next(holder)

    def _next(self, kept: SchemaHolder) -> None:
        """Park or drop the schemas of the oldest holder. ``kept`` is skipped: it may not have
        stored yet what it is counted for."""
        key, weight = self._holders.popitem(last=False)
        holder = key()
        if holder is kept or (holder is not None and holder.park()):
            self._holders[key] = weight
            return
        self.weight -= weight
        if holder is not None:
            holder.drop_parked()

    def _forget_holder(self, key: ref[SchemaHolder]) -> None:
        """Stop counting a collected holder. Runs wherever the last reference is dropped, perhaps
        under the lock, so that it must not take it."""
        weight = self._holders.pop(key, 0)
        self.weight -= weight


COMPILED_SCHEMAS = CompiledSchemaBudget(limits.COMPILED_SCHEMAS)
"""The budget of all CRDs of the process."""
