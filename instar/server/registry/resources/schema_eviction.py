"""How much of compiled schemas is kept: what nobody has used for long is made again when wanted.

Asking for a form that is there must cost nothing, so nobody notes it. Instead, when there are too
many, each holder in turn is first told to put its forms aside, where asking finds them again, and
only who has left them there until its next turn loses them. Knows nothing of what a form is.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Protocol
from weakref import ref

from instar.base import limits


class Holder(Protocol):
    def put_aside(self) -> bool:
        """False where nothing was put aside: all is since the last time, or there is nothing."""
        ...

    def let_go(self) -> None:
        """Of what was put aside."""
        ...


class Forms:
    """Holds no holder: who is gone does not count any more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.weight = 0
        self._holders: OrderedDict[ref[Holder], int] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._holders)

    def keep(self, holder: Holder, weight: int) -> None:
        """The holder has made something of so many bytes of schema, or taken it back."""
        with self._lock:
            key = ref(holder, self._gone)
            before = self._holders.pop(key, 0)
            self._holders[key] = weight
            self.weight += weight - before
            while self.weight > self._most and len(self._holders) > 1:
                self._next(holder)

    def _next(self, kept: Holder) -> None:
        """``kept`` has no turn: it may not have in its hands yet what it is counted for."""
        key, weight = self._holders.popitem(last=False)
        holder = key()
        if holder is kept or (holder is not None and holder.put_aside()):
            self._holders[key] = weight
            return
        self.weight -= weight
        if holder is not None:
            holder.let_go()

    def _gone(self, key: ref[Holder]) -> None:
        """Called wherever the last one lets go of it, which may be under the lock or beside it: so
        nothing is called while the weight changes."""
        weight = self._holders.pop(key, 0)
        self.weight -= weight


FORMS = Forms(limits.COMPILED_SCHEMAS)
"""Of all CRDs."""
