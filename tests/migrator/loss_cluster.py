"""The servers of the random histories: an etcd whose bytes can be read and written, and a journal
that dies."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from instar.tools.migrator.progress_file import ProgressFile
from instar.wire.storage.open import StorageOptions, open_store
from instar.wire.storage.store import Write
from tests.migrator.upstream import Upstream, upstream
from tests.storage.etcd_server import EtcdCluster
from tests.support.server import live_server
from tests.support.webhook import Webhook


class LossCluster:
    """One etcd, one server behind a stand-in for kube-apiserver, one webhook, for all histories."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        etcd = stack.enter_context(EtcdCluster(folder, members=1))
        self.storage = f"etcd://{etcd.members[0].address}/losses"
        server = stack.enter_context(live_server(storage=self.storage, conversion_cache=False))
        self.api: Upstream = stack.enter_context(upstream(server, folder))
        self.hook = stack.enter_context(Webhook())
        self.folder = folder
        self.played = 0
        self.runs: Counter[str] = Counter()

    def stored(self, prefix: str) -> dict[str, bytes]:
        async def read() -> dict[str, bytes]:
            store = await open_store(self.storage, StorageOptions())
            try:
                page = await store.range(prefix)
                return {r.key.removeprefix(prefix): r.value for r in page.records}
            finally:
                await store.close()

        return asyncio.run(read())

    def store(self, key: str, value: bytes) -> None:
        async def write() -> None:
            store = await open_store(self.storage, StorageOptions())
            try:
                known = await store.get(key)
                await store.commit(Write(key, value, 0 if known is None else known.revision))
            finally:
                await store.close()

        asyncio.run(write())


class KilledJournal(ProgressFile):
    """Dies at the n-th note of a result; what was not noted by then is lost."""

    left = 2

    def correct(self, outcomes: Any) -> None:
        self._tick()
        super().correct(outcomes)

    def finish_page(self, outcomes: Any, token: str) -> None:
        self._tick()
        super().finish_page(outcomes, token)

    def _tick(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
