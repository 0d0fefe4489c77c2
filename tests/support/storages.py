"""Empty storages for servers under test, of the engine asked for by ``INSTAR_TEST_STORAGE``."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.storage.etcd_server import EtcdCluster
from tests.storage.postgres_server import PostgresNode, postgres_node

ENGINES = ("memory", "sqlite", "etcd", "postgres")


def chosen_engine() -> str:
    engine = os.environ.get("INSTAR_TEST_STORAGE", "memory")
    assert engine in ENGINES, f"INSTAR_TEST_STORAGE={engine}: use one of {', '.join(ENGINES)}"
    return engine


class Storages:
    """Hands out storage URLs; the etcd or PostgreSQL that they share starts with the first."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._cluster: EtcdCluster | None = None
        self._node: PostgresNode | None = None

    def empty(self, engine: str) -> str:
        name = uuid.uuid4().hex
        if engine == "memory":
            return "memory:"
        if engine == "sqlite":
            return f"sqlite:{self._folder / name}.db"
        if engine == "postgres":
            if self._node is None:
                self._node = self._stack.enter_context(postgres_node())
            return self._node.url(f"s{name}")
        if self._cluster is None:
            self._cluster = self._stack.enter_context(EtcdCluster(self._folder, members=1))
        return f"etcd://{self._cluster.addresses[0]}/{name}"


@contextmanager
def storages(folder: Path) -> Iterator[Storages]:
    with ExitStack() as stack:
        yield Storages(folder, stack)
