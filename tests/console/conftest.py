"""A server with a console, for all tests of this room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from instar.tools.console.setup import console_front
from tests.console.support import Browser
from tests.support.server import LiveServer, live_server


@pytest.fixture(scope="session")
def console() -> Iterator[LiveServer]:
    """Shared: each test uses groups of its own."""
    with live_server(front=console_front()) as running:
        yield running


@pytest.fixture
def browser(console: LiveServer) -> Browser:
    """Signed in as the administrator."""
    browser = Browser(console)
    browser.sign_in(console.token)
    return browser
