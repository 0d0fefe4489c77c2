"""Counts the objects of each resource by encryption key, which shows the progress of a key
rotation.

Served by ``server/endpoints/insight.py``.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

from instar.base import offload
from instar.server.registry.stored.backend import Backend
from instar.wire.storage.keys import CORE
from instar.wire.storage.store import Seal

_PLAINTEXT_KEY = "identity"
_ENTRIES_PER_SLICE = 1_000


async def encryption_keys_document(backend: Backend) -> dict[str, Any] | None:
    """Return counts per resource that is or should be encrypted; None without encryption."""
    if not backend.seals:
        return None
    found: dict[str, Any] = {}
    breaks = offload.Breaks()
    for collection in backend.cache.collections():
        counts: Counter[Seal | None] = Counter()
        entries = iter(list(collection.entries.values()))
        while some := list(islice(entries, _ENTRIES_PER_SLICE)):
            counts.update(entry.seal for entry in some)
            await breaks.between()
        current = backend.seal_of(collection)
        if current is None and not any(counts):
            continue
        group, plural = collection.prefix.rstrip("/").split("/")
        names: Counter[str] = Counter()
        for seal, count in counts.items():
            names[_key_text(seal)] += count
        found[plural if group == CORE else f"{plural}.{group}"] = {
            "current": _key_text(current),
            "objects": dict(sorted(names.items())),
        }
    return dict(sorted(found.items()))


def _key_text(seal: Seal | None) -> str:
    if seal is None:
        return _PLAINTEXT_KEY
    return f"{seal.name} (cannot be opened)" if seal.problem else seal.name
