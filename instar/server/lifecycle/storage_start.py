"""Storage of a server: opening it, reading it into the watch cache, and the background tasks that
maintain it.

``lifetime.py`` opens the store; ``composition.py`` lists the parts made here. How a store works
is in ``wire/storage``.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from instar.base.supervision import Supervision, rest
from instar.server.lifecycle.parts import Part, background_task
from instar.server.registry.stored.backend import Backend
from instar.server.settings import Settings
from instar.wire.storage.compactor import Compactor, HistoryLimits
from instar.wire.storage.open import open_store
from instar.wire.storage.store import Checkable, Local, Store, StoreLost, Unavailable
from instar.wire.storage.value_reader import RecentValues, ValueReader, Values, ValuesNotReadable

if TYPE_CHECKING:
    from instar.server.lifecycle.encryption_setup import EncryptionAtRest

log = logging.getLogger(__name__)
_PROBE_SECONDS = 2.0
_PROBES_PER_WRITE = 15
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


async def opened_store(
    settings: Settings, encryption: EncryptionAtRest | None, stack: AsyncExitStack
) -> Store:
    """The store that the settings name; the stack closes it. Raises ``StoreError``."""
    beside = settings.shared_port if settings.worker else None
    store = await open_store(settings.storage, settings.storage_options, beside=beside)
    if encryption is not None:
        store = encryption.before(store)
    stack.push_async_callback(store.close)
    return store


def values_of(settings: Settings, store: Store) -> Values | None:
    """Where cache entries read their bytes from; None: entries hold their bytes. Raises
    ``StoreError`` for a store that has no file to read them from."""
    if settings.values == "memory":
        return None
    if not isinstance(store, ValueReader):
        raise ValuesNotReadable
    return RecentValues(store.values())


def first_read(
    backend: Backend,
    encryption: EncryptionAtRest | None = None,
    fill: Callable[[Store], Awaitable[None]] | None = None,
) -> Part:
    """Reads the small collections and everything that authorises requests. ``fill`` puts objects
    into the store before that."""
    filling = [fill] if fill is not None else []

    async def read() -> None:
        if encryption is not None:
            await encryption.warm()
        while filling:
            await filling[0](backend.store)
            filling.clear()  # the next attempt finds them stored
        await backend.begin()

    return Part("watch cache", partial(retry_while_unavailable, backend, read), backend.cache.stop)


def packing_parts(backend: Backend, supervision: Supervision) -> list[Part]:
    """Packs objects in memory. It is started before they are read, to pack them at once."""
    if backend.packer is None:
        return []
    return [background_task("packing", partial(backend.packer.run, backend.cache), supervision)]


def last_read(backend: Backend) -> Part:
    """Reads the large collections; requests for the others are answered meanwhile."""
    return Part("large collections", partial(retry_while_unavailable, backend, backend.finish))


async def retry_while_unavailable(backend: Backend, step: Callable[[], Awaitable[None]]) -> None:
    """Retry while the store is not up yet; raise any other failure."""
    delay = _FIRST_PAUSE
    while True:
        try:
            await step()
            backend.cache.failure = None
            return
        except StoreLost:
            raise
        except Unavailable as error:
            backend.cache.failure = error
            log.warning("waiting for the storage: %s", error)
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_PAUSE)


def maintenance_parts(settings: Settings, backend: Backend, supervision: Supervision) -> list[Part]:
    """Compaction of old revisions, and a probe for /readyz."""
    compactor = Compactor(
        backend.store,
        keep=settings.history_seconds,
        most=HistoryLimits(settings.history_bytes),
        compacted=backend.cache.compacted,
    )
    return [
        background_task("compaction", compactor.run, supervision),
        background_task("storage probe", partial(_probe, backend), supervision),
    ]


async def _probe(backend: Backend) -> None:
    """Notice that a remote store has gone, or a disk is full, while there are no requests. A store
    in a file is written to periodically, and after a failure until a write succeeds."""
    remote = not isinstance(backend.store, Local)
    if not remote and not isinstance(backend.store, Checkable):
        return
    for turn in itertools.count(1):
        await rest(_PROBE_SECONDS)
        if remote or backend.trouble is not None or turn % _PROBES_PER_WRITE == 0:
            await backend.probe()
