"""Members and replicas killed and stopped under load, with a checker at work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest

from tests.replicas import faults, postgres_faults
from tests.replicas.checker import Checker
from tests.replicas.client import Client
from tests.replicas.postgres_faults import PostgresDeployment, deployed_on_postgres
from tests.replicas.processes import Deployment

WRITERS = 6
D = TypeVar("D", Deployment, PostgresDeployment)


def under_load(deployment: D, fault: Callable[[D, Checker], Awaitable[None]]) -> Checker:
    """Write, break something, write on, mend it, write on, compare."""

    async def run() -> Checker:
        async with Client.over(deployment.replicas) as client:
            checker = Checker(client, f"{fault.__name__.replace('_', '-')}.faults.io")
            await checker.start(WRITERS)
            await checker.more_acknowledged(100)
            await fault(deployment, checker)
            await checker.more_acknowledged(100)
            await checker.finish()
            return checker

    return asyncio.run(run())


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresDeployment]:
    with deployed_on_postgres(tmp_path_factory.mktemp("pg"), replicas=2) as deployment:
        yield deployment


@pytest.mark.parametrize("fault", postgres_faults.ALL, ids=lambda fault: fault.__name__)
def test_nothing_is_lost_or_doubled_on_postgresql(
    database: PostgresDeployment, fault: postgres_faults.Fault
) -> None:
    checker = under_load(database, fault)
    assert checker.reads


@pytest.mark.parametrize("fault", faults.ALL, ids=lambda fault: fault.__name__)
def test_nothing_is_lost_or_doubled(trio: Deployment, fault: faults.Fault) -> None:
    checker = under_load(trio, fault)
    assert checker.reads
