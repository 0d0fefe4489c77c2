"""Validation rules of every node of a CRD's schema, structural or not.

Called by ``schema.py`` and ``options.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import (
    FieldError,
    child,
    forbidden,
    index,
    invalid,
    key,
    not_supported,
)
from instar.kube.crds.validation.cel_rules import rule_errors
from instar.kube.crds.validation.list_types import list_errors
from instar.kube.crds.validation.unsupported_schema import PRESERVE

Schema = Mapping[str, Any]

TYPES = ("array", "boolean", "integer", "number", "object", "string")
EMBEDDED = "x-kubernetes-embedded-resource"
_META = ("metadata", "apiVersion", "kind")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")


@dataclass(frozen=True, slots=True)
class NodeRules:
    """Which optional rules apply, and the current position in a resource."""

    valid_types: bool
    atomic_sets: bool
    sound_keys: bool
    no_defaults: str | None = None
    """Why defaults are forbidden here; None where they are allowed."""
    inside_meta: bool = False
    root: bool = True

    def below(self) -> NodeRules:
        return replace(self, root=False) if self.root else self


def node_errors(schema: Schema, path: str, rules: NodeRules) -> Iterator[FieldError]:
    """Return the errors of this node and all nodes below it."""
    yield from _own_errors(schema, path, rules)
    additional = schema.get("additionalProperties")
    if schema.get("properties") and additional is not None and additional is not True:
        text = "additionalProperties and properties are mutual exclusive"
        yield forbidden(child(path, "additionalProperties"), text)
    yield from _children(schema, path, rules)
    if schema.get(PRESERVE) is False:
        yield invalid(child(path, PRESERVE), False, "must be true or undefined")
    yield from list_errors(schema, path, atomic_sets=rules.atomic_sets, sound_keys=rules.sound_keys)
    yield from rule_errors(schema, path)


def _own_errors(schema: Schema, path: str, rules: NodeRules) -> Iterator[FieldError]:
    type = schema.get("type", "")
    if rules.valid_types and type and type not in TYPES:
        yield not_supported(child(path, "type"), type, TYPES)
    if type == "null":
        text = "type cannot be set to null, use nullable as an alternative"
        yield forbidden(child(path, "type"), text)
    if schema.get("default") is not None and rules.no_defaults is not None:
        text = f"must not be set {rules.no_defaults}".rstrip()
        yield forbidden(child(path, "default"), text)
    for keyword in _UNSUPPORTED:
        if schema.get(keyword) not in (None, *(() if keyword == "$ref" else ("", {}))):
            yield forbidden(child(path, keyword), f"{keyword} is not supported")
    if isinstance(schema.get("items"), list):
        yield forbidden(child(path, "items"), "items must be a schema object and not an array")
    if rules.inside_meta and schema.get(EMBEDDED):
        yield forbidden(child(path, EMBEDDED), "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(child(path, "uniqueItems"), text)


def _children(schema: Schema, path: str, rules: NodeRules) -> Iterator[FieldError]:
    below = rules.below()
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        at = child(path, "additionalProperties")
        yield from node_errors(additional, at, _map_values(below))
    for name, item in (schema.get("properties") or {}).items():
        at = key(child(path, "properties"), name)
        yield from node_errors(item, at, _property(name, schema, rules))
    for keyword in ("patternProperties", "definitions", "dependencies"):
        for name, item in (schema.get(keyword) or {}).items():
            if isinstance(item, Mapping):
                yield from node_errors(item, key(child(path, keyword), name), below)
    for keyword in ("additionalItems", "not", "items"):
        item = schema.get(keyword)
        if isinstance(item, Mapping):
            yield from node_errors(item, child(path, keyword), below)
    for keyword in ("allOf", "oneOf", "anyOf", "items"):
        items = schema.get(keyword)
        if isinstance(items, list):
            for position, item in enumerate(items):
                yield from node_errors(item, index(child(path, keyword), position), below)


def _map_values(below: NodeRules) -> NodeRules:
    """Return the rules of map values; inside metadata they may not have defaults, which pruning
    could drop."""
    if not below.inside_meta or below.no_defaults is not None:
        return below
    return replace(below, no_defaults="inside additionalProperties applying to object metadata")


def _property(name: str, schema: Schema, rules: NodeRules) -> NodeRules:
    below = rules.below()
    if name not in _META or not (rules.root or schema.get(EMBEDDED)):
        return below
    below = replace(below, inside_meta=True)
    return replace(below, no_defaults=f"in top-level {name}") if rules.root else below
