"""Fixtures for all tests: a live server on each storage engine, and the profiles of hypothesis."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.storage.postgres_server import PostgresNode, postgres_node
from tests.support.server import LiveServer, live_server
from tests.support.shared import demand_shared
from tests.support.storages import ENGINES, Storages, chosen_engine
from tests.support.storages import storages as open_storages

# No law judges time: a busy machine must not fail one. CI repeats the same examples, so that it
# judges the change and not the day's luck; everywhere else every run looks in new places.
_SLOW_IS_FINE = [HealthCheck.too_slow]
settings.register_profile("local", deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile(
    "ci", derandomize=True, deadline=None, suppress_health_check=_SLOW_IS_FINE
)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresNode]:
    """One PostgreSQL server for all tests of this process; each takes a schema of its own."""
    with postgres_node() as node:
        yield node


ON_EVERY_STORAGE = (
    "tests.server.test_smoke",
    "tests.rest.test_update",
    "tests.rest.test_delete",
    "tests.rest.test_watch",
)
"""Modules whose tests meet a server on each engine in every run; INSTAR_TEST_STORAGE moves all."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects tests without garbage collection: modules and tests are never freed, and searching
    them took a third of the time; ``freeze`` spares every later collection the same search."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    everywhere = metafunc.module.__name__ in ON_EVERY_STORAGE
    if "server" in metafunc.fixturenames and everywhere and "INSTAR_TEST_STORAGE" not in os.environ:
        metafunc.parametrize("server", ENGINES, indirect=True, scope="session")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs_shared"):
        demand_shared(*mark.args)


@pytest.fixture(scope="session")
def storages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storages]:
    with open_storages(tmp_path_factory.mktemp("storages")) as storages:
        yield storages


@pytest.fixture(scope="session")
def server(storages: Storages, request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """Shared by all tests of a run: each test uses groups and names of its own."""
    engine = getattr(request, "param", chosen_engine())
    with live_server(storage=storages.empty(engine)) as running:
        yield running


@pytest.fixture
def fresh_server(storages: Storages) -> Iterator[LiveServer]:
    """For tests that look at everything or change settings of the whole server."""
    with live_server(storage=storages.empty(chosen_engine())) as running:
        yield running


_HELD_TOO_LONG = 2.0


@pytest.fixture(autouse=True)
def nobody_holds_the_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """No request of any test may hold the event loop (see ``server/lifecycle/watchdog.py``)."""
    names = [name for name in ("server", "fresh_server", "console") if name in request.fixturenames]
    found = [request.getfixturevalue(name) for name in names]
    servers = [server for server in found if isinstance(server, LiveServer)]
    yield
    for server in servers:
        watchdog = server.running.machinery.watchdog
        # Half a second of many small requests on a busy machine is nobody's fault.
        held = [one for one in watchdog.held if one.seconds > _HELD_TOO_LONG]
        watchdog.held = []
        assert not held, f"the event loop was held: {held}"
