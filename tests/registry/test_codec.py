"""Lists of stored objects while other requests work on the same objects."""

from __future__ import annotations

import asyncio

import orjson

from instar.server.lifecycle.lifetime import running
from instar.server.registry.resources.serving import VersionServing
from instar.server.registry.stored.codec import Codec
from instar.server.registry.stored.entry import InMemoryEntry, ingest
from instar.wire.storage.store import Record

MANY = 6000
"""More than a list collects in one turn."""


def entry(name: str) -> InMemoryEntry:
    metadata = {"name": name, "uid": name}
    raw = orjson.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    return ingest(Record(name, raw, 7), name)


async def listed(codec: Codec, version: VersionServing) -> tuple[bytes, bytes]:
    """The last object before and after a request under another schema came in between."""
    entries = [entry(f"n{number}") for number in range(MANY)]
    before = (await codec.views(entries, version))[-1]
    listing = asyncio.ensure_future(codec.views(entries, version))
    await asyncio.sleep(0)
    entries[-1].normal, entries[-1].token = b'{"of":"another schema"}', object()
    return before, (await listing)[-1]


def test_a_list_shows_no_object_in_the_form_of_another_schema() -> None:
    async def scenario() -> tuple[bytes, bytes]:
        async with running() as server:
            resource = server.machinery.catalog.find("", "namespaces")
            assert resource is not None
            return await listed(resource.codec, resource.serving.storage)

    before, after = asyncio.run(scenario())
    assert after == before
