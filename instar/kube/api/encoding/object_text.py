"""JSON request body → object with ``kind`` and ``apiVersion``, with Go's messages for malformed
input.

Called by ``server/rest/bodies.py`` and by the patch and apply verbs. Media types and the expected
kind are the caller's concern.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from instar.base.json_values import Object
from instar.kube.api.encoding.go_json_errors import go_type, syntax_error
from instar.kube.api.encoding.json_text import TooDeep, decode, duplicate_keys

_TYPE_META = (
    "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string "
    '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }}'
)


class Repeated(NamedTuple):
    """A duplicate key, as the reader of its format reports it."""

    text: str
    """``duplicate field "spec.a"``, or ``line 3: key "a" already set in map``."""
    by_line: bool = False
    """True for YAML, which reports lines; strict decoding lists those in a separate sentence."""

    def __str__(self) -> str:
        return self.text


class Body(NamedTuple):
    """A parsed request body and its duplicate keys."""

    obj: Object
    duplicates: list[Repeated]
    """In document order."""


class MalformedObject(Exception):
    """The body is not a JSON (or YAML) object; ``str()`` is the parser's message."""


class NoObject(MalformedObject):
    """The body is another JSON value."""

    def __init__(self, found: str) -> None:
        super().__init__(f"json parse error: {_TYPE_META.format(found=found)}")
        self.found = found
        """Its type, as Go names it."""


def read_json_object(text: bytes) -> Body:
    """Parse an object. Raises ``MalformedObject``."""
    value = read_json(text)
    return object_of(value, _duplicates(text, value))


def object_of(value: Any, duplicates: list[Repeated]) -> Body:
    """Check that a document is an object with texts for ``kind`` and ``apiVersion``."""
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise NoObject(go_type(value))
    for name in ("kind", "apiVersion"):
        if name in value and not isinstance(value[name], str) and value[name] is not None:
            raise MalformedObject(
                f"json parse error: json: cannot unmarshal {go_type(value[name])} into Go struct "
                f"field .{name} of type string"
            )
    return Body(value, duplicates)


def read_json(text: bytes) -> Any:
    """Parse any JSON value. Raises ``MalformedObject``."""
    try:
        return decode(text)
    except TooDeep as error:
        raise MalformedObject(f"json parse error: {error}") from error
    except orjson.JSONDecodeError as error:
        raise MalformedObject(f"json parse error: {syntax_error(text, error.pos)}") from error


def _duplicates(text: bytes, value: Any) -> list[Repeated]:
    found = duplicate_keys(text, value)
    return [Repeated(f'duplicate field "{path}"') for path in found] if found else []
