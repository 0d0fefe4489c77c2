from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import LiveServer, live_server
from tests.support.webhook import Webhook
from tests.webhooks.support import Widgets, convert

IMPATIENT_GROUPS = ("impatient.example.com", "hasty.example.com")
"""Their widgets' webhooks must answer within a moment; all others may take their time."""


@pytest.fixture(scope="session")
def impatient_server() -> Iterator[LiveServer]:
    """For tests in which webhooks do not answer."""
    timeouts = tuple(f"widgets.{group}=0.2" for group in IMPATIENT_GROUPS)
    with live_server(webhook_timeouts=timeouts) as running:
        yield running


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with Webhook(convert) as webhook:
        yield webhook


@pytest.fixture
def widgets(server: LiveServer, hook: Webhook) -> Widgets:
    """Stored as v1; v2 needs the webhook."""
    return Widgets(server, hook.conversion())
