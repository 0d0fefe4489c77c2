"""What was written is converted before somebody asks for it, in company, and never twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import LiveServer, live_server
from tests.support.webhook import Webhook
from tests.webhooks.support import Widgets


@pytest.fixture(scope="module")
def eager() -> Iterator[LiveServer]:
    with live_server(convert_ahead=True) as running:
        yield running


@pytest.fixture
def ahead(eager: LiveServer, hook: Webhook) -> Widgets:
    return Widgets(eager, hook.conversion())


def test_the_first_read_at_another_version_calls_no_webhook(ahead: Widgets, hook: Webhook) -> None:
    ahead.create("v1", "a")
    hook.wait_for_calls(1)
    seen = ahead.get("v2", "a").json

    assert seen["spec"]["hostPort"] == "h:1"
    assert hook.reviews == 1


def test_writes_in_company_share_a_call_and_no_object_goes_twice(
    ahead: Widgets, hook: Webhook
) -> None:
    hook.pause()
    ahead.create("v1", "first")
    hook.wait_for_calls(1)
    for number in range(40):
        ahead.create("v1", f"n{number}")
    hook.resume()
    hook.wait_for_calls(2)

    listed = ahead.get("v2").json["items"]

    assert len(listed) == 41
    assert hook.objects == 41
    assert hook.reviews == 2


def test_conversions_made_for_a_write_are_cached(ahead: Widgets, hook: Webhook) -> None:
    ahead.create("v2", "a")
    before = hook.reviews
    ahead.create("v1", "b")
    hook.wait_for_calls(before + 1)

    assert ahead.get("v2").status == 200
    assert hook.objects == 3  # there and back for one, there for the other


def test_a_webhook_that_fails_costs_the_writer_nothing(ahead: Widgets, hook: Webhook) -> None:
    hook.stop()

    ahead.create("v1", "a")

    assert ahead.get("v1", "a").status == 200
    assert ahead.get("v2", "a").status == 500
