"""What can go wrong, one function each: break it, see that work goes on, mend it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Protocol

from tests.replicas.checker import Told
from tests.replicas.processes import Deployment, etcdctl
from tests.storage.etcd_server import EtcdMember
from tests.storage.test_etcd_faults import member_and_leader


class Load(Protocol):
    """Whoever writes meanwhile."""

    acknowledged: list[Told]

    async def more_acknowledged(self, count: int) -> None: ...


Fault = Callable[[Deployment, Load], Awaitable[None]]


async def leader(deployment: Deployment) -> EtcdMember:
    while True:
        for member in deployment.cluster.members:
            asked, leads = await member_and_leader(member.address)
            if asked == leads:
                return member
        await asyncio.sleep(0.1)


async def leader_killed(deployment: Deployment, load: Load) -> None:
    killed = await leader(deployment)
    killed.kill()
    await load.more_acknowledged(100)
    deployment.cluster.start(killed)


async def member_stopped(deployment: Deployment, load: Load) -> None:
    """Its connections stay open and nothing answers: like a member cut off from the others."""
    stopped = deployment.cluster.members[0]
    stopped.signal(signal.SIGSTOP)
    try:
        await load.more_acknowledged(100)
    finally:
        stopped.signal(signal.SIGCONT)


async def leader_stopped(deployment: Deployment, load: Load) -> None:
    stopped = await leader(deployment)
    stopped.signal(signal.SIGSTOP)
    try:
        await load.more_acknowledged(100)
    finally:
        stopped.signal(signal.SIGCONT)


async def etcd_restarted(deployment: Deployment, load: Load) -> None:
    for member in deployment.cluster.members:
        member.kill()
    for member in deployment.cluster.members:
        deployment.cluster.start(member)


async def replica_killed(deployment: Deployment, load: Load) -> None:
    killed = deployment.replicas[1]
    killed.kill()
    await load.more_acknowledged(100)
    killed.start()
    await asyncio.to_thread(killed.until_ready)


async def replica_stopped(deployment: Deployment, load: Load) -> None:
    """It wakes up with a memory of long ago, and must not answer from it."""
    stopped = deployment.replicas[0]
    stopped.signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(1.5)
    finally:
        stopped.signal(signal.SIGCONT)


async def history_compacted(deployment: Deployment, load: Load) -> None:
    """By somebody else's hand, up to now."""
    address = deployment.cluster.addresses[0]
    told = max(told.revision for told in load.acknowledged)
    await asyncio.to_thread(etcdctl, address, "compact", str(told))


ALL: tuple[Fault, ...] = (
    leader_killed,
    member_stopped,
    leader_stopped,
    etcd_restarted,
    replica_killed,
    replica_stopped,
    history_compacted,
)
