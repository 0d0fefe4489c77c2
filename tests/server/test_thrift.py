"""Free memory is given back to the system, where the C library can do so."""

from __future__ import annotations

import asyncio
import platform

import pytest

from instar.server.lifecycle import heap_trim

pytestmark = pytest.mark.anyio


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library has no malloc_trim")
def test_the_trim_function_of_the_c_library_is_called() -> None:
    trim = heap_trim.trimmer()
    assert trim is not None
    assert trim() in (0, 1)


async def test_it_is_done_again_and_again_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    done = asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(
        heap_trim, "trimmer", lambda: lambda: loop.call_soon_threadsafe(done.release)
    )
    task = asyncio.create_task(heap_trim.trim_heap_periodically(every=0.001, first=0))
    async with asyncio.timeout(10):
        await done.acquire()
        await done.acquire()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_elsewhere_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap_trim, "trimmer", lambda: None)
    async with asyncio.timeout(10):
        await heap_trim.trim_heap_periodically(every=0, first=0)
