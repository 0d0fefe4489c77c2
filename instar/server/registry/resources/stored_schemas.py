"""Schemas of a stored CRD, parsed from its cache entry when they are used.

The catalog makes one per CRD; ``serving.py`` and OpenAPI read it. A parsed schema takes four times
the memory of its JSON, and most CRDs of a cluster are hardly used, so only the entry's bytes are
kept. The last parsed CRDs are cached, because the versions of one CRD are read one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import orjson

from instar.base.weighted_lru import WeightedLru
from instar.kube.api.crd import Crd
from instar.server.registry.resources.crd_text import spec_text
from instar.server.registry.stored.entry import CacheEntry

_CACHED_BYTES = 2 << 20
"""Bytes of JSON of the CRDs whose parsed schemas are cached; above it the oldest are dropped."""
_read: WeightedLru[CacheEntry, dict[str, Mapping[str, Any]]] = WeightedLru(_CACHED_BYTES)


class StoredSchemas:
    """The schemas of one CRD while its spec stays the same."""

    def __init__(self, entry: CacheEntry, read: Callable[[CacheEntry], Mapping[str, Any]]) -> None:
        self.entry = entry
        """Replaced when the CRD is written again with the same spec."""
        self._read_crd = read

    def of(self, version: str) -> Mapping[str, Any]:
        """Return the ``openAPIV3Schema`` of a version."""
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
        """A hash of the spec."""
        spec = spec_text(self.entry)
        if spec is None:
            said = self._read_crd(self.entry).get("spec")
            spec = orjson.dumps(said, option=orjson.OPT_SORT_KEYS)
        return blake2b(spec, digest_size=32).digest()

    def behind(self, crd: Crd) -> Crd:
        """Return the CRD with schemas that are read from the entry on use."""
        versions = tuple(
            each if each.schema is None else replace(each, schema=StoredSchema(self, each.name))
            for each in crd.versions
        )
        return replace(crd, versions=versions)


class StoredSchema(Mapping[str, Any]):
    """One version's ``openAPIV3Schema``, read on use."""

    def __init__(self, schemas: StoredSchemas, version: str) -> None:
        self._schemas = schemas
        self._version = version

    def __getitem__(self, name: str) -> Any:
        return self._schemas.of(self._version)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._schemas.of(self._version))

    def __len__(self) -> int:
        return len(self._schemas.of(self._version))
