"""A process that writes to a store until it is killed, telling on stdout what was acknowledged."""

from __future__ import annotations

import asyncio
import os
import sys

from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Write


async def write_forever(store: SqliteStore, name: str) -> None:
    found = await store.get(name)
    revision, count = (found.revision, int(found.value)) if found else (0, 0)
    while True:
        count += 1
        revision = await store.commit(Write(name, b"%d" % count, revision))
        os.write(1, b"%s %d %d\n" % (name.encode(), count, revision))


async def compact_forever(store: SqliteStore) -> None:
    while True:
        await store.compact(max(1, await store.barrier() - 20))
        await asyncio.sleep(0.002)


async def main(path: str) -> None:
    store = SqliteStore(path)
    writers = (write_forever(store, f"writer/{number}") for number in range(8))
    await asyncio.gather(compact_forever(store), *writers)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
