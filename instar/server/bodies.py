"""Request bodies → plain objects, with upstream's sentences for everything malformed."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from instar.api.gojson import go_type, syntax_error
from instar.api.jsontext import TooDeep, decode, duplicate_keys
from instar.errors import BadRequest
from instar.server.negotiate import PROTOBUF, YAML, unknown_format

_TYPE_META = (
    "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string "
    '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }}'
)


class Body(NamedTuple):
    obj: dict[str, Any]
    duplicates: list[str]
    """Texts of repeated keys, in document order: ``duplicate field "spec.a"``."""


class Malformed(Exception):
    """The body is not a JSON (or YAML) object; ``str()`` is the parser's sentence."""


class NotYaml(Malformed):
    """It could not even be made JSON."""


def read_object(body: bytes, media: str, kind: str, typed_as: str = "") -> Body:
    """The object of a create or update. ``kind`` is what the endpoint expects.

    ``typed_as`` is the apiVersion of a built-in kind: its endpoint knows what an object without
    a type must be, where a custom resource has to say.
    """
    summary = _summary(body)
    unrecognised = f"the object provided is unrecognized (must be of type {kind})"
    try:
        parsed = parse(body, media)
    except NotYaml as error:
        raise BadRequest(f"{unrecognised}: {error} ({summary})") from error
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


def read_applied(body: bytes) -> Body:
    """The configuration of an apply: YAML, whatever it begins with."""
    try:
        return parse(body, YAML)
    except NotYaml as error:
        raise BadRequest(f"error decoding YAML: error converting YAML to JSON: {error}") from error
    except Malformed as error:
        raise BadRequest(f"error decoding YAML: {error}") from error


def parse(body: bytes, media: str) -> Body:
    """Any JSON, YAML or protobuf object. Raises ``Malformed``."""
    if media == PROTOBUF:
        return _read_protobuf(body)
    if media == YAML:
        value, duplicates = _read_yaml(body)
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
    except TooDeep as error:
        raise Malformed(f"json parse error: {error}") from error
    except orjson.JSONDecodeError as error:
        raise Malformed(f"json parse error: {syntax_error(body, error.pos)}") from error


def _read_yaml(body: bytes) -> tuple[Any, list[str]]:
    from instar.api.goyaml import YamlError
    from instar.server.yamltext import read_yaml

    try:
        return read_yaml(body)
    except TooDeep as error:
        raise Malformed(f"json parse error: {error}") from error
    except YamlError as error:
        raise NotYaml(str(error)) from error


def _duplicates(body: bytes, value: Any) -> list[str]:
    return [f'duplicate field "{path}"' for path in duplicate_keys(body, value)]


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    start, more = body[:30], " ..." if len(body) > 30 else ""
    if body.startswith(b"{"):
        return start.decode(errors="replace") + more
    return start.hex() + more
