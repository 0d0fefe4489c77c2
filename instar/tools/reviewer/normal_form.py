"""Normalises schemas to one spelling per meaning, so that schemas that mean the same compare as
equal. Pure.

``reviewed_crd.py`` calls it. Descriptions stay, so that rules about documentation can see them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.base.json_values import Object

_FALSE_BY_DEFAULT = frozenset(
    {
        "nullable",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "uniqueItems",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    }
)
"""Keywords for which absent and false mean the same."""
_EMPTY_BY_DEFAULT = frozenset(
    {"required", "enum", "allOf", "anyOf", "oneOf", "x-kubernetes-validations", "properties"}
    | {"x-kubernetes-list-map-keys", "format", "pattern", "type", "description", "title"}
)
"""Keywords for which absent and empty mean the same."""
_DEFAULT_WORD = {"x-kubernetes-list-type": "atomic", "x-kubernetes-map-type": "granular"}
_ZERO_IS_NOTHING = frozenset({"minLength", "minItems", "minProperties"})
_EITHER = ({"type": "integer"}, {"type": "string"})


def normalise(schema: Mapping[str, Any]) -> Object:
    """Return an equivalent schema with one spelling per meaning, at every depth."""
    node = {name: value for name, value in schema.items() if not _says_nothing(name, value)}
    if node.get("x-kubernetes-int-or-string"):
        _drop_either(node)
    for name in ("required", "x-kubernetes-list-map-keys"):
        if isinstance(node.get(name), list):
            node[name] = sorted(node[name], key=str)
    if isinstance(node.get("properties"), Mapping):
        node["properties"] = {
            str(name): normalise(child if isinstance(child, Mapping) else {})
            for name, child in node["properties"].items()
        }
    for name in ("items", "additionalProperties"):
        if isinstance(node.get(name), Mapping):
            node[name] = normalise(node[name])
    return node


def _says_nothing(name: str, value: Any) -> bool:
    if value is None:
        return True
    if name in _FALSE_BY_DEFAULT:
        return value is False
    if name in _EMPTY_BY_DEFAULT:
        return value in ("", [], {})
    if name in _ZERO_IS_NOTHING:
        return bool(value == 0)
    return _DEFAULT_WORD.get(name) == value if name in _DEFAULT_WORD else False


def _drop_either(node: Object) -> None:
    """Drop the two types that int-or-string fields often spell out again; changes its argument."""
    if _is_either(node.get("anyOf")):
        del node["anyOf"]
    branches = node.get("allOf")
    if isinstance(branches, list):
        left = [
            item for item in branches if not (set(item) == {"anyOf"} and _is_either(item["anyOf"]))
        ]
        node["allOf"] = left
        if not left:
            del node["allOf"]


def _is_either(branches: Any) -> bool:
    return (
        isinstance(branches, list)
        and len(branches) == 2
        and all(any(branch == kind for branch in branches) for kind in _EITHER)
    )
