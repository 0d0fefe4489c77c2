"""Events go a while after their last write."""

from __future__ import annotations

import asyncio

from instar.server.registry.controllers.event_ttl import EventExpiry
from instar.server.registry.resources.context import Context
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.watchcache.collection import Change
from tests.support.server import LiveServer, live_server

_EVENTS = "/api/v1/namespaces/default/events"


def _make(server: LiveServer, name: str) -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    body = {"metadata": {"name": name}, "involvedObject": about}
    assert server.request("POST", _EVENTS, body).status == 201


async def _first_to_go(server: LiveServer, written: float, now: float) -> str:
    """What an expiry of ten seconds removes first, of events that were written at ``written``."""
    machinery = server.running.machinery
    events = machinery.catalog.builtin("", "events")
    time = [written]
    gone: asyncio.Queue[str] = asyncio.Queue()

    def changed(change: Change[CacheEntry]) -> None:
        if change.new is None:
            gone.put_nowait(change.suffix)

    events.objects.listeners.append(changed)
    context = Context(backend=machinery.backend)
    expiry = EventExpiry(context, events, machinery.leadership, seconds=10.0, clock=lambda: time[0])
    expiry.start()
    time[0] = now
    try:
        return await asyncio.wait_for(gone.get(), 5.0)
    finally:
        await expiry.stop()


def test_an_event_goes_when_its_time_is_up() -> None:
    with live_server(storage="memory:") as server:
        _make(server, "old")

        gone = server.run(_first_to_go(server, written=0.0, now=11.0))

        assert gone == "default/old"
        assert server.request("GET", f"{_EVENTS}/old").status == 404
