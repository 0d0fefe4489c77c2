"""Bodies in Kubernetes' protobuf form → plain objects.

Go clients send built-in kinds this way unless told otherwise: kubectl for what it creates itself,
controller-runtime for leases and events. Driven by the tables of ``protobuf_kinds``; answers stay
JSON, which every such client takes. Custom resources have no such form.
"""

from __future__ import annotations

from typing import Any

from instar.api.protobuf_kinds import KINDS, Field, Message
from instar.api.protobuf_wire import ProtobufError, as_bytes, as_text, wire_fields

MAGIC = b"k8s\x00"
_TYPE_META, _RAW = 1, 2


class UnknownKind(Exception):
    """A message of a kind that has no protobuf form here."""


def decode_object(body: bytes) -> dict[str, Any]:
    """The object in an envelope of type and raw bytes. Also raises ``ProtobufError``."""
    if not body.startswith(MAGIC):
        raise ProtobufError(
            "provided data does not appear to be a protobuf message, expected prefix "
            f"[{' '.join(map(str, MAGIC))}]"
        )
    envelope = dict(wire_fields(body[len(MAGIC) :]))
    names = dict(wire_fields(as_bytes(envelope.get(_TYPE_META, b""))))
    api_version, kind = as_text(names.get(1, b"")), as_text(names.get(2, b""))
    message = KINDS.get((api_version, kind)) or KINDS.get(("", kind))
    if message is None:
        raise UnknownKind(f"{api_version}, Kind={kind}")
    content = _read_message(as_bytes(envelope.get(_RAW, b"")), message)
    return {"apiVersion": api_version, "kind": kind, **content}


def _read_message(data: bytes, message: Message) -> dict[str, Any]:
    """What the table does not know is left out; so is what Go's JSON would omit as empty."""
    result: dict[str, Any] = {}
    for number, value in wire_fields(data):
        field = message.get(number)
        if field is None:
            continue
        if field.mapped:
            pair = dict(wire_fields(as_bytes(value)))
            entries = result.setdefault(field.name, {})
            entries[as_text(pair.get(1, b""))] = field.read(pair.get(2, b""))
            continue
        found = _read_value(value, field)
        if field.many:
            result.setdefault(field.name, []).append(found)
        elif found or (field.pointer and found is not None):
            result[field.name] = found
    return result


def _read_value(value: int | bytes, field: Field) -> Any:
    if field.message is not None:
        return _read_message(as_bytes(value), field.message)
    return field.read(value)
