"""A real browser before a real server. Debian's chromium is used; nothing is downloaded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect, sync_playwright

from instar.tools.console.setup import console_front
from tests.console.e2e.fleet import Fleet, fill
from tests.console.e2e.visitor import Visitor
from tests.support.server import LiveServer, live_server
from tests.support.webhook import Webhook

ROOT = Path(__file__).parents[3]
AXE = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"
SCREENSHOTS = ROOT / ".screenshots"
expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Not longer: as long as it is there, this thread has an event loop that runs."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium here: the console's pages are NOT tried in a browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def converter() -> Iterator[Webhook]:
    with Webhook(convert=Fleet.convert) as webhook:
        yield webhook


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(front=console_front(), strict_namespaces=False) as running:
        yield running


@pytest.fixture(scope="module")
def fleet(server: LiveServer, converter: Webhook) -> Fleet:
    return fill(server, converter)


@pytest.fixture
def context(chromium: Browser, server: LiveServer) -> Iterator[BrowserContext]:
    context = chromium.new_context(base_url=server.url, ignore_https_errors=True)
    context.set_default_timeout(20_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """Fails the test when a script of the page does."""
    page = context.new_page()
    failures: list[Error] = []
    page.on("pageerror", lambda error: failures.append(error))
    yield page
    assert failures == []


@pytest.fixture
def visitor(page: Page, server: LiveServer, fleet: Fleet) -> Visitor:
    """Signed in as the administrator."""
    visitor = Visitor(page, server.token)
    visitor.sign_in()
    return visitor
