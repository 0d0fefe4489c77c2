"""The same things, on memory and on SQLite, in three guises."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ssa.support import SPEC, Things, crd, rename_image, renamed_spec
from tests.support.server import LiveServer, live_server
from tests.support.webhook import Webhook

_groups = itertools.count()


@pytest.fixture(scope="session", params=["memory", "sqlite"])
def any_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    folder: Path = tmp_path_factory.mktemp("ssa")
    storage = "memory:" if request.param == "memory" else f"sqlite:{folder / 'ssa.db'}"
    with live_server(storage=storage) as running:
        yield running


@pytest.fixture(scope="session")
def hook() -> Iterator[Webhook]:
    with Webhook(convert=rename_image) as running:
        yield running


def _things(server: LiveServer, versions: dict[str, Any], conversion: Any = None) -> Things:
    group = f"ssa{next(_groups)}.example.com"
    server.create_crd(crd(group, versions, conversion))
    return Things(server, group)


def _guise(name: str, server: LiveServer, hook: Webhook) -> Things:
    if name == "single":
        return _things(server, {"v1": SPEC})
    if name == "plain":
        return _things(server, {"v1": SPEC, "v2": SPEC})
    return _things(server, {"v1": SPEC, "v2": renamed_spec()}, hook.conversion())


@pytest.fixture
def single(any_store: LiveServer, hook: Webhook) -> Things:
    return _guise("single", any_store, hook)


@pytest.fixture
def plain(any_store: LiveServer, hook: Webhook) -> Things:
    """v1 (stored) and v2, strategy None."""
    return _guise("plain", any_store, hook)


@pytest.fixture
def converted(any_store: LiveServer, hook: Webhook) -> Things:
    """v1 (stored) and v2 behind a webhook that renames ``image`` to ``picture``."""
    return _guise("converted", any_store, hook)


@pytest.fixture(params=["single", "plain", "converted"])
def things(request: pytest.FixtureRequest, any_store: LiveServer, hook: Webhook) -> Things:
    return _guise(request.param, any_store, hook)
