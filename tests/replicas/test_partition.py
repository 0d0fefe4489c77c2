"""Members of etcd that reach their clients and not each other: nothing is lost, and the replicas
answer nothing that an isolated member believes.

Each member runs in a network namespace of its own, so root and iproute2 are needed.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.replicas.checker import Checker
from tests.replicas.faults import Load, leader
from tests.replicas.processes import Deployment, deployed
from tests.replicas.test_faults import under_load
from tests.storage.etcd_server import EtcdCluster, EtcdMember

_CLIENTS, _PEERS = 2379, 2380


class Networks:
    """A bridge, and a namespace for each member with an address of its own."""

    def __init__(self, count: int) -> None:
        mark = secrets.token_hex(3)
        self._bridge, third = f"ib{mark}", secrets.randbelow(250) + 1
        self.names = [f"in{mark}{number}" for number in range(count)]
        self.hosts = [f"10.231.{third}.{10 + number}" for number in range(count)]
        self._gateway = f"10.231.{third}.1"

    def __enter__(self) -> Networks:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self._gateway}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for name, host in zip(self.names, self.hosts, strict=True):
            _ip("netns", "add", name)
            _ip("link", "add", f"{name}h", "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", f"{name}h", "master", self._bridge, "up")
            _ip("-n", name, "addr", "add", f"{host}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)
        subprocess.run(["ip", "link", "del", self._bridge], check=False)

    def isolate(self, number: int) -> None:
        """Drop what the member sends to the others; their packets find no answer."""
        for host in self._others(number):
            _ip("-n", self.names[number], "route", "add", "blackhole", f"{host}/32")

    def join(self, number: int) -> None:
        for host in self._others(number):
            _ip("-n", self.names[number], "route", "del", "blackhole", f"{host}/32")

    def _others(self, number: int) -> list[str]:
        return [host for host in self.hosts if host != self.hosts[number]]


class SpreadCluster(EtcdCluster):
    """An etcd whose members are in different networks."""

    def __init__(self, folder: Path, networks: Networks) -> None:
        self._networks = networks
        super().__init__(folder, len(networks.names))

    def _made(self, folder: Path, members: int, extra: Sequence[str]) -> list[EtcdMember]:
        return [
            EtcdMember(
                folder,
                f"m{number}",
                _CLIENTS,
                _PEERS,
                extra,
                host=self._networks.hosts[number],
                within=("ip", "netns", "exec", self._networks.names[number]),
            )
            for number in range(members)
        ]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def networks() -> Iterator[Networks]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("namespaces need root and iproute2")
    try:
        entered = Networks(3).__enter__()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.decode()}")
    try:
        yield entered
    finally:
        entered.__exit__()


@pytest.fixture(scope="module")
def spread(networks: Networks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("spread")
    with deployed(
        folder, members=3, replicas=2, cluster=SpreadCluster(folder, networks)
    ) as deployment:
        yield deployment


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_partition_between_members_loses_and_doubles_nothing(
    spread: Deployment, networks: Networks, role: str
) -> None:
    async def partition(deployment: Deployment, load: Load) -> None:
        leading = deployment.cluster.members.index(await leader(deployment))
        cut = leading if role == "leader" else (leading + 1) % 3
        networks.isolate(cut)
        try:
            await load.more_acknowledged(100)
        finally:
            networks.join(cut)

    partition.__name__ = f"{role}_partition"
    checker: Checker = under_load(spread, partition)

    assert checker.reads


def test_without_a_majority_nothing_is_acknowledged_and_afterwards_all_goes_on(
    spread: Deployment, networks: Networks
) -> None:
    async def no_majority(deployment: Deployment, load: Load) -> None:
        networks.isolate(0)
        networks.isolate(1)
        try:
            await asyncio.sleep(1.0)  # the last answers of the majority arrive
            before = len(load.acknowledged)
            await asyncio.sleep(2.0)
            assert len(load.acknowledged) == before
        finally:
            networks.join(0)
            networks.join(1)

    checker = under_load(spread, no_majority)

    assert checker.reads
