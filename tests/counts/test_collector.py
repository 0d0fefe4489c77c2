"""What a request made is gone when it is answered, without the collector: a circle of references
for each would add up to rounds of the collector in which everybody waits."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.operations import OPERATIONS, stage
from bench.wire import Wire
from tests.storage.etcd_server import EtcdCluster

pytestmark = pytest.mark.anyio

_REQUESTS = 40
_NAMES = ("get", "list 100", "create", "merge patch", "apply", "patch, watched")


@pytest.fixture(params=["memory", "sqlite", "etcd"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "etcd":
        with EtcdCluster(tmp_path, members=1) as cluster:
            yield f"etcd://{cluster.addresses[0]}/collector"
    else:
        yield {"memory": "memory:", "sqlite": f"sqlite:{tmp_path}/collector.db"}[request.param]


@pytest.mark.parametrize("name", _NAMES)
async def test_a_request_leaves_nothing_to_the_collector(
    name: str, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Wire, "__init__", _as_from_a_socket(Wire.__init__))
    async with stage(storage) as on:
        step = await OPERATIONS[name].prepare(on)
        for number in range(_REQUESTS):
            await step(number)
        gc.collect()
        gc.disable()
        try:
            for number in range(_REQUESTS, 2 * _REQUESTS):
                await step(number)
            left = gc.collect()
        finally:
            gc.enable()

    assert left < _REQUESTS, f"{left / _REQUESTS} objects a request"


def _as_from_a_socket(made: Any) -> Any:
    """What a socket brings is told by the event loop, outside any task."""

    def init(self: Wire, *arguments: Any) -> None:
        made(self, *arguments)
        received = self._protocol.data_received

        def soon(data: bytes) -> None:
            asyncio.get_running_loop().call_soon(received, data)

        monkeyed: Any = self._protocol
        monkeyed.data_received = soon

    return init
