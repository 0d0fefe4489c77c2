"""Interface of capture sources, as ``taking.py`` uses it: batches of objects, usage counts, and
gaps (collections that could not be read).

``cluster.py``, ``stored.py`` and ``recapture.py`` implement it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.snapshots.capture.scope import CapturedResource


@dataclass(frozen=True)
class CaptureBatch:
    """Some objects of a collection."""

    objects: list[Object]
    revision: str
    token: str = ""
    """Token of the next batch, also valid after an interruption; empty at the end."""
    remaining: int | None = None
    """Number of objects after this batch, where the source tells."""
    consistent: bool = True
    """False if this batch is of a later revision than the batches before it."""
    anew: bool = False
    """True if earlier batches are void because the collection is read from its beginning again."""
    unreadable: int = 0
    """Number of objects that exist and cannot be read."""


class Gap(Exception):
    """A collection, or the rest of it, that cannot be read; at least ``missing`` objects.
    ``absent`` means that there is no such collection.
    """

    def __init__(self, why: str, missing: int = 0, *, absent: bool = False) -> None:
        super().__init__(why)
        self.missing, self.absent = missing, absent


class Source(Protocol):
    """Where a snapshot reads objects: a cluster, a store, or files."""

    origin: str
    exact: bool
    """Whether objects are known to be at the version they are stored at."""
    needs_serving: bool
    """Whether only resources with a served version can be read."""

    def batches(self, resource: CapturedResource, token: str = "") -> AsyncIterator[CaptureBatch]:
        """Yield batches, starting at ``token``. Raises ``Gap``."""
        ...

    async def usage(self) -> Object | None:
        """Return the document of ``/instar/usage``, if the server counts requests."""
        ...
