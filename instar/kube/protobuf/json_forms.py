"""Table of protobuf messages with a special JSON form, and the JSON of unset messages.

Used by the protobuf codec and ``kube/typed``. All messages that are not listed here are objects
with the fields of their table.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import cache
from typing import Any

from instar.kube.facts.messages import MessageField, fields_of

LIMIT = 200
"""Maximum nesting of messages. Only schemas of CRDs can nest without limit."""
TOO_DEEP = "exceeded max depth"
SCALARS = frozenset({"string", "bytes", "bool", "int32", "int64", "double"})


class MessageShape(Enum):
    """The JSON form of a message."""

    OBJECT = auto()
    LIST = auto()
    """A list of texts."""
    TIME = auto()
    MICRO_TIME = auto()
    QUANTITY = auto()
    INT_OR_STRING = auto()
    RAW = auto()
    """Any JSON value, encoded as its text."""
    SCHEMA_OR_BOOL = auto()
    SCHEMA_OR_LIST = auto()
    """A schema, or a list of schemas or texts."""


_NAMED = {
    "meta.k8s.io/v1#Time": MessageShape.TIME,
    "meta.k8s.io/v1#MicroTime": MessageShape.MICRO_TIME,
    "meta.k8s.io/v1#FieldsV1": MessageShape.RAW,
    "resource#Quantity": MessageShape.QUANTITY,
    "intstr#IntOrString": MessageShape.INT_OR_STRING,
    "runtime#RawExtension": MessageShape.RAW,
} | {
    f"apiextensions.k8s.io/{version}#{name}": shape
    for version in ("v1", "v1beta1")
    for name, shape in {
        "JSON": MessageShape.RAW,
        "JSONSchemaPropsOrBool": MessageShape.SCHEMA_OR_BOOL,
        "JSONSchemaPropsOrArray": MessageShape.SCHEMA_OR_LIST,
        "JSONSchemaPropsOrStringArray": MessageShape.SCHEMA_OR_LIST,
    }.items()
}
_UNSET: dict[MessageShape, Any] = {
    MessageShape.QUANTITY: "0",
    MessageShape.INT_OR_STRING: 0,
    MessageShape.RAW: None,
}


@cache
def shape_of(message: str) -> MessageShape:
    """Return how a message is written in JSON; ``OBJECT`` for most."""
    found = _NAMED.get(message)
    if found is not None:
        return found
    fields = fields_of(message)
    is_list = len(fields) == 1 and fields[0].name == "items" and fields[0].type == "string"
    return MessageShape.LIST if is_list else MessageShape.OBJECT


def unset_value(field: MessageField) -> Any:
    """Return the JSON value of an unset field that is always encoded; must not be changed."""
    if not field.always or field.repeated or field.mapped:
        return None
    if field.type in SCALARS:
        return {"string": "", "bytes": None, "bool": False}.get(field.type, 0)
    shape = shape_of(field.type)
    return unset_object(field.type) if shape is MessageShape.OBJECT else _UNSET.get(shape)


@cache
def unset_object(message: str) -> dict[str, Any]:
    """Return the JSON of an empty message."""
    shown: dict[str, Any] = {}
    for field in fields_of(message):
        if not field.name:
            shown.update(unset_object(field.type))
        elif field.shown:
            shown[field.name] = unset_value(field)
    return shown
