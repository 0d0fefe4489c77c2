"""The steps the contract of stores is told in."""

from __future__ import annotations

from instar.wire.storage.store import Store, Write


async def put(store: Store, key: str, value: bytes = b"v", expected: int = 0) -> int:
    return await store.commit(Write(key, value, expected))


async def delete(store: Store, key: str, expected: int) -> int:
    return await store.commit(Write(key, None, expected))


async def keys(store: Store, prefix: str = "", *, revision: int = 0) -> list[str]:
    return [record.key for record in (await store.range(prefix, revision=revision)).records]
