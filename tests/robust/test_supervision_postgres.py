"""What works in the background on PostgreSQL is made to fail in ways it does not expect, and by a
cancellation that another caller caused: each is counted and goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.base.supervision import FAILURES
from instar.wire.storage.postgres.commit import BatchWriter
from instar.wire.storage.postgres.feed import PostgresFeed
from tests.robust.test_supervision import KEPT
from tests.robust.test_supervision_remote import REMOTE
from tests.support.background import UnexpectedError, tasks_of
from tests.support.server import LiveServer, live_server
from tests.support.storages import storages
from tests.support.waiting import eventually

_MAPS = "/api/v1/namespaces/default/configmaps"
_FAILURES = [UnexpectedError, asyncio.CancelledError]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with (
        storages(tmp_path_factory.mktemp("postgres")) as stores,
        live_server(storage=stores.empty("postgres")) as running,
    ):
        yield running


def _write(server: LiveServer, name: str) -> int:
    return server.request("POST", _MAPS, {"metadata": {"name": name}}).status


@pytest.mark.parametrize("failure", _FAILURES)
def test_a_feed_that_fails_unexpectedly_goes_on(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    before, read, struck = FAILURES.value(("postgres-feed",)), PostgresFeed._read, list[int]()

    async def fail_once(self: PostgresFeed) -> bool:
        if not struck:
            struck.append(1)
            raise failure
        return await read(self)

    monkeypatch.setattr(PostgresFeed, "_read", fail_once)

    assert _write(server, f"feed-{failure.__name__.lower()}") == 201

    eventually(lambda: FAILURES.value(("postgres-feed",)) == before + 1)
    assert _write(server, f"feed-{failure.__name__.lower()}-after") == 201
    assert server.request("GET", "/readyz").status == 200


@pytest.mark.parametrize("failure", _FAILURES)
def test_a_batch_that_fails_unexpectedly_fails_its_writers_and_no_others(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    before, struck = FAILURES.value(("postgres-commit",)), list[int]()
    commit, name = BatchWriter._commit_batch, f"batch-{failure.__name__.lower()}"

    async def fail_once(self: BatchWriter, batch: Any) -> None:
        if not struck and any(entry.write.key.endswith(name) for entry in batch):
            struck.append(1)
            raise failure
        await commit(self, batch)

    monkeypatch.setattr(BatchWriter, "_commit_batch", fail_once)

    refused = _write(server, name)

    assert refused == 503
    assert FAILURES.value(("postgres-commit",)) == before + 1
    assert _write(server, f"{name}-after") == 201


def test_the_tasks_on_postgresql_are_those_of_other_stores(server: LiveServer) -> None:
    """So that test_supervision.py strikes them all."""
    eventually(lambda: {kept.record.name for kept in tasks_of(server)} <= KEPT | REMOTE)


def test_every_part_of_the_store_that_counts_failures_is_struck_above() -> None:
    folder = Path(__file__).resolve().parents[2] / "instar/wire/storage/postgres"
    names = {
        name
        for file in folder.glob("*.py")
        for name in file.read_text().split('report_failure("')[1:]
    }
    assert {name.partition('"')[0] for name in names} == {"postgres-feed", "postgres-commit"}
