"""Encoding of one object for the store and for a response, with and without server-only fields.

``codec.py``, ``verbs/update_attempt.py`` and ``verbs/delete.py`` call it. The functions work on
plain objects; ``codec.py`` handles versions and cache entries.
"""

from __future__ import annotations

from typing import NamedTuple

from instar.base.json_values import Object
from instar.kube.api.encoding.json_text import encode_sorted
from instar.server.registry.stored.object_bytes import offset_by_uid


class PreparedObject(NamedTuple):
    """An object ready to be committed."""

    raw: bytes
    at: int
    """Where the resourceVersion belongs in ``raw``; -1 if unknown."""
    obj: Object
    """The object as it will be stored."""
    back: Object | None
    """The stored object converted back to the writer's version, if a webhook had to convert it;
    else None."""


def encode_at_revision(obj: Object, revision: int) -> bytes:
    """Return the object's JSON with this resourceVersion."""
    return encode_sorted({**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}})


def without_server_fields(obj: Object) -> Object:
    """Return the object without the metadata that is shown but never stored."""
    metadata = obj["metadata"].copy()
    metadata.pop("resourceVersion", None)
    metadata.pop("selfLink", None)
    return {**obj, "metadata": metadata}


def encode_for_storage(obj: Object, back: Object | None = None) -> PreparedObject:
    """Return ``obj`` encoded, ready to be committed."""
    raw = encode_sorted(obj)
    return PreparedObject(raw, offset_by_uid(raw, obj), obj, back)
