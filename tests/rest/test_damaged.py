"""Bytes in the store that are no object: they fail alone, and can be removed."""

from __future__ import annotations

import asyncio

import pytest

from instar.storage.keys import collection_prefix
from instar.storage.store import Write
from tests.rest.support import Collection
from tests.support.server import LiveServer

UNSAFE = "ignoreStoreReadErrorWithClusterBreakingPotential=true"
DAMAGED = [
    b"",
    b"garbage",
    b"[]",
    b'{"apiVersion":"GROUP/v1"',
    b'{"apiVersion":"GROUP/v1","kind":"Foo","metadata":{"name":"broken","uid":"x"',
    b'{"apiVersion":"\xff',
]


def put_bytes(server: LiveServer, foos: Collection, name: str, value: bytes) -> None:
    key = f"{collection_prefix(foos.group, foos.plural)}default/{name}"
    store = server.running.machinery.backend.store
    commit = store.commit(Write(key, value.replace(b"GROUP", foos.group.encode()), 0))
    asyncio.run_coroutine_threadsafe(commit, server.loop).result(10)


@pytest.mark.parametrize("value", DAMAGED)
def test_damaged_bytes_fail_alone_and_can_be_removed(
    server: LiveServer, foos: Collection, value: bytes
) -> None:
    revision = foos.request("GET").json["metadata"]["resourceVersion"]
    with foos.watch(f"&resourceVersion={revision}&fieldSelector=metadata.name=whole") as stream:
        assert server.request("GET", "/instar/census").status == 200  # counts follow from now on
        put_bytes(server, foos, "broken", value)
        assert foos.request("GET", "/broken").json["code"] == 500
        assert "JSONDecodeError" not in foos.request("GET", "/broken").text
        assert server.request("GET", "/instar/census").status == 200
        assert server.request("GET", "/metrics").status == 200
        assert foos.create("whole")
        assert stream.events(1)[0]["type"] == "ADDED"
        assert foos.delete("broken").status == 500
        assert foos.request("DELETE", f"/broken?{UNSAFE}").json["status"] == "Success"
        assert foos.request("GET", "/broken").status == 404
    foos.delete("whole")
