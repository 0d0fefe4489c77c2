"""Typed decoder of built-in objects: one compiled reader per message of ``kube/facts``.

Called by ``server/rest/bodies.py`` and the built-in kinds' strategies. The result is what Go's JSON
shows: empty values are left out unless the type always shows them; null counts as absent. Readers
nest as deep as the types do, which is bounded.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from instar.base.json_values import Object
from instar.kube.facts.messages import MessageField, fields_of, message_of
from instar.kube.protobuf.json_forms import (
    SCALARS,
    MessageShape,
    shape_of,
    unset_object,
    unset_value,
)
from instar.kube.typed.errors import Place, TypedError, misfit, unknown_path
from instar.kube.typed.scalars import SCALAR_READERS, SPECIAL_READERS, Read

__all__ = ["TypedError", "read_object", "reader", "zero_object"]

_TYPE_META = ("apiVersion", "kind")


def read_object(obj: Object, api_version: str, kind: str) -> list[str]:
    """Decode ``obj`` in place; return the paths of unknown fields.

    ``metadata`` is not changed: ``kube/schema/metadata`` decodes it. Raises ``TypedError`` with
    Go's message.
    """
    message = message_of(api_version, kind)
    assert message is not None, f"{api_version} {kind} is no built-in kind"
    unknown: list[str] = []
    kept = {name: obj[name] for name in (*_TYPE_META, "metadata") if name in obj}
    rest = {name: value for name, value in obj.items() if name not in kept}
    content = reader(message)(rest, (None, ""), unknown)
    content.pop("metadata", None)
    obj.clear()
    obj.update(kept)
    obj.update(content)
    return unknown


def zero_object(api_version: str, kind: str) -> Object:
    """Return the JSON of an object of the kind with nothing set. Must not be changed."""
    message = message_of(api_version, kind)
    return {} if message is None else unset_object(message)


@cache
def reader(message: str) -> Read:
    """Return the function that reads a message of this type from JSON."""
    shape = shape_of(message)
    if shape in SPECIAL_READERS:
        return SPECIAL_READERS[shape]
    if shape is MessageShape.LIST:
        return _read_texts
    return _struct(message)


def _struct(message: str) -> Read:
    entries: dict[str, tuple[Read, bool, bool]] | None = None
    shown: list[tuple[str, Any]] = []

    def read(value: Any, place: Place, unknown: list[str]) -> Any:
        nonlocal entries
        if type(value) is not dict:
            raise misfit(value, place, go_type(message))
        if entries is None:
            entries = _entries(message)
            shown.extend(_always_shown(message))
        result: Object = {}
        for name, item in value.items():
            entry = entries.get(name)
            if entry is None:
                unknown.append(unknown_path(place, name))
                continue
            if item is None:
                continue
            read_item, drops_empty, _ = entry
            clean = read_item(item, (place, name, message), unknown)
            if clean or not drops_empty:
                result[name] = clean
        for name, empty in shown:
            if name not in result:
                result[name] = _copy(empty)
        return result

    return read


def _entries(message: str) -> dict[str, tuple[Read, bool, bool]]:
    """Return JSON name → reader, whether an empty value is dropped, whether it is shown unset."""
    found: dict[str, tuple[Read, bool, bool]] = {}
    if message_of(*message.split("#")) == message:
        # An embedded object states its type, though the outer type implies it.
        found |= dict.fromkeys(_TYPE_META, (SCALAR_READERS["string"], True, False))
    for field in fields_of(message):
        if not field.name:
            found |= _entries(field.type)
        else:
            found[field.name] = (_reader_of(field), _drops_empty(field), field.shown)
    return found


def _drops_empty(field: MessageField) -> bool:
    """Return Go's omitempty: empty lists and maps always, zero scalars unless a pointer."""
    if field.shown:
        return False
    if field.repeated or field.mapped:
        return True
    if field.type in SCALARS:
        return field.always or field.type == "bytes"
    return shape_of(field.type) is MessageShape.LIST


def _always_shown(message: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for field in fields_of(message):
        if not field.name:
            found += unset_object(field.type).items()
        elif field.shown:
            found.append((field.name, unset_value(field)))
    return found


def _reader_of(field: MessageField) -> Read:
    base = SCALAR_READERS[field.type] if field.type in SCALARS else _lazy_reader(field.type)
    if field.repeated and field.type == "string":
        return _read_texts
    if field.repeated:
        return _list_of(base, f"[]{go_type(field.type)}", field)
    if field.mapped:
        return _map_of(base, f"map[string]{go_type(field.type)}", field)
    return base


def _of_null(field: MessageField) -> Any:
    """Return what a null list item or map value is in Go: the zero value of its type."""
    if field.type == "bytes":
        return ""
    if field.type not in SCALARS and shape_of(field.type) is MessageShape.LIST:
        return []
    return _copy(unset_value(field._replace(repeated=False, mapped=False, always=True)))


def _lazy_reader(message: str) -> Read:
    """Return a reader that compiles the message's reader on first use."""
    own: Read | None = None

    def read(value: Any, place: Place, unknown: list[str]) -> Any:
        nonlocal own
        if own is None:
            own = reader(message)
        return own(value, place, unknown)

    return read


def _list_of(read_item: Read, name: str, field: MessageField) -> Read:
    def read(value: Any, place: Place, unknown: list[str]) -> Any:
        if type(value) is not list:
            raise misfit(value, place, name)
        return [
            _of_null(field) if item is None else read_item(item, (place, position), unknown)
            for position, item in enumerate(value)
        ]

    return read


def _read_texts(value: Any, place: Place, unknown: list[str]) -> Any:
    if type(value) is not list:
        raise misfit(value, place, "[]string")
    read_item = SCALAR_READERS["string"]
    return ["" if item is None else read_item(item, place, unknown) for item in value]


def _map_of(read_item: Read, name: str, field: MessageField) -> Read:
    def read(value: Any, place: Place, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise misfit(value, place, name)
        return {
            key: _of_null(field) if item is None else read_item(item, (place, key, None), unknown)
            for key, item in sorted(value.items())
        }

    return read


@cache
def go_type(type: str) -> str:
    """Return ``v1.Container`` for ``v1#Container``; scalars as Go names them."""
    if type in SCALARS:
        return {"bytes": "[]uint8", "double": "float64"}.get(type, type)
    block, _, name = type.partition("#")
    return f"{block.rpartition('/')[2]}.{name}"


def _copy(value: Any) -> Any:
    return {name: _copy(item) for name, item in value.items()} if isinstance(value, dict) else value
