"""Digests of objects. Pure.

``comparison.py`` and ``return_group.py`` compare the objects of two servers by them.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

import orjson

from instar.base.json_values import Object
from instar.tools.adopter.moved_group import revision_of


class ObjectDigest(NamedTuple):
    """Digest of an object, with its resourceVersion when it was read."""

    revision: int
    digest: bytes


def digest_of(obj: Object) -> ObjectDigest:
    """Digest of everything but resourceVersion, which each server counts by itself."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    data = orjson.dumps({**obj, "metadata": metadata}, option=orjson.OPT_SORT_KEYS)
    return ObjectDigest(revision_of(obj), blake2b(data, digest_size=16).digest())
