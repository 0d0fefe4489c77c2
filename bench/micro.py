"""Micro-benchmarks of the hot functions, in microseconds of CPU (best of several rounds)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import orjson

from bench.fixtures import pod, schema, thing
from instar.kube.api.encoding.json_text import decode, duplicate_keys, encode_sorted
from instar.kube.apply.managers import Writer, ownership_before, track_update
from instar.kube.apply.ownership_schema import compile_schema as compile_typed
from instar.kube.patches.json_patch import merge_patch
from instar.kube.protobuf.envelope import decode_object, encode_object
from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.metadata.object_meta import coerce_metadata, validate_metadata
from instar.server.registry.stored.entry import InMemoryEntry
from instar.server.registry.verbs.watch_events import plain_event
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import Write

VERSION = "bench.example.com/v1"
_ROUNDS = 7


def measure(function: Callable[[], Any], number: int = 2000) -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        began = time.process_time()
        for _ in range(number):
            function()
        best = min(best, time.process_time() - began)
    return best / number * 1e6


def run() -> dict[str, float]:
    compiled, typed = compile_schema(schema()), compile_typed(compile_schema(schema()).structural)
    obj = thing()
    obj["metadata"] |= {
        "name": "ct-abcde",
        "namespace": "default",
        "uid": "6f2c4a54-5b0e-4a53-8b8a-1f7d3f4d2f10",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": 1,
    }
    body = orjson.dumps(obj)
    writer = Writer("bench", VERSION, "2026-01-01T00:00:00Z")
    owned = {**obj, "metadata": {**obj["metadata"]}}
    owned["metadata"]["managedFields"] = track_update(
        {}, writer, None, {VERSION: obj}, {VERSION: typed}
    )
    raw = encode_sorted(owned)
    patch = {"metadata": {"annotations": {"example.com/seq": "1"}}}
    patched = merge_patch(owned, patch)
    views = [InMemoryEntry(raw, 1000 + n, f"default/ct-{n}").view for n in range(500)]
    store, revisions = MemoryStore(), iter(range(10**9))
    running = pod()
    message = encode_object(running)

    def clean() -> None:
        value = orjson.loads(body)
        compiled.prune(value)
        compiled.drop_nulls(value)
        compiled.default(value)
        compiled.validate(value)

    def read_body() -> None:
        duplicate_keys(body, decode(body))

    def metadata() -> None:
        coerce_metadata(obj["metadata"])
        validate_metadata(obj["metadata"], namespaced=True)

    def update_ownership() -> None:
        before = ownership_before(owned, patched)
        track_update(before, writer, {VERSION: owned}, {VERSION: patched}, {VERSION: typed})

    def commit() -> None:
        _finish(store.commit(Write(f"g/p/{next(revisions)}", raw, 0)))

    return {
        "read body (parse, repeated keys)": measure(read_body),
        "decode, prune, default, validate": measure(clean),
        "metadata: coerce and validate": measure(metadata),
        "ownership: create": measure(
            lambda: track_update({}, writer, None, {VERSION: obj}, {VERSION: typed})
        ),
        "ownership: one annotation": measure(update_ownership),
        "merge patch": measure(lambda: merge_patch(owned, patch)),
        "encode for the store": measure(lambda: encode_sorted(owned)),
        "splice resourceVersion": measure(lambda: InMemoryEntry(raw, 1, "a/b").view),
        "join 500 objects": measure(lambda: b",".join(views), 200),
        "event line": measure(lambda: plain_event("MODIFIED", views[0])),
        "memory store commit": measure(commit),
        "protobuf: write a Pod": measure(lambda: encode_object(running)),
        "protobuf: read a Pod": measure(lambda: decode_object(message)),
    }


def _finish(coroutine: Any) -> None:
    """Run a coroutine that never suspends, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("the memory store waited")
