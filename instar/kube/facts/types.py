"""OpenAPI schemas of the built-in kinds, in two forms of the same data.

Called by ``kube/openapi/builtin.py`` and by ``server/registry/kinds``. ``schema_of`` is a
structural schema without references, so that a built-in kind uses the same compiled schemas as a
custom resource. ``definitions`` is OpenAPI's own form with references, for publishing. Neither has
descriptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from instar.base.json_values import copy_json
from instar.kube.facts.block_file import BlockFile, split_reference

_SHELF = BlockFile("types.shelf")
_ZERO_VALUES: tuple[Any, ...] = (0, False, {})
_PUBLISHED_ONLY = frozenset(
    {"$ref", "enum", "required", "x-kubernetes-group-version-kind", "x-kubernetes-unions"}
)
"""Keywords that are left out: built-in kinds are validated by code with its own messages."""
_ANY_VALUE = {"x-kubernetes-preserve-unknown-fields": True}
_OPAQUE_SCHEMA = {
    "title": "RawExtension",
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "x-kubernetes-map-type": "atomic",
}
_SPECIAL: Mapping[str, Mapping[str, Any]] = {
    "resource#Quantity": {"x-kubernetes-int-or-string": True, "format": "quantity"},
    "intstr#IntOrString": {"x-kubernetes-int-or-string": True, "format": "int-or-string"},
    "runtime#RawExtension": _OPAQUE_SCHEMA,
    "meta.k8s.io/v1#FieldsV1": _OPAQUE_SCHEMA,
    "meta.k8s.io/v1#Time": {"type": "string", "format": "date-time", "nullable": True},
    "meta.k8s.io/v1#MicroTime": {"type": "string", "format": "micro-time", "nullable": True},
    "apiextensions.k8s.io/v1#JSON": _ANY_VALUE,
    "apiextensions.k8s.io/v1#JSONSchemaPropsOrArray": _ANY_VALUE,
    "apiextensions.k8s.io/v1#JSONSchemaPropsOrBool": _ANY_VALUE,
    "apiextensions.k8s.io/v1#JSONSchemaPropsOrStringArray": _ANY_VALUE,
}
"""Structural schemas of types with a custom JSON form in Go."""

Schema = Mapping[str, Any]

_resolved: dict[str, Schema] = {}


def schema_of(api_version: str, kind: str) -> Schema | None:
    """Return a kind's structural schema; None for an unknown type.

    Parts are shared between kinds and must not be changed. Only defaults other than Go's zero
    value, and texts, are included: a list key may be an empty text. A recursive type is left open.
    Titles are the names of Go's types.
    """
    if kind not in _SHELF.block(api_version):
        return None
    return _resolve(f"{api_version}#{kind}", ())


def _resolve(name: str, above: tuple[str, ...]) -> Schema:
    found = _SPECIAL.get(name) or _resolved.get(name)
    if found is not None:
        return found
    if name in above:
        return _OPAQUE_SCHEMA
    block, _, short = name.partition("#")
    own = _node(_SHELF.block(block)[short], block, (*above, name))
    found = _resolved[name] = {"title": short, **own}
    return found


def _node(raw: Schema, home: str, above: tuple[str, ...]) -> Schema:
    out: dict[str, Any] = {}
    for key, value in raw.items():
        if key == "properties":
            out[key] = {name: _node(item, home, above) for name, item in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = _node(value, home, above)
        elif key not in _PUBLISHED_ONLY and (key != "default" or value not in _ZERO_VALUES):
            out[key] = value
    if "$ref" not in raw:
        return out
    block, name = split_reference(raw["$ref"].removeprefix("&"), home)
    target = _resolve(f"{block}#{name}", above)
    return {**target, **out} if out else target


def definition_name(api_version: str, type: str) -> str | None:
    """Return ``io.k8s.api.apps.v1.Deployment``; None for an unknown type."""
    prefix = _SHELF.note(api_version)
    return f"{prefix}.{type}" if prefix and type in _SHELF.block(api_version) else None


def definitions(roots: Iterable[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """Return the published definitions of (apiVersion, type) pairs and all they refer to, by
    name."""
    out: dict[str, dict[str, Any]] = {}
    todo = [root for root in roots if root[1] in _SHELF.block(root[0])]
    while todo:
        block, name = todo.pop()
        published = f"{_SHELF.note(block)}.{name}"
        if published not in out:
            out[published] = _with_full_names(_SHELF.block(block)[name], block, todo)
    return out


def _with_full_names(raw: Any, home: str, todo: list[tuple[str, str]]) -> Any:
    """Return a copy with full reference names; the types they name are added to ``todo``."""
    if not isinstance(raw, dict):
        return raw
    out: dict[str, Any] = {}
    for key, value in raw.items():
        if key == "properties":
            out[key] = {name: _with_full_names(item, home, todo) for name, item in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = _with_full_names(value, home, todo)
        elif key == "$ref":
            block, name = target = split_reference(value.removeprefix("&"), home)
            todo.append(target)
            reference = {"$ref": f"#/components/schemas/{_SHELF.note(block)}.{name}"}
            out.update({"allOf": [reference]} if value.startswith("&") else reference)
        else:
            out[key] = copy_json(value)
    return out


def type_names(api_version: str) -> list[str]:
    """Return every type of a group version, kinds and their parts."""
    return sorted(_SHELF.block(api_version))


def group_versions() -> list[str]:
    """Return the group versions with built-in kinds."""
    return _SHELF.names()
