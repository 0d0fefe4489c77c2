"""Members and replicas killed and stopped under load, with a checker at work."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.replicas import faults
from tests.replicas.checker import Checker
from tests.replicas.client import Client
from tests.replicas.processes import Deployment, deployed

WRITERS = 6


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("faults")
    with deployed(folder, members=3, replicas=2) as deployment:
        yield deployment


def under_load(deployment: Deployment, fault: faults.Fault) -> Checker:
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


@pytest.mark.parametrize("fault", faults.ALL, ids=lambda fault: fault.__name__)
def test_nothing_is_lost_or_doubled(deployment: Deployment, fault: faults.Fault) -> None:
    checker = under_load(deployment, fault)
    assert checker.reads
