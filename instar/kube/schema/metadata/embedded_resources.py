"""Embedded resources (``x-kubernetes-embedded-resource``): coercion and validation of their
metadata.

Called through ``compiled.py``. The apiVersion, kind and metadata of an embedded resource are
handled like those of a whole object, except that the name is optional and need only be a valid URL
path segment. The root's own metadata is handled by ``schema/pipeline.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from instar.base.field_errors import FieldError, child, index, invalid, key, required
from instar.kube.api.names import parse_group_version
from instar.kube.api.string_rules import dns1035_label
from instar.kube.schema.json_types import in_key_order
from instar.kube.schema.metadata.object_meta import (
    coerce_metadata,
    drop_malformed,
    name_is_path_segment,
    validate_metadata,
)
from instar.kube.schema.metadata.types import MetaError
from instar.kube.schema.structure.structural import Structural

Coercer = Callable[[Any, str, bool, list[str]], None]
"""(value, path, lenient, unknown paths so far): changes the value; raises MetaError if strict."""

Judge = Callable[[Any, str], list[FieldError]]


class EmbeddedError(MetaError):
    """An embedded resource does not decode; ``error`` names the path."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


def as_resource(root: Structural) -> Structural:
    """Return the schema with its root treated as an embedded resource."""
    return root if root.embedded else replace(root, embedded=True)


def below_root(root: Structural) -> Structural:
    """Return the schema with a root that is not itself an embedded resource."""
    return replace(root, embedded=False) if root.embedded else root


def compile_coercer(node: Structural) -> Coercer | None:
    """Compile the coercion; None when the node cannot contain an embedded resource."""
    known = {name: compile_coercer(item) for name, item in node.properties.items()}
    deeper = {name: step for name, step in known.items() if step is not None}
    additional = node.additional if isinstance(node.additional, Structural) else None
    other = None if additional is None else compile_coercer(additional)
    items = None if node.items is None else compile_coercer(node.items)
    embedded, declared = node.embedded, frozenset(node.properties)
    if not embedded and not deeper and other is None and items is None:
        return None

    def coerce(value: Any, path: str, lenient: bool, unknown: list[str]) -> None:
        if type(value) is list:
            if items is not None:
                for position, item in enumerate(value):
                    items(item, index(path, position), lenient, unknown)
            return
        if type(value) is not dict:
            return
        if embedded:
            _coerce_resource(value, path, lenient, unknown)
        for name, item in value.items():
            if name in deeper:
                deeper[name](item, child(path, name), lenient, unknown)
            elif other is not None and name not in declared:
                other(item, key(path, name), lenient, unknown)

    return coerce


def coerce_identity(resource: dict[str, Any]) -> None:
    """Coerce apiVersion, kind and metadata of a resource in place, dropping malformed fields."""
    _coerce_resource(resource, "", True, [])


def _coerce_resource(value: dict[str, Any], path: str, lenient: bool, unknown: list[str]) -> None:
    for name in ("apiVersion", "kind"):
        if name not in value or type(value[name]) is str:
            continue
        if not lenient:
            raise EmbeddedError(
                invalid(child(path, name), in_key_order(value[name]), "must be a string")
            )
        del value[name]
    if "metadata" in value:
        _coerce_metadata(value, child(path, "metadata"), lenient, unknown)


def _coerce_metadata(value: dict[str, Any], path: str, lenient: bool, unknown: list[str]) -> None:
    metadata = value["metadata"]
    if lenient:
        # Upstream leaves metadata alone that is not an object.
        if metadata is None or type(metadata) is dict:
            value["metadata"] = drop_malformed(metadata or {})
        return
    try:
        value["metadata"], found = coerce_metadata(metadata, path)
    except MetaError as error:
        raise EmbeddedError(invalid(path, in_key_order(metadata), str(error))) from None
    unknown.extend(found)


def compile_judge(node: Structural) -> Judge | None:
    """Compile the validation of embedded resources; None when there can be none."""
    known = {name: compile_judge(item) for name, item in node.properties.items()}
    deeper = {name: step for name, step in known.items() if step is not None}
    additional = node.additional if isinstance(node.additional, Structural) else None
    other = None if additional is None else compile_judge(additional)
    items = None if node.items is None else compile_judge(node.items)
    embedded, declared = node.embedded, frozenset(node.properties)
    if not embedded and not deeper and other is None and items is None:
        return None

    def judge(value: Any, path: str) -> list[FieldError]:
        found: list[FieldError] = []
        if type(value) is list:
            if items is not None:
                for position, item in enumerate(value):
                    found.extend(items(item, index(path, position)))
        elif type(value) is dict:
            if embedded:
                found.extend(_resource_errors(value, path))
            for name, item in value.items():
                if name in deeper:
                    found.extend(deeper[name](item, child(path, name)))
                elif other is not None and name not in declared:
                    found.extend(other(item, key(path, name)))
        return found

    return judge


def _resource_errors(value: dict[str, Any], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for name, rule in (("apiVersion", _api_version_texts), ("kind", _kind_texts)):
        where = child(path, name)
        if name not in value:
            found.append(required(where))
        elif type(value[name]) is not str:
            found.append(invalid(where, in_key_order(value[name]), "must be a string"))
        else:
            found.extend(invalid(where, value[name], text) for text in rule(value[name]))
    if "metadata" in value:
        found.extend(_metadata_errors(value["metadata"], child(path, "metadata")))
    return found


def _api_version_texts(text: str) -> list[str]:
    if not text:
        return ["must not be empty"]
    try:
        parse_group_version(text)
    except ValueError as error:
        return [str(error)]
    return []


def _kind_texts(text: str) -> list[str]:
    if not text:
        return ["must not be empty"]
    reasons = dns1035_label(text.lower())
    if not reasons:
        return []
    return [f"may have mixed case, but should otherwise match: {','.join(reasons)}"]


def _metadata_errors(metadata: Any, path: str) -> list[FieldError]:
    try:
        clean, _ = coerce_metadata(metadata, path)
    except MetaError as error:
        return [invalid(path, in_key_order(metadata), str(error))]
    named = {**clean, "name": clean.get("name") or "fakename"}
    return validate_metadata(
        named, namespaced="namespace" in clean, name_rule=name_is_path_segment, path=path
    )
