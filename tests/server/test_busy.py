"""A server with more requests than seats, over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crds import crd, version
from tests.support.server import Answer, LiveServer, live_server
from tests.support.webhook import Webhook, relabel

FOOS = "/apis/example.com/v2/namespaces/default/foos"


@pytest.fixture
def slow() -> Iterator[Webhook]:
    """A conversion webhook that answers when it is told to."""
    with Webhook(relabel) as webhook:
        yield webhook


@pytest.fixture
def busy(tmp_path: Path, slow: Webhook) -> Iterator[LiveServer]:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("ann-token,ann,1\nbob-token,bob,2\n")
    with live_server(
        token_file=tokens,
        authorization="AlwaysAllow",
        reads_at_once=10,  # two of all these seats are for users in no other level
        writes_at_once=10,
        bootstrap_objects=True,
        request_timeout=8.0,
    ) as server:
        server.create_crd(crd(version("v1"), version("v2"), conversion=slow.conversion()))
        body = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "f"}}
        made = server.request("POST", FOOS.replace("v2", "v1"), body)
        assert made.status == 201, made.text
        yield server


def test_a_request_without_a_seat_in_time_is_429_with_upstreams_text(
    busy: LiveServer, slow: Webhook
) -> None:
    slow.pause()
    answers: list[Answer] = []

    def ask() -> None:
        answers.append(busy.request("GET", FOOS, token="ann-token"))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    threads[0].join(30)
    administrator = busy.request("GET", "/version")
    health = busy.request("GET", "/readyz", token="bob-token")
    slow.resume()
    for thread in threads:
        thread.join(30)

    refused = [answer for answer in answers if answer.status == 429]
    assert len(refused) == 1
    assert refused[0].text == "Too many requests, please try again later.\n"
    assert refused[0].header("Retry-After") == "1"
    assert refused[0].header("Content-Type") == "text/plain; charset=utf-8"
    assert refused[0].header("X-Content-Type-Options") == "nosniff"
    assert (administrator.status, health.status) == (200, 200)
