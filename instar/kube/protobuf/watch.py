"""Protobuf watch frames: a length, then an event message without an envelope, whose object has one.

Called by ``server/rest/watch_stream.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.json_values import Object
from instar.kube.api.encoding.go_text import GO_TEXT
from instar.kube.protobuf.envelope import decode_object
from instar.kube.protobuf.errors import EnvelopeError, ProtobufError
from instar.kube.protobuf.special_types import parts
from instar.kube.protobuf.wire import BYTES, END, length_prefixed, tag, text_bytes

_LENGTH = 4
_TYPE, _OBJECT, _RAW = tag(1, BYTES), tag(2, BYTES), tag(1, BYTES)


def watch_frame(event: str, obj: bytes) -> bytes:
    """Encode a frame; ``event`` is ``ADDED`` and so on, ``obj`` an object in its envelope."""
    body = (
        _TYPE
        + length_prefixed(text_bytes(event))
        + _OBJECT
        + length_prefixed(_RAW + length_prefixed(obj))
    )
    return len(body).to_bytes(_LENGTH, "big") + body


def decode_frame(frame: bytes) -> Object:
    """Decode a frame without its length into ``type`` and ``object``.

    Raises what ``decode_object`` raises.
    """
    try:
        event = _delimited(frame)
        raw = _delimited(event.get(2, b"")).get(1, b"")
    except (IndexError, ProtobufError) as error:
        raise EnvelopeError(str(error) if isinstance(error, ProtobufError) else END) from error
    kind = event.get(1, b"").decode("utf-8", GO_TEXT)
    return {"type": kind, "object": decode_object(raw) if raw else None}


def _delimited(data: bytes) -> dict[int, bytes]:
    found = parts(data)
    return {number: value for number, value in found.items() if isinstance(value, bytes)}


def frames(stream: bytes) -> Iterator[bytes]:
    """Yield the complete frames of a stream, without their lengths."""
    at = 0
    while len(stream) - at >= _LENGTH:
        start = at + _LENGTH
        at = start + int.from_bytes(stream[at:start], "big")
        if at > len(stream):
            return
        yield stream[start:at]
