from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import LiveServer, live_server
from tests.support.webhook import Webhook
from tests.webhooks.support import Widgets, convert

PATIENT_GROUP = "patient.example.com"
"""Its widgets' webhook may take its time on the impatient server, too."""


@pytest.fixture(scope="session")
def impatient_server() -> Iterator[LiveServer]:
    """Webhooks must answer within a moment; for tests in which they do not."""
    patient = (f"widgets.{PATIENT_GROUP}=30",)
    with live_server(webhook_timeout=0.4, webhook_timeouts=patient) as running:
        yield running


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with Webhook(convert) as webhook:
        yield webhook


@pytest.fixture
def widgets(server: LiveServer, hook: Webhook) -> Widgets:
    """Stored as v1; v2 needs the webhook."""
    return Widgets(server, hook.conversion())
