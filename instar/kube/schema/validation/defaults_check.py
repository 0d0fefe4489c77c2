"""Checks that the defaults of a schema are valid values of that schema.

Called by CRD validation (``kube/crds/validation``) for structural schemas. Like upstream, the check
skips defaults below ``additionalProperties``. CEL rules on defaults are checked by
``cel_rules/defaults.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import FieldError, FieldErrorCode, child, invalid, key, messages
from instar.base.json_values import copy_json, same_json
from instar.kube.schema.json_types import in_key_order
from instar.kube.schema.metadata.embedded_resources import (
    EmbeddedError,
    as_resource,
    compile_coercer,
    compile_judge,
)
from instar.kube.schema.pruning import compile_node
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural import Structural
from instar.kube.schema.validation.validate import compile_validator

_META = frozenset({"apiVersion", "kind", "metadata"})

Surround = Callable[[Any], Any]
"""Puts a value at its path inside its resource."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Current schema position: the enclosing resource, and whether it is inside the metadata."""

    resource: Structural
    surround: Surround
    in_meta: bool = False

    def member(self, name: str, *, in_meta: bool) -> _Place:
        outer = self.surround
        return _Place(self.resource, lambda value: outer({name: value}), in_meta)

    def item(self) -> _Place:
        outer = self.surround
        return _Place(self.resource, lambda value: outer([value]), self.in_meta)


def default_errors(
    raw: Mapping[str, Any], path: str, *, require_pruned: bool = True
) -> list[FieldError]:
    """Return errors for every default that is not a pruned, valid value of its own node.

    ``require_pruned`` is off when an older form of the CRD already had unpruned defaults.
    """
    root = as_resource(structural(raw))
    return list(_walk(root, path, _resource_place(root), require_pruned))


def _resource_place(node: Structural) -> _Place:
    def surround(value: Any) -> Any:
        typed = {"apiVersion": "validation/v1", "kind": "Validation"}
        return {**typed, **value} if type(value) is dict else typed

    return _Place(node, surround)


def _walk(node: Structural, path: str, place: _Place, require_pruned: bool) -> Iterator[FieldError]:
    if node.embedded:
        place = _resource_place(node)
    if node.default is not None:
        where = child(path, "default")
        if place.in_meta:
            yield from _meta_default_errors(node, where, place)
        else:
            yield from _default_errors(node, where, require_pruned)
    if node.items is not None:
        yield from _walk(node.items, child(path, "items"), place.item(), require_pruned)
    for name, item in node.properties.items():
        in_meta = place.in_meta or (node.embedded and name in _META)
        where = key(child(path, "properties"), name)
        yield from _walk(item, where, place.member(name, in_meta=in_meta), require_pruned)


def _default_errors(node: Structural, path: str, require_pruned: bool) -> Iterator[FieldError]:
    default = copy_json(node.default)
    if require_pruned:
        pruned = copy_json(default)
        compile_node(node)(pruned)
        if not same_json(pruned, default):
            text = "must not have unknown fields"
            yield invalid(path, in_key_order(default), text, FieldErrorCode.UNPRUNED_DEFAULT)
    try:
        _coerce(node, default, path)
    except EmbeddedError as error:
        yield error.error
        return
    yield from _judge(node, default, path) or _value_errors(node, default, path)


def _meta_default_errors(node: Structural, path: str, place: _Place) -> Iterator[FieldError]:
    """Check a default inside metadata by the resource that would contain it."""
    whole = place.surround(copy_json(node.default))
    try:
        _coerce(place.resource, whole, "")
    except EmbeddedError as error:
        why = str(error)
    else:
        found = _judge(place.resource, whole, "")
        if not found:
            yield from _value_errors(node, node.default, path)
            return
        why = messages(found)
    yield invalid(path, in_key_order(node.default), f"must result in valid metadata: {why}")


def _coerce(node: Structural, value: Any, path: str) -> None:
    coercer = compile_coercer(node)
    if coercer is not None:
        coercer(value, path, False, [])


def _judge(node: Structural, value: Any, path: str) -> list[FieldError]:
    judge = compile_judge(node)
    return [] if judge is None else judge(value, path)


def _value_errors(node: Structural, value: Any, path: str) -> list[FieldError]:
    return compile_validator(node).validate(value, path=path)
