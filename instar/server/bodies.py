"""Request bodies → plain objects, with upstream's sentences for everything malformed."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from instar.api.gojson import go_type, syntax_error
from instar.api.jsontext import decode, duplicate_keys
from instar.api.objecttext import MAX_DEPTH_TEXT, Malformed
from instar.errors import BadRequest
from instar.server.negotiate import PROTOBUF, YAML, unknown_format

__all__ = ["Body", "Malformed", "parse", "read_json", "read_object"]

_TYPE_META = (
    "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string "
    '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }}'
)


class Body(NamedTuple):
    obj: dict[str, Any]
    duplicates: list[str]
    """Texts of repeated keys, in document order: ``duplicate field "spec.a"``."""


def read_object(body: bytes, media: str, kind: str, typed_as: str = "") -> Body:
    """The object of a create or update. ``kind`` is what the endpoint expects.

    ``typed_as`` is the apiVersion of a built-in kind: its endpoint knows what an object without
    a type must be, where a custom resource has to say.
    """
    summary = _summary(body)
    unrecognised = f"the object provided is unrecognized (must be of type {kind})"
    try:
        parsed = parse(body, media)
    except Malformed as error:
        raise BadRequest(
            f"{unrecognised}: couldn't get version/kind; {error} ({summary})"
        ) from error
    if typed_as:
        for name, expected in (("apiVersion", typed_as), ("kind", kind)):
            parsed.obj[name] = parsed.obj.get(name) or expected
    if not parsed.obj.get("kind"):
        text = body.decode(errors="replace")
        raise BadRequest(f"{unrecognised}: Object 'Kind' is missing in '{text}' ({summary})")
    return parsed


def parse(body: bytes, media: str) -> Body:
    """Any JSON, YAML or protobuf object. Raises ``Malformed``."""
    if media == PROTOBUF:
        return _read_protobuf(body)
    if media == YAML:
        # Only here: most servers never meet a word of YAML.
        from instar.api.yamltext import read_yaml

        value, duplicates = read_yaml(body)
    else:
        value = read_json(body)
        duplicates = _duplicates(body, value)
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise Malformed(f"json parse error: {_TYPE_META.format(found=go_type(value))}")
    for name in ("kind", "apiVersion"):
        if name in value and not isinstance(value[name], str) and value[name] is not None:
            raise Malformed(
                f"json parse error: json: cannot unmarshal {go_type(value[name])} into Go struct "
                f"field .{name} of type string"
            )
    return Body(value, duplicates)


def _read_protobuf(body: bytes) -> Body:
    # Only here: few clients write protobuf.
    from instar.api.protobuf import UnknownKind, decode_object
    from instar.api.protobuf_wire import ProtobufError

    try:
        return Body(decode_object(body), [])
    except UnknownKind as error:
        raise unknown_format() from error
    except ProtobufError as error:
        raise Malformed(str(error)) from error


def read_json(body: bytes) -> Any:
    try:
        return decode(body)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"json parse error: {_sentence(body, error)}") from error


def _sentence(body: bytes, error: orjson.JSONDecodeError) -> str:
    """Go's words for what the fast parser refused; depth is its own limit and needs no look."""
    return MAX_DEPTH_TEXT if "depth limit" in error.msg else syntax_error(body, error.pos)


def _duplicates(body: bytes, value: Any) -> list[str]:
    try:
        return [f'duplicate field "{path}"' for path in duplicate_keys(body, value)]
    except TypeError as error:
        raise Malformed(f"json parse error: {MAX_DEPTH_TEXT}") from error


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    start, more = body[:30], " ..." if len(body) > 30 else ""
    if body.startswith(b"{"):
        return start.decode(errors="replace") + more
    return start.hex() + more
