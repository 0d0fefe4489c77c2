from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from instar.wire.storage.encryption.config import EncryptionRule, GroupPlural, Key, Keyed
from instar.wire.storage.encryption.providers import EncryptionProviders
from instar.wire.storage.encryption.store import encrypt_store
from instar.wire.storage.etcd.client import EtcdOptions
from instar.wire.storage.etcd.store import EtcdStore
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.postgres.store import PostgresStore
from instar.wire.storage.postgres.url import parse_url
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Store
from instar.wire.storage.workers.store_server import StoreServer
from instar.wire.storage.workers.worker_store import PeerStore
from tests.storage.etcd_server import EtcdCluster
from tests.storage.postgres_server import PostgresNode

EVERYTHING = EncryptionRule((GroupPlural("*", "*"),), (Keyed("aesgcm", (Key("k", bytes(32)),)),))
BACKENDS = ["memory", "sqlite", "etcd", "postgres", "peer", "sealed", "sealed-postgres"]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def one_loop(anyio_backend: str) -> AsyncIterator[None]:
    """One event loop per module: gRPC's poller complains into the next loop about a closed one."""
    yield
    await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def etcd_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd"), members=1) as cluster:
        yield cluster


def _on_postgres(node: PostgresNode) -> PostgresStore:
    return PostgresStore(parse_url(node.url(f"s{uuid.uuid4().hex}"), timeout=10))


@asynccontextmanager
async def _lent(owned: Store, folder: Path) -> AsyncIterator[PeerStore]:
    server = StoreServer(owned, folder)
    await server.start()
    store = await PeerStore.connect(folder)
    yield store
    await store.close()
    await server.close()
    await owned.close()


@pytest.fixture(params=BACKENDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened: Store
    if request.param == "peer":
        async with _lent(SqliteStore(str(tmp_path / "s.db")), tmp_path) as lent:
            yield lent
        return
    if request.param == "memory":
        opened = MemoryStore()
    elif request.param == "sealed":
        opened = encrypt_store(
            SqliteStore(str(tmp_path / "s.db")), EncryptionProviders([EVERYTHING])
        )
    elif request.param == "postgres":
        opened = _on_postgres(request.getfixturevalue("postgres"))
    elif request.param == "sealed-postgres":
        on_database = _on_postgres(request.getfixturevalue("postgres"))
        opened = encrypt_store(on_database, EncryptionProviders([EVERYTHING]))
    elif request.param == "sqlite":
        opened = SqliteStore(str(tmp_path / "s.db"))
    else:
        cluster: EtcdCluster = request.getfixturevalue("etcd_cluster")
        opened = EtcdStore(cluster.addresses, f"/{uuid.uuid4()}", EtcdOptions(timeout=10))
    yield opened
    await opened.close()
