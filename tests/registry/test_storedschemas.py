"""A CRD's schemas are read when somebody looks into them, from the bytes the cache holds."""

from __future__ import annotations

from typing import Any

import orjson

from instar.kube.api.crd import read_crd
from instar.server.registry.resources.stored_schemas import StoredSchemas
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry

_CRD: dict[str, Any] = {
    "metadata": {"name": "widgets.example.com", "uid": "u"},
    "spec": {
        "group": "example.com",
        "versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}},
            {"name": "v2"},
        ],
    },
}


def _entry() -> CacheEntry:
    return InMemoryEntry(orjson.dumps(_CRD), 1, "widgets.example.com")


def test_a_schema_is_what_the_crd_says() -> None:
    schemas = StoredSchemas(_entry(), CacheEntry.decode)

    v1, v2 = schemas.behind(read_crd(_CRD)).versions

    assert v1.schema is not None
    assert dict(v1.schema) == {"type": "object"}
    assert v2.schema is None


def test_looking_twice_reads_once() -> None:
    read: list[CacheEntry] = []

    def decode(entry: CacheEntry) -> dict[str, Any]:
        read.append(entry)
        return entry.decode()

    schemas = StoredSchemas(_entry(), decode)

    schemas.of("v1")
    schemas.of("v1")

    assert len(read) == 1


def test_a_crd_written_again_lets_its_old_bytes_go() -> None:
    schemas = StoredSchemas(_entry(), CacheEntry.decode)
    again = _entry()

    schemas.entry = again

    assert schemas.of("v1") == {"type": "object"}
    assert schemas.entry is again
