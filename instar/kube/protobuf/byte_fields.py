"""Binary fields of built-in kinds: their bytes in place of the base64 text that JSON has.

``server/rest/cbor_documents.py`` calls it before it writes CBOR, which has a type for bytes. The
fields are those that the protobuf message of a kind declares as ``bytes``.
"""

from __future__ import annotations

from binascii import Error, a2b_base64
from collections.abc import Callable
from functools import cache
from typing import Any

from instar.base.json_values import Object
from instar.kube.facts.messages import MessageField, fields_of, message_of
from instar.kube.protobuf.json_forms import SCALARS, MessageShape, shape_of

Change = Callable[[Any], Any]
"""A value of JSON → the same with bytes."""


def with_bytes(api_version: str, kind: str, obj: Object) -> Object:
    """Return an object with bytes in its binary fields; a kind without such fields as it is."""
    message = message_of(api_version, kind)
    change = None if message is None else _change_of(message)
    return obj if change is None else change(obj)


@cache
def _change_of(message: str) -> Change | None:
    """Return the change of a message; None where nothing in it is binary."""
    return _message_change(message, ())


def _message_change(message: str, above: tuple[str, ...]) -> Change | None:
    changes = _member_changes(message, above)
    return _members(changes) if changes else None


def _member_changes(message: str, above: tuple[str, ...]) -> dict[str, Change]:
    """A message that contains itself (the schema of a CRD) has no binary fields."""
    if message in above or shape_of(message) is not MessageShape.OBJECT:
        return {}
    changes: dict[str, Change] = {}
    within = (*above, message)
    for field in fields_of(message):
        if not field.name:
            changes.update(_member_changes(field.type, within))
        elif (change := _field_change(field, within)) is not None:
            changes[field.name] = change
    return changes


def _field_change(field: MessageField, above: tuple[str, ...]) -> Change | None:
    if field.type == "bytes":
        change: Change | None = _decoded
    elif field.type in SCALARS:
        return None
    else:
        change = _message_change(field.type, above)
    if change is None:
        return None
    if field.mapped:
        return _values(change)
    return _elements(change) if field.repeated else change


def _decoded(value: Any) -> Any:
    """A text that is no base64, which only a damaged object has, stays a text."""
    try:
        return a2b_base64(value, strict_mode=True) if isinstance(value, str) else value
    except Error:
        return value


def _members(changes: dict[str, Change]) -> Change:
    def change(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            name: changes[name](item) if name in changes else item for name, item in value.items()
        }

    return change


def _values(change: Change) -> Change:
    def each(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: change(item) for name, item in value.items()}

    return each


def _elements(change: Change) -> Change:
    return lambda value: [change(item) for item in value] if isinstance(value, list) else value
