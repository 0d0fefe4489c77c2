"""Converts a ``ModelShape`` to its structural schema.

Called by ``crd_models.py`` for ``instar crd``, and by ``naming.py`` and ``styles/plain.py``, which
compare and print schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.base.json_values import Object, copy_json
from instar.kube.models.shapes import (
    INT_OR_STRING,
    PRESERVE,
    ClassShape,
    Frame,
    ModelShape,
    ShapeKind,
)

_COMMON_DESCRIPTIONS = {
    "apiVersion": (
        "APIVersion defines the versioned schema of this representation of an object.\n"
        "Servers should convert recognized schemas to the latest internal value, and\n"
        "may reject unrecognized values.\n"
        "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/"
        "api-conventions.md#resources"
    ),
    "kind": (
        "Kind is a string value representing the REST resource this object represents.\n"
        "Servers may infer this from the endpoint the client submits requests to.\n"
        "Cannot be updated.\n"
        "In CamelCase.\n"
        "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/"
        "api-conventions.md#types-kinds"
    ),
}


def schema_of(shape: ModelShape) -> Object:
    """Return the JSONSchemaProps of a shape."""
    node = implied_keywords(shape)
    if shape.item is not None:
        node["items" if shape.kind is ShapeKind.LIST else "additionalProperties"] = schema_of(
            shape.item
        )
    if shape.members is not None:
        node.update(class_schema(shape.members))
    node = _apply_keywords(node, shape.keywords)
    if shape.nullable:
        node["nullable"] = True
    return {"description": shape.doc, **node} if shape.doc else node


def class_schema(members: ClassShape) -> Object:
    properties = {item.name: schema_of(item.shape) for item in members.members}
    if members.frame is not None:
        properties = {**_frame(members.frame), **properties}
    node: Object = {"type": "object"}
    if properties:
        node["properties"] = properties
    needed = required_names(members)
    if needed:
        node["required"] = needed
    return _apply_keywords(node, members.keywords)


def required_names(members: ClassShape) -> list[str]:
    """Return the required members of a class; ``keywords`` may override them."""
    return [item.name for item in members.members if item.required]


def implied_keywords(shape: ModelShape) -> Object:
    """Return the keywords that the kind alone implies, without members and items."""
    match shape.kind:
        case ShapeKind.ANY:
            return {PRESERVE: True}
        case ShapeKind.INT_OR_STRING:
            return {INT_OR_STRING: True}
        case ShapeKind.FREE:
            return {"type": "object", PRESERVE: True}
        case ShapeKind.MAP | ShapeKind.CLASS:
            return {"type": "object"}
    node: Object = {"type": shape.kind.value}
    if shape.enum:
        node["enum"] = list(shape.enum)
    return node


def _apply_keywords(node: Object, keywords: Mapping[str, Any]) -> Object:
    """Apply keywords; servers accept only ``true`` for their flags, so ``false`` removes an
    implied one."""
    merged = {**node, **{name: copy_json(value) for name, value in keywords.items()}}
    return {
        name: value
        for name, value in merged.items()
        if value is not None and (name, value) != (PRESERVE, False)
    }


def _frame(frame: Frame) -> Object:
    texts = {
        name: {"description": text, "type": "string"} for name, text in _COMMON_DESCRIPTIONS.items()
    }
    return {**texts, "metadata": {"type": "object", **copy_json(dict(frame.metadata))}}
