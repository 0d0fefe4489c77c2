"""What a snapshot is taken of, as ``taking.py`` sees it."""

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
    """Leads to the next one, also after an interruption; empty at the end."""
    remaining: int | None = None
    """Objects after it, where somebody knows."""
    consistent: bool = True
    """False: what comes from here on is of a later moment than what came before."""
    anew: bool = False
    """What came before is void: the collection is read from its beginning again."""
    unreadable: int = 0
    """Objects that are there and that nobody can read."""


class Gap(Exception):
    """A collection, or the rest of one, that cannot be read; ``missing`` objects at least.
    ``absent``: there is no such collection."""

    def __init__(self, why: str, missing: int = 0, *, absent: bool = False) -> None:
        super().__init__(why)
        self.missing, self.absent = missing, absent


class Source(Protocol):
    origin: str
    exact: bool
    """Whether objects are known to be at the version they are stored at."""
    needs_serving: bool
    """Whether only what some version serves can be read."""

    def batches(self, resource: CapturedResource, token: str = "") -> AsyncIterator[CaptureBatch]:
        """From ``token`` on. Raises ``Gap``."""
        ...

    async def usage(self) -> Object | None:
        """The document of ``/instar/usage``, where requests are counted."""
        ...
