"""Replicas on one PostgreSQL database, and what can go wrong with that database."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.replicas.faults import Load
from tests.replicas.processes import Replica, prepare_pki
from tests.storage.postgres_server import PostgresNode, postgres_node


@dataclass
class PostgresDeployment:
    """A database and replicas in front of it."""

    node: PostgresNode
    replicas: list[Replica]
    storage: str


@contextlib.contextmanager
def deployed_on_postgres(
    folder: Path,
    *,
    replicas: int,
    serve: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[PostgresDeployment]:
    """All up and ready; all gone at the end."""
    prepare_pki(folder)
    with postgres_node() as node:
        storage = node.url()
        started = [Replica(folder, f"r{n}", storage, serve, environment) for n in range(replicas)]
        try:
            for replica in started:
                replica.start()
            for replica in started:
                replica.until_ready()
            yield PostgresDeployment(node, started, storage)
        finally:
            for replica in started:
                replica.kill()


Fault = Callable[[PostgresDeployment, Load], Awaitable[None]]


async def database_restarted(deployment: PostgresDeployment, load: Load) -> None:
    await asyncio.to_thread(deployment.node.stop, "immediate")
    await asyncio.to_thread(deployment.node.start)


async def database_stopped_politely(deployment: PostgresDeployment, load: Load) -> None:
    await asyncio.to_thread(deployment.node.stop, "fast")
    await asyncio.to_thread(deployment.node.start)


async def database_killed(deployment: PostgresDeployment, load: Load) -> None:
    await asyncio.to_thread(deployment.node.kill)
    await asyncio.to_thread(deployment.node.start)


async def connections_ended(deployment: PostgresDeployment, load: Load) -> None:
    """By the administrator, again and again, in the middle of whatever they do."""
    for _ in range(10):
        await load.more_acknowledged(10)
        await asyncio.to_thread(
            deployment.node.sql,
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where application_name like 'instar/%'",
        )


async def replica_killed(deployment: PostgresDeployment, load: Load) -> None:
    killed = deployment.replicas[-1]
    killed.kill()
    await load.more_acknowledged(50)
    killed.start()
    await asyncio.to_thread(killed.until_ready)


async def history_compacted(deployment: PostgresDeployment, load: Load) -> None:
    """By another hand, up to now: replicas that are behind load again."""
    await asyncio.to_thread(
        deployment.node.sql, "select instar.compact_1((select revision from instar.head))"
    )


ALL: tuple[Fault, ...] = (
    database_restarted,
    database_stopped_politely,
    database_killed,
    connections_ended,
    replica_killed,
    history_compacted,
)
