"""Packing of small collections: limits for tests, and a packer that works when it is called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.packing import collection_packing
from instar.server.registry.stored.packing.packer import Packer
from instar.wire.storage import value_dictionary


def pack_small_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let collections of twenty objects be packed, and be trained anew after a few kilobytes."""
    monkeypatch.setattr(value_dictionary, "FEWEST_SAMPLES", 5)
    monkeypatch.setattr(value_dictionary, "CHOICES", ((2 << 10, {"k": 200, "d": 8}),))
    monkeypatch.setattr(collection_packing, "LEAST_OBJECTS", 20)
    monkeypatch.setattr(collection_packing, "LEAST_BYTES", 1 << 10)
    monkeypatch.setattr(collection_packing, "RETRAIN_BYTES", 1 << 10)


@asynccontextmanager
async def packing(backend: Backend) -> AsyncIterator[Packer]:
    """Run the backend's packer, as a server does from before its start."""
    packer = backend.packer
    assert packer is not None
    running = asyncio.create_task(packer.run(backend.cache))
    await asyncio.sleep(0)
    try:
        yield packer
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
