"""Fast validation: tells valid from invalid without building error messages.

Compiled by ``validate.py`` as ``ValidationNode.passes``. Most values are valid, and skipping paths,
old values and messages takes a fraction of the time; the validation that reports errors runs only
if the fast validation fails. Rare keywords use the checks of ``validate.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from instar.base.field_errors import FieldError
from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.structure.structural import Structural
from instar.kube.schema.validation.containers import required_names
from instar.kube.schema.validation.node import Check, Passes, ValidationNode
from instar.kube.schema.validation.numbers import INT64_MAX, INT64_MIN, whole_bounds
from instar.kube.schema.validation.scalars import text_limits

Compile = Callable[[Structural], ValidationNode]
_PLAIN_TYPES: dict[str, type] = {"string": str, "boolean": bool, "object": dict, "array": list}
_NO_MAXIMUM = 2**63


def passes_of(
    schema: Structural,
    table: Mapping[type, Sequence[Check]],
    extra: Mapping[type, Sequence[Check]],
    compile_node: Compile,
) -> Passes:
    """Compile the fast check. ``extra`` has the checks that are not about the size or members of
    a list or object or the range of a number."""
    checked = _by_reporting_checks(table)
    if schema.type == "object":
        return _object(schema, extra[dict], compile_node, checked)
    if schema.type == "array":
        return _list(schema, extra[list], compile_node, checked)
    if schema.type == "integer" and not extra[int]:
        return _integer(schema, checked)
    if schema.type == "string" and not extra[str]:
        return _string(schema, table[str], checked)
    return checked


def _by_reporting_checks(table: Mapping[type, Sequence[Check]]) -> Passes:
    """Return a fast check that runs the reporting checks."""

    def passes(value: Any) -> bool:
        kind = value.__class__
        if kind is int and not INT64_MIN <= value <= INT64_MAX:
            value, kind = float(value), float
        return not table[kind] or _passes_all(table[kind], value)

    return passes


def _passes_all(checks: Iterable[Check], value: Any) -> bool:
    found: list[FieldError] = []
    for check in checks:
        check(value, ABSENT, "", found)
        if found:
            return False
    return True


def _integer(schema: Structural, checked: Passes) -> Passes:
    bounds = whole_bounds(schema.raw)
    if bounds is None:
        return checked
    low, high = bounds

    def passes(value: Any) -> bool:
        return low <= value <= high if value.__class__ is int else checked(value)

    return passes


def _string(schema: Structural, checks: Sequence[Check], checked: Passes) -> Passes:
    limits = text_limits(schema.raw)
    if limits is None or len(checks) != 1:  # it also has a format, or has no limits
        return checked
    least, most, matches, _ = limits

    def passes(value: Any) -> bool:
        if value.__class__ is not str:
            return checked(value)
        return least <= len(value) <= most and (matches is None or matches(value))

    return passes


def _list(
    schema: Structural, extra: Sequence[Check], compile_node: Compile, checked: Passes
) -> Passes:
    least, most = _sizes(schema, "minItems", "maxItems")
    items = None if schema.items is None else compile_node(schema.items)
    each = _accept_any if items is None else items.passes
    plain = None if items is None else _type_without_checks(items)

    def passes(value: Any) -> bool:
        if value.__class__ is not list:
            return checked(value)
        if not least <= len(value) <= most:
            return False
        for item in value:
            if item.__class__ is not plain and not each(item):
                return False
        return not extra or _passes_all(extra, value)

    return passes


def _object(
    schema: Structural, extra: Sequence[Check], compile_node: Compile, checked: Passes
) -> Passes:
    least, most = _sizes(schema, "minProperties", "maxProperties")
    sized = least > 0 or most < _NO_MAXIMUM
    nodes = {name: compile_node(item) for name, item in schema.properties.items()}
    plain = {name: _type_without_checks(node) for name, node in nodes.items()}
    known = {name: node.passes for name, node in nodes.items()}
    required = required_names(schema)
    other, other_plain = _additional_check(schema, compile_node)

    def passes(value: Any) -> bool:
        if value.__class__ is not dict:
            return checked(value)
        for name, item in value.items():
            if name in known:
                if plain[name] is not item.__class__ and not known[name](item):
                    return False
            elif other_plain is not item.__class__ and not other(item):
                return False
        for name in required:
            if name not in value:
                return False
        if sized and not least <= len(value) <= most:
            return False
        return not extra or _passes_all(extra, value)

    return passes


def _additional_check(schema: Structural, compile_node: Compile) -> tuple[Passes, type | None]:
    """Return the check of members that are not among the properties."""
    if isinstance(schema.additional, Structural):
        node = compile_node(schema.additional)
        return node.passes, _type_without_checks(node)
    return _accept_none if schema.additional is False else _accept_any, None


def _type_without_checks(node: ValidationNode) -> type | None:
    """Return the Python type of a node without further checks; None if it has some."""
    kind = _PLAIN_TYPES.get(node.schema.type)
    return kind if kind is not None and not node.table[kind] else None


def _sizes(schema: Structural, fewest: str, most: str) -> tuple[int, int]:
    low, high = schema.raw.get(fewest), schema.raw.get(most)
    return low if type(low) is int else 0, high if type(high) is int else _NO_MAXIMUM


def _accept_any(value: Any) -> bool:
    return True


def _accept_none(value: Any) -> bool:
    return False
