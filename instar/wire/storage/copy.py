"""Copies all records from one store to another and verifies the copy.

Called by ``instar storage copy`` (``cli/commands/storage.py``). Values are copied byte for byte.
The target assigns its own revisions, so clients of the target must list again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from instar.base.plurals import counted
from instar.wire.storage.store import Record, Store, StoreError, Write

_PAGE = 500


class Copied(NamedTuple):
    """Numbers of copied records and bytes."""

    records: int
    bytes: int


Progress = Callable[[str, int, int], None]
"""Called with the step (``count``, ``copy``, ``verify``), the records done and the total."""


def _no_progress(step: str, done: int, total: int) -> None:
    return None


async def copy_store(source: Store, target: Store, progress: Progress = _no_progress) -> Copied:
    """Copy ``source`` as of now. Raises ``StoreError`` when the target is not empty or differs.

    A failed copy leaves a partly filled target, which must be emptied before the next attempt.
    """
    if (await target.range("", limit=1)).records:
        raise StoreError("the target of the copy is not empty")
    revision = (await source.range("", limit=1)).revision
    total = await _count(source, revision, progress)
    done = 0
    async for page in _pages(source, revision):
        await asyncio.gather(*(target.commit(Write(r.key, r.value, 0)) for r in page))
        done += len(page)
        progress("copy", done, total.records)
    await _verify(source, revision, target, total, progress)
    return total


async def _count(source: Store, revision: int, progress: Progress) -> Copied:
    records = size = 0
    async for page in _pages(source, revision):
        records += len(page)
        size += sum(len(record.value) for record in page)
        progress("count", records, 0)
    return Copied(records, size)


async def _verify(
    source: Store, revision: int, target: Store, total: Copied, progress: Progress
) -> None:
    there = all_records(target, (await target.range("", limit=1)).revision)
    done = size = 0
    async for record in all_records(source, revision):
        found = await anext(there, None)
        if found is None or (found.key, found.value) != (record.key, record.value):
            raise StoreError(f"the copy differs from its source at {record.key}")
        done += 1
        size += len(found.value)
        if done % _PAGE == 0 or done == total.records:
            progress("verify", done, total.records)
    extra = await anext(there, None)
    if extra is not None:
        raise StoreError(f"the copy holds {extra.key}, which its source does not")
    if (done, size) != total:
        raise StoreError(f"{counted(total.records, 'record')} counted and {done} copied")


async def all_records(store: Store, revision: int) -> AsyncIterator[Record]:
    async for page in _pages(store, revision):
        for record in page:
            yield record


async def _pages(store: Store, revision: int) -> AsyncIterator[list[Record]]:
    start, more = "", True
    while more:
        page = await store.range("", start=start, limit=_PAGE, revision=revision)
        more = page.more
        if page.records:
            start = page.records[-1].key + "\0"
            yield list(page.records)
