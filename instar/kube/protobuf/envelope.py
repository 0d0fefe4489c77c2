"""Protobuf envelope of whole objects and lists: the ``k8s`` magic and a type-tagged message.

Called by ``server/rest`` for request bodies and responses. The envelope is four magic bytes and a
message of type, content and two unused texts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from instar.base.json_values import Object
from instar.base.limits import MAX_STORED
from instar.kube.api.encoding.go_text import GO_TEXT
from instar.kube.facts.messages import META, message_of
from instar.kube.protobuf.decoding import ROOM, decoder
from instar.kube.protobuf.encoding import encoder
from instar.kube.protobuf.errors import EnvelopeError, MessageError, ProtobufError, UnknownKind
from instar.kube.protobuf.special_types import parts
from instar.kube.protobuf.wire import BYTES, END, VARINT, length_prefixed, tag, text_bytes

MAGIC = b"k8s\x00"
_TYPE_META, _RAW, _TAIL = b"\x0a", b"\x12", b"\x1a\x00\x22\x00"
_API_VERSION, _KIND = b"\x0a", b"\x12"
_LIST_METADATA, _ITEM = tag(1, BYTES), tag(2, BYTES)
_FIELDS = {1: "TypeMeta", 2: "Raw"}
_LIST_META = f"{META}#ListMeta"
_MISFITS = (
    AttributeError,
    IndexError,
    KeyError,
    OverflowError,
    struct.error,
    TypeError,
    ValueError,
)
"""Python errors for a value of the wrong type."""


def has_message(api_version: str, kind: str) -> bool:
    """Return whether objects of this kind have a protobuf form."""
    return message_of(api_version, kind) is not None


def encode_object(obj: Object) -> bytes:
    """Encode a whole object by its own type. Raises ``UnknownKind`` and ``MessageError``."""
    api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    return wrap_message(api_version, kind, encode_message(api_version, kind, obj))


def encode_message(api_version: str, kind: str, obj: Object) -> bytes:
    """Encode the message alone, as in a list; the object's own type is ignored."""
    message = message_of(api_version, kind)
    if message is None:
        raise UnknownKind(api_version, kind)
    try:
        return encoder(message)(obj, 0)
    except ProtobufError as error:
        raise MessageError(api_version, kind, str(error)) from error
    except _MISFITS as error:
        raise MessageError(api_version, kind, f"the object does not fit {kind}: {error}") from error


def encode_list(api_version: str, kind: str, metadata: Object, items: Iterable[bytes]) -> bytes:
    """Encode a list (``kind`` is the list's) of encoded messages."""
    content = [_LIST_METADATA, length_prefixed(encoder(_LIST_META)(metadata, 0))]
    for item in items:
        content += (_ITEM, length_prefixed(item))
    return wrap_message(api_version, kind, b"".join(content))


def wrap_message(api_version: str, kind: str, message: bytes) -> bytes:
    """Return a message in its envelope."""
    names = (
        _API_VERSION
        + length_prefixed(text_bytes(api_version))
        + _KIND
        + length_prefixed(text_bytes(kind))
    )
    return b"".join(
        (MAGIC, _TYPE_META, length_prefixed(names), _RAW, length_prefixed(message), _TAIL)
    )


def decode_object(body: bytes, api_version: str = "", kind: str = "") -> Object:
    """Decode an object in an envelope; the arguments are its type if the envelope has none.

    Raises ``EnvelopeError``, ``MessageError`` or ``UnknownKind``.
    """
    stated_version, stated_kind, raw = _unwrap(body)
    api_version, kind = stated_version or api_version, stated_kind or kind
    content = decode_message(api_version, kind, raw)
    return {"kind": kind, **({"apiVersion": api_version} if api_version else {}), **content}


def decode_message(api_version: str, kind: str, raw: bytes) -> Object:
    """Decode a message without envelope. Raises ``RequestTooLarge`` if the JSON is too large."""
    message = message_of(api_version, kind)
    if message is None:
        raise UnknownKind(api_version, kind)
    ROOM.left = MAX_STORED
    try:
        content: Object = decoder(message)(raw, 0, len(raw), 0)
    except IndexError as error:
        raise MessageError(api_version, kind, END) from error
    except ProtobufError as error:
        raise MessageError(api_version, kind, str(error)) from error
    return content


def _unwrap(body: bytes) -> tuple[str, str, bytes]:
    """Return apiVersion and kind, if given, and the message."""
    if not body:
        raise EnvelopeError("empty data")
    if not body.startswith(MAGIC):
        raise EnvelopeError(
            "provided data does not appear to be a protobuf message, expected prefix "
            f"[{' '.join(map(str, MAGIC))}]"
        )
    if len(body) == len(MAGIC):
        raise EnvelopeError("empty body")
    try:
        envelope = parts(body[len(MAGIC) :])
        type_meta = _bytes(envelope, 1)
        names = parts(type_meta)
        return _text(names, 1), _text(names, 2), _bytes(envelope, 2)
    except IndexError as error:
        raise EnvelopeError(END) from error
    except ProtobufError as error:
        raise EnvelopeError(str(error)) from error


def _bytes(found: dict[int, int | bytes], number: int) -> bytes:
    value = found.get(number, b"")
    if isinstance(value, int):
        raise EnvelopeError(f"proto: wrong wireType = {VARINT} for field {_FIELDS[number]}")
    return value


def _text(found: dict[int, int | bytes], number: int) -> str:
    return _bytes(found, number).decode("utf-8", GO_TEXT)
