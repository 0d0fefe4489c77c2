"""The schemas of a stored CRD, read when somebody looks into one.

Parsed, a schema is four times its JSON, and most CRDs of a cluster are hardly ever used: what is
kept is the CRD's bytes, which the cache holds anyway. What was just read is remembered for a
moment, because whoever looks into one version of a CRD soon looks into the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import orjson

from instar.base.weighted_lru import Remembered
from instar.kube.api.crd import Crd
from instar.server.registry.resources.crd_text import spec_text
from instar.server.registry.stored.entry import CacheEntry

_REMEMBERED = 2 << 20
"""Bytes of JSON."""
_read: Remembered[CacheEntry, dict[str, Mapping[str, Any]]] = Remembered(_REMEMBERED)


class StoredSchemas:
    """Of one CRD, as long as its spec is the same."""

    def __init__(self, entry: CacheEntry, read: Callable[[CacheEntry], Mapping[str, Any]]) -> None:
        self.entry = entry
        """Replaced when the CRD is written again and its spec is not changed."""
        self._read_crd = read

    def of(self, version: str) -> Mapping[str, Any]:
        entry = self.entry
        found = _read.get(entry)
        if found is None:
            versions = self._read_crd(entry)["spec"]["versions"]
            found = {
                each["name"]: (each.get("schema") or {}).get("openAPIV3Schema") or {}
                for each in versions
            }
            _read.put(entry, found, entry.size)
        return found[version]

    @cached_property
    def digest(self) -> bytes:
        """Of the spec: another one has another."""
        spec = spec_text(self.entry)
        if spec is None:
            said = self._read_crd(self.entry).get("spec")
            spec = orjson.dumps(said, option=orjson.OPT_SORT_KEYS)
        return blake2b(spec, digest_size=32).digest()

    def behind(self, crd: Crd) -> Crd:
        """The same CRD without its schemas in hand."""
        versions = tuple(
            each if each.schema is None else replace(each, schema=StoredSchema(self, each.name))
            for each in crd.versions
        )
        return replace(crd, versions=versions)


class StoredSchema(Mapping[str, Any]):
    """One version's ``openAPIV3Schema``."""

    def __init__(self, schemas: StoredSchemas, version: str) -> None:
        self._schemas = schemas
        self._version = version

    def __getitem__(self, name: str) -> Any:
        return self._schemas.of(self._version)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._schemas.of(self._version))

    def __len__(self) -> int:
        return len(self._schemas.of(self._version))
