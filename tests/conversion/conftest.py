"""One webhook per module: starting it (a key pair, a thread) costs more than most tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.webhook import Webhook, relabel


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
