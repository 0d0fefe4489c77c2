"""Objects, lists and watch events as CBOR, from the JSON that the registry returns.

``responses.py`` and ``watch_stream.py`` call it on servers with the gate CBORServingAndStorage.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from instar.base.json_values import Object
from instar.kube.api.encoding.cbor_writing import Encoded, write_cbor, write_item
from instar.kube.protobuf.byte_fields import with_bytes


def to_cbor(document: bytes) -> bytes:
    """Encode a document of any kind."""
    obj = orjson.loads(document)
    return write_cbor(with_bytes(obj.get("apiVersion", ""), obj.get("kind", ""), obj))


def cbor_list(shell: Object, api_version: str, kind: str, objects: Iterable[Object]) -> bytes:
    """Encode a list object by object; ``shell`` is the list without its items."""
    items = [write_item(with_bytes(api_version, kind, obj)) for obj in objects]
    return write_cbor({**shell, "items": items})


def cbor_event(type_: str, document: bytes) -> bytes:
    """Encode a watch event, whose object is a document of its own."""
    return write_cbor({"type": type_, "object": Encoded(to_cbor(document))})
