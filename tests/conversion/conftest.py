"""One webhook per module: starting it (a key pair, a thread) costs more than most tests.

And a choice of event loops for what must work on each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from tests.conversion.scripted import Run
from tests.support.webhook import Webhook, relabel

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="module")
def _running() -> Iterator[Webhook]:
    with Webhook() as webhook:
        yield webhook


@pytest.fixture
def hook(_running: Webhook) -> Iterator[Webhook]:
    _running.reset()
    yield _running
    _running.resume()
    _running.convert = relabel


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    def run(scenario: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(scenario)

    return run
