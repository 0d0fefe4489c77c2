"""Bytes in the store that are no object: they fail alone, and can be removed."""

from __future__ import annotations

import asyncio
import json

import pytest

from instar.wire.storage.keys import collection_prefix
from instar.wire.storage.store import Write
from tests.rest.support import MERGE, Collection, make_crd, version
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
    put(server, key, value.replace(b"GROUP", foos.group.encode()), 0)


def put(server: LiveServer, key: str, value: bytes, expected: int) -> None:
    store = server.running.machinery.backend.store
    commit = store.commit(Write(key, value, expected))
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


def test_an_object_without_uid_and_generation_can_be_changed_and_deleted(
    server: LiveServer, foos: Collection
) -> None:
    bare = (
        b'{"apiVersion":"GROUP/v1","kind":"Foo","metadata":{"name":"bare","namespace":"default"}}'
    )
    put_bytes(server, foos, "bare", bare)

    stored = foos.get("bare")
    replaced = foos.request("PUT", "/bare", {**stored, "spec": {"a": "1"}})
    patched = foos.request("PATCH", "/bare", {"spec": {"a": "2"}}, content_type=MERGE)

    assert (replaced.status, patched.status) == (200, 200), (replaced.text, patched.text)
    assert not patched.json["metadata"]["uid"]
    assert "uid" not in foos.delete("bare").json["details"]


def test_a_crd_without_uid_and_generation_can_be_changed(server: LiveServer) -> None:
    group = "bare.damaged.ex.io"
    crd = make_crd(group, [version("v1", storage=True)])
    server.create_crd(crd)
    name, crds = crd["metadata"]["name"], "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    stored = server.request("GET", f"{crds}/{name}").json
    revision = int(stored["metadata"]["resourceVersion"])
    for member in ("uid", "generation", "resourceVersion"):
        del stored["metadata"][member]
    prefix = collection_prefix("apiextensions.k8s.io", "customresourcedefinitions")
    put(server, prefix + name, json.dumps(stored).encode(), revision)

    shown = server.request("GET", f"{crds}/{name}").json
    shown["spec"]["names"]["shortNames"] = ["br"]
    answer = server.request("PUT", f"{crds}/{name}", shown)

    assert answer.status == 200, answer.text
    assert answer.json["spec"]["names"]["shortNames"] == ["br"]
