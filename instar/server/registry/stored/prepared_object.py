"""An object on its way into the store, and out of it: its bytes with and without what only the
server says. Knows no versions and no entries."""

from __future__ import annotations

from typing import NamedTuple

from instar.base.json_values import Object
from instar.kube.api.encoding.json_text import encode_sorted
from instar.server.registry.stored.object_bytes import offset_by_uid


class PreparedObject(NamedTuple):
    """An object on its way to the store."""

    raw: bytes
    at: int
    obj: Object
    """As it will be stored."""
    back: Object | None
    """As the writer's version will read it, where finding out needed a remote conversion."""


def revised(obj: Object, revision: int) -> bytes:
    """The object's JSON with its resourceVersion."""
    return encode_sorted({**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}})


def without_server_fields(obj: Object) -> Object:
    """What is told of an object and never stored."""
    metadata = obj["metadata"].copy()
    metadata.pop("resourceVersion", None)
    metadata.pop("selfLink", None)
    return {**obj, "metadata": metadata}


def prepared(obj: Object, back: Object | None = None) -> PreparedObject:
    """``obj`` as it will be stored, in bytes."""
    raw = encode_sorted(obj)
    return PreparedObject(raw, offset_by_uid(raw, obj), obj, back)
