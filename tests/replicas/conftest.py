"""Deployments that tests share: each test uses groups and namespaces of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.replicas.processes import Deployment, Replica, deployed


@pytest.fixture(scope="session")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Three etcd members, two replicas."""
    with deployed(tmp_path_factory.mktemp("trio"), members=3, replicas=2) as deployment:
        yield deployment


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """One etcd member, two replicas that started at the same moment; they call webhooks only when
    they must, because tests count."""
    with deployed(
        tmp_path_factory.mktemp("pair"), members=1, replicas=2, serve=("--convert-ahead", "off")
    ) as deployment:
        yield deployment


@pytest.fixture
def one(pair: Deployment) -> Replica:
    return pair.replicas[0]


@pytest.fixture
def other(pair: Deployment) -> Replica:
    return pair.replicas[1]
