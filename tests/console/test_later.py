"""Made once, when somebody wants it; a failure is not for ever."""

from __future__ import annotations

import asyncio

import pytest

from instar.tools.console.lazy_future import LazyFuture


def test_a_failed_value_is_computed_again_and_then_kept() -> None:
    attempts: list[int] = []

    def make() -> int:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("not yet")
        return len(attempts)

    async def ask() -> tuple[int, int]:
        later = LazyFuture(make)
        with pytest.raises(OSError, match="not yet"):
            await later()
        return await later(), await later()

    assert asyncio.run(ask()) == (2, 2)
