"""From a storage URL to a store: the one place that names every backend."""

from __future__ import annotations

from instar.storage.memory import MemoryStore
from instar.storage.sqlite import SqliteStore
from instar.storage.store import Store, StoreError


async def open_store(url: str) -> Store:
    """``memory:``, ``sqlite:PATH``. Raises ``StoreError`` with a text fit for an operator."""
    scheme, _, rest = url.partition(":")
    if url == "memory:":
        return MemoryStore()
    if scheme == "sqlite" and rest:
        return SqliteStore(rest)
    raise StoreError(f"{url!r} is no storage URL; use memory: or sqlite:PATH")
