"""Request bodies: JSON, YAML, protobuf or CBOR decoded to plain objects.

``verbs.py``, ``scaling.py`` and other handlers call it. The registry validates the objects.
"""

from __future__ import annotations

from instar.base import offload
from instar.base.errors import BadRequest
from instar.base.json_values import Object
from instar.kube.api.encoding.cbor_reading import (
    MalformedCbor,
    UnacceptableCbor,
    read_cbor,
    type_name,
)
from instar.kube.api.encoding.json_text import TooDeep
from instar.kube.api.encoding.object_text import (
    Body,
    MalformedObject,
    NoObject,
    Repeated,
    object_of,
    read_json_object,
)
from instar.kube.api.encoding.strict_error_order import as_json_is_read, as_yaml_is_read
from instar.kube.api.patch_types import PatchType
from instar.kube.protobuf.envelope import decode_object
from instar.kube.protobuf.errors import MessageError, ProtobufError, UnknownKind
from instar.kube.schema.metadata.types import MetaError
from instar.kube.schema.pipeline import decode_metadata
from instar.kube.typed.reading import TypedError
from instar.kube.typed.reading import read_object as read_typed
from instar.server.http.messages import Request
from instar.server.rest.negotiate import CBOR, PROTOBUF, YAML, body_media, unknown_format

__all__ = [
    "Body",
    "MalformedObject",
    "parse",
    "read_applied",
    "read_object",
    "repeated_in_go_order",
    "typed_body",
]
NO_KIND = "unable to determine group/version/kind: "


class NotYaml(MalformedObject):
    """The text is not YAML."""


class NotCbor(MalformedObject):
    """The body is not one CBOR item that can be an object."""


class Unfitting(NotCbor):
    """A CBOR object with a part that JSON has no value for."""

    def __init__(self, text: str, value: Object) -> None:
        super().__init__(text)
        self.kind = str(value.get("kind") or "")
        self.version = str(value.get("apiVersion") or "").rpartition("/")[2]


def read_object(body: bytes, media: str, kind: str, typed_as: str = "") -> Body:
    """The object of a create or update. ``kind`` is what the endpoint expects.

    ``typed_as`` is the apiVersion of a built-in kind: there an object without apiVersion and kind
    is accepted; a custom resource must state them.
    """
    if media == PROTOBUF:
        return _read_protobuf_object(body, kind, typed_as)
    try:
        parsed = parse(body, media)
    except Unfitting as error:
        raise BadRequest(
            f'{error.kind or kind} in version "{error.version}" cannot be handled as a {kind}: '
            f"{error}"
        ) from error
    except NotCbor as error:
        raise _unrecognised(body, kind, f"{NO_KIND}{error}") from error
    except NotYaml as error:
        raise _unrecognised(body, kind, str(error)) from error
    except MalformedObject as error:
        raise _unrecognised(body, kind, f"couldn't get version/kind; {error}") from error
    if typed_as:
        for name, expected in (("apiVersion", typed_as), ("kind", kind)):
            parsed.obj[name] = parsed.obj.get(name) or expected
    if not parsed.obj.get("kind"):
        text = body.hex() if media == CBOR else body.decode(errors="replace")
        raise _unrecognised(body, kind, f"Object 'Kind' is missing in '{text}'")
    return parsed


def _unrecognised(body: bytes, kind: str, why: str) -> BadRequest:
    text = f"the object provided is unrecognized (must be of type {kind})"
    return BadRequest(f"{text}: {why} ({_summary(body)})")


def read_applied(body: bytes, kind: PatchType = PatchType.APPLY) -> Body:
    """The applied configuration of a server-side apply: read as YAML, or as CBOR."""
    try:
        return parse(body, CBOR if kind is PatchType.APPLY_CBOR else YAML)
    except NotCbor as error:  # upstream names YAML here, too
        raise BadRequest(f"error decoding YAML: {error}") from error
    except NotYaml as error:
        raise BadRequest(f"error decoding YAML: error converting YAML to JSON: {error}") from error
    except NoObject as error:
        why = (
            f"json: cannot unmarshal {error.found} into Go value of type map[string]interface {{}}"
        )
        text = f"error unmarshaling JSON: while decoding JSON: {why}"
        raise BadRequest(f"error decoding YAML: {text}") from error
    except MalformedObject as error:
        raise BadRequest(f"error decoding YAML: {error}") from error


def parse(body: bytes, media: str) -> Body:
    """Any JSON, YAML, protobuf or CBOR object. Raises ``MalformedObject``."""
    if media == PROTOBUF:
        try:
            return _read_protobuf(body)
        except ProtobufError as error:
            raise MalformedObject(str(error)) from error
    if media == CBOR:
        return _read_cbor(body)
    return _read_yaml(body) if media == YAML else read_json_object(body)


def repeated_in_go_order(
    body: bytes, media: str, duplicates: list[Repeated], unknown: list[str]
) -> list[Repeated]:
    """Unknown and repeated fields of a built-in kind, in the order of Go's decoder."""
    if media in (PROTOBUF, CBOR):
        return [*duplicates, *(Repeated(f'unknown field "{path}"') for path in unknown)]
    if media != YAML:
        return [Repeated(text) for text in as_json_is_read(body, unknown)]
    from instar.kube.api.encoding.yaml_text import read_yaml

    value, _ = read_yaml(body)
    return [*duplicates, *map(Repeated, as_yaml_is_read(value, unknown))]


def _read_yaml(body: bytes) -> Body:
    # Imported here: most servers never read YAML.
    from instar.kube.api.encoding.go_yaml_scalars import YamlError
    from instar.kube.api.encoding.yaml_text import read_yaml

    try:
        value, repeated = read_yaml(body)
    except TooDeep as error:
        raise MalformedObject(f"json parse error: {error}") from error
    except YamlError as error:
        raise NotYaml(str(error)) from error
    return object_of(value, [Repeated(text, by_line=True) for text in repeated])


def _read_cbor(body: bytes) -> Body:
    try:
        value = read_cbor(body)
    except MalformedCbor as error:
        raise NotCbor(str(error)) from error
    except UnacceptableCbor as error:
        if error.at_top or not isinstance(error.value, dict):
            raise NotCbor(str(error)) from error
        raise Unfitting(str(error), error.value) from error
    if not isinstance(value, dict | None):
        found = f"cbor: cannot unmarshal {type_name(body)} into Go value of type "
        raise NotCbor(f"{found}map[string]interface {{}}")
    return object_of(value, [])


def _read_protobuf(body: bytes, api_version: str = "", kind: str = "") -> Body:
    """``api_version`` and ``kind`` are for an object that states none. Raises ``ProtobufError``."""
    try:
        return Body(decode_object(body, api_version, kind), [])
    except UnknownKind as error:
        raise unknown_format() from error


def _read_protobuf_object(body: bytes, kind: str, api_version: str) -> Body:
    try:
        return _read_protobuf(body, api_version, kind if api_version else "")
    except MessageError as error:
        raise BadRequest(
            f'{error.kind} in version "{error.version}" cannot be handled as a {kind}: {error}'
        ) from error
    except ProtobufError as error:
        raise _unrecognised(body, kind, str(error)) from error


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    start, more = body[:30], " ..." if len(body) > 30 else ""
    if body.startswith(b"{"):
        return start.decode(errors="replace") + more
    return start.hex() + more


async def typed_body(request: Request, api_version: str, kind: str, same: str = "") -> Object:
    """A body of another kind than the resource it is sent to; only its type is checked. ``same``:
    another apiVersion with the same fields."""
    media, content = body_media(request), request.content()
    return await offload.run(len(content), lambda: _typed(content, media, api_version, kind, same))


def _typed(content: bytes, media: str, api_version: str, kind: str, same: str) -> Object:
    body = read_object(content, media, kind, api_version).obj
    if same and body["apiVersion"] == same:
        body["apiVersion"] = api_version
    if (body["apiVersion"], body["kind"]) != (api_version, kind):
        raise BadRequest(
            f"the API version in the data ({body['apiVersion']}) does not match the expected API "
            f"version ({api_version})"
        )
    try:
        decode_metadata(body, within=kind)
        read_typed(body, api_version, kind)
    except (MetaError, TypedError) as error:
        version = api_version.rpartition("/")[2]
        text = f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
        raise BadRequest(text) from error
    return body
