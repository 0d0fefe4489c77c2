from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import LiveServer, live_server
from tests.support.webhook import Webhook
from tests.webhooks.support import Widgets, convert


@pytest.fixture(scope="session")
def impatient_server() -> Iterator[LiveServer]:
    """Webhooks must answer within a moment; for tests in which they do not."""
    with live_server(webhook_timeout=0.5) as running:
        yield running


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with Webhook(convert) as webhook:
        yield webhook


@pytest.fixture
def widgets(server: LiveServer, hook: Webhook) -> Widgets:
    """Stored as v1; v2 needs the webhook."""
    return Widgets(server, hook.conversion())
