"""Members and replicas killed and stopped under load, with a checker at work."""

from __future__ import annotations

import asyncio

import pytest

from tests.replicas import faults
from tests.replicas.checker import Checker
from tests.replicas.client import Client
from tests.replicas.processes import Deployment

WRITERS = 6


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
def test_nothing_is_lost_or_doubled(trio: Deployment, fault: faults.Fault) -> None:
    checker = under_load(trio, fault)
    assert checker.reads
