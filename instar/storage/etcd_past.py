"""What happened to one key, out of etcd's revisions: as far back as they are not compacted.

etcd tells the past to watches alone. One that begins there is read until it has come to the
present; a deletion that is the last event can be told from silence only by asking for progress.
"""

from __future__ import annotations

import asyncio

from instar.rpc.channel import Messages
from instar.rpc.status import RpcError
from instar.storage import etcd_wire as wire
from instar.storage.etcd_client import RANGE, EtcdClient, HistoryGone, explain
from instar.storage.etcd_watch import reliable_progress
from instar.storage.store import Unavailable

_PATIENCE = 10.0
_SILENCE = 0.5
"""How long a release that cannot tell its progress may say nothing before it is believed."""


async def past_events(
    client: EtcdClient, key: bytes, target: int
) -> tuple[int, list[wire.WatchEvent]]:
    """The compacted revision, and every event of the key up to ``target``, oldest first; the
    first may be the value that was current when history was compacted."""
    compacted, events = await _watched(client, key, 1, target)
    while compacted:
        before = await _value_at(client, key, compacted)
        again, events = await _watched(client, key, compacted + 1, target)
        if not again:
            return compacted, [*before, *events]
        compacted = again  # somebody compacted meanwhile
    return 0, events


async def _value_at(client: EtcdClient, key: bytes, revision: int) -> list[wire.WatchEvent]:
    request = wire.range_request(key, revision=revision)
    try:
        answer = wire.read_range(await client.ask(RANGE, request))
    except HistoryGone:
        return []
    return [wire.WatchEvent(kv, False) for kv in answer.kvs]


async def _watched(
    client: EtcdClient, key: bytes, start: int, target: int
) -> tuple[int, list[wire.WatchEvent]]:
    """The compacted revision where history does not reach back so far, else 0; and the events."""
    messages, found = Messages(), list[wire.WatchEvent]()
    first = wire.watch_request(key, b"", start)
    endpoint, stream = await client.watch(first, messages.on_message, messages.on_end)
    try:
        async with asyncio.timeout(_PATIENCE):
            if reliable_progress(await client.version(endpoint)):
                stream.send(wire.progress_request())
            while (data := await _next(messages)) is not None:
                answer = wire.read_watch(data)
                if answer.cancelled:
                    return answer.compact_revision, []
                found += answer.events
                caught_up = not (answer.created or answer.events or answer.fragment)
                if caught_up and answer.revision >= target:
                    break
    except RpcError as error:
        raise Unavailable(str(explain(error, endpoint.address))) from error
    except TimeoutError as error:
        raise Unavailable(f"etcd {endpoint.address} does not tell the past in time") from error
    finally:
        stream.cancel()
    return 0, found


async def _next(messages: Messages) -> bytes | None:
    """``None`` where nothing comes for a while: the watch has told all."""
    try:
        async with asyncio.timeout(_SILENCE):
            return await messages.read()
    except TimeoutError:
        return None
