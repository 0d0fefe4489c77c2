"""A server in process, as test suites start one."""

from __future__ import annotations

import pytest

import instar.server
from instar.server import Settings


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_single_settings_are_passed_by_name_with_and_without_others() -> None:
    async with instar.server.running(extra_names=("elsewhere.test",)) as server:
        assert server.url.startswith("https://127.0.0.1:")
    base = Settings(port=0, host="127.0.0.1", strict_namespaces=False)

    async with instar.server.running(base, host="localhost") as server:
        assert server.url.startswith("https://localhost:")


@pytest.mark.anyio
async def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        async with instar.server.running(colour="blue"):
            pytest.fail("it runs nevertheless")
