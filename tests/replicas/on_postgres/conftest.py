"""The tests of replicas again, on PostgreSQL: three replicas that started at the same moment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.replicas.postgres_faults import PostgresDeployment, deployed_on_postgres
from tests.replicas.processes import Replica


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresDeployment]:
    with deployed_on_postgres(
        tmp_path_factory.mktemp("pg"), replicas=3, serve=("--convert-ahead", "off")
    ) as deployment:
        yield deployment


@pytest.fixture
def one(pair: PostgresDeployment) -> Replica:
    return pair.replicas[0]


@pytest.fixture
def other(pair: PostgresDeployment) -> Replica:
    return pair.replicas[2]
