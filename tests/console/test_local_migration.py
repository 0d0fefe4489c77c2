"""On a cluster without StorageVersionMigration the console runs the migrator itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from instar.base.json_values import Object
from instar.tools.console.local_migrations import LocalMigrations
from instar.tools.console.views import migration_state
from instar.tools.console.views.migration import act, migration
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import load_access
from tests.console.test_migration import CRDS, old_world, why
from tests.console.worlds import renaming
from tests.support.server import LiveServer
from tests.support.webhook import Webhook


@pytest.fixture(autouse=True)
def another_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not know the API of migrations."""
    monkeypatch.setattr(migration_state, "VERSIONS", ())


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook(renaming) as hook:
        yield hook


@asynccontextmanager
async def beside(server: LiveServer, folder: Path) -> AsyncIterator[tuple[Client, LocalMigrations]]:
    async with Client(load_access(server.kubeconfig)) as client:
        local = LocalMigrations(client, lambda crd, place: folder / f"{crd}.progress")
        yield client, local
        await local.close()


async def until(client: Client, name: str, local: LocalMigrations, state: str) -> Object:
    async with asyncio.timeout(20):
        while True:
            found = await migration(client, name, local, planned=False)
            if found["migration"] is not None and found["migration"]["state"] == state:
                return found
            await asyncio.sleep(0.02)


def test_it_runs_to_its_end_and_trims(
    console: LiveServer, webhook: Webhook, tmp_path: Path
) -> None:
    name = "widgets.local.example.com"
    old_world(console, "local.example.com", webhook)

    async def scenario() -> tuple[Object, Object]:
        async with beside(console, tmp_path) as (client, local):
            before = await migration(client, name, local)
            await act(client, name, "start", local)
            return before, await until(client, name, local, "succeeded")

    before, after = asyncio.run(scenario())

    assert before["engine"] == "local"
    assert why(before, "start") == []
    assert "storedVersions is now v1" in after["migration"]["message"]
    crd = console.request("GET", f"{CRDS}/{name}").json
    assert crd["status"]["storedVersions"] == ["v1"]


def test_a_migration_is_paused_and_resumed(
    console: LiveServer, webhook: Webhook, tmp_path: Path
) -> None:
    name = "widgets.stopped.example.com"
    old_world(console, "stopped.example.com", webhook)

    async def scenario() -> tuple[Object, Object]:
        async with beside(console, tmp_path) as (client, local):
            started = await act(client, name, "start", local)
            paused = await act(client, name, "pause", local)
            await act(client, name, "resume", local)
            await until(client, name, local, "succeeded")
            return started, paused

    started, paused = asyncio.run(scenario())

    assert started["migration"]["state"] == "running"
    assert paused["migration"]["state"] == "paused"
    assert why(paused, "start") == ["a migration is paused"]


def test_a_cluster_without_any_engine_says_so(console: LiveServer) -> None:
    old_world(console, "engineless.example.com", None)

    async def scenario() -> Object:
        async with Client(load_access(console.kubeconfig)) as client:
            return await migration(client, "widgets.engineless.example.com")

    found = asyncio.run(scenario())

    assert found["engine"] is None
    assert "run instar migrate" in why(found, "start")[0]
