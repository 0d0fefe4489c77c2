from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def one_loop(anyio_backend: str) -> AsyncIterator[None]:
    """One event loop per module: gRPC's poller complains into the next loop about a closed one."""
    yield
    await asyncio.sleep(0.05)
