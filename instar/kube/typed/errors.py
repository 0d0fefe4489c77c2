"""Decoding errors of typed objects with Go's messages, and the position they refer to.

Used by ``reading.py`` and ``scalars.py``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from instar.kube.api.encoding.go_json_errors import go_type
from instar.kube.facts.go_types import go_type_of
from instar.kube.facts.messages import fields_of

Place: TypeAlias = tuple[Any, ...]
"""(parent, name, message that has the field) for a member, with None as message for a map key;
(parent, position) in a list; (None, "") for the document."""


class TypedError(ValueError):
    """The document does not fit its kind; ``str()`` is Go's message."""

    restored = ""
    """Go's message for the same error if the document consists of values instead of text, as
    after a strategic merge."""


def misfit(value: Any, place: Place, wanted: str, shown: str = "") -> TypedError:
    """Return the error; ``shown`` is the number itself, where Go names it."""
    found = f"{go_type(value)} {shown}".rstrip()
    names, struct = _names(place)
    if names:
        field = f"{struct}.{'.'.join(names)}"
        told = _go_type_name(place, wanted) or wanted
        text = f"json: cannot unmarshal {found} into Go struct field {field} of type {told}"
    else:
        text = f"json: cannot unmarshal {found} into Go value of type {wanted}"
    error = TypedError(text)
    error.restored = _restore_message(value, wanted, _go_type_name(place, wanted))
    return error


def _go_type_name(place: Place, wanted: str) -> str:
    """Return the name of the Go type at a place; empty if it is ``wanted``."""
    if len(place) == 2 or place[2] is None:
        declared = _declared_type(place[0])
        return declared[2:] if len(place) == 2 else declared.partition("]")[2]
    declared = _declared_type(place)
    # Texts of a list are read at the place of the list.
    inside = declared.startswith("[]") and not wanted.startswith("[]")
    return declared[2:] if inside else declared


def _declared_type(place: Place) -> str:
    holds = len(place) == 3 and place[2] is not None
    return go_type_of(place[2], place[1]) if holds else ""


def _restore_message(value: Any, wanted: str, declared: str) -> str:
    found = _REFLECTED.get(type(value), "string")
    if wanted.startswith("[]"):
        return f"cannot restore slice from {found}"
    if wanted.startswith("map["):
        return f"cannot restore map from {found}"
    if "." in wanted:
        return f"cannot restore struct from: {found}"
    if found == "int64" and wanted == "string":  # which Go could convert, to a character
        return f"cannot convert int64 to {declared or wanted}"
    return f"unrecognized type: {wanted}"


_REFLECTED = {dict: "map", list: "slice", bool: "bool", int: "int64", float: "float64"}


def _names(place: Place) -> tuple[list[str], str]:
    """Return the field names on the path, without positions and keys, and the struct of the last
    one."""
    names: list[str] = []
    struct = ""
    while place[0] is not None:
        if len(place) == 3 and place[2] is not None:
            names.append(place[1])
            names += reversed(_embedded_structs(place[2], place[1]))
            struct = struct or place[2].rpartition("#")[2]
        place = place[0]
    return names[::-1], struct


def _embedded_structs(message: str, field: str) -> list[str]:
    """Return the embedded Go structs between a message and its field, outermost first."""
    fields = fields_of(message)
    if any(each.name == field for each in fields):
        return []
    for each in fields:
        if not each.name and _has_field(each.type, field):
            return [each.type.rpartition("#")[2], *_embedded_structs(each.type, field)]
    return []


def _has_field(message: str, field: str) -> bool:
    return any(
        each.name == field or (not each.name and _has_field(each.type, field))
        for each in fields_of(message)
    )


def unknown_path(place: Place, name: str) -> str:
    """Return the path of an unknown field: ``spec.containers[0].name``."""
    parts = [name]
    while place[0] is not None:
        parts.append(f"[{place[1]}]" if len(place) == 2 else str(place[1]))
        place = place[0]
    text = ""
    for part in reversed(parts):
        text += part if part.startswith("[") or not text else f".{part}"
    return text
