"""Validation of lists and objects: sizes, members, required fields.

Called by ``validate.py``, and by ``fast_validate.py`` for the required names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from instar.base.field_errors import FieldError, invalid, required, too_many
from instar.base.json_values import json_key
from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.structure.structural import Structural
from instar.kube.schema.validation.node import Check, ValidationNode
from instar.kube.schema.validation.ratchet import child_partner, item_partners

Compile = Callable[[Structural], ValidationNode]


def array_checks(schema: Structural, compile_node: Compile) -> list[Check]:
    checks: list[Check] = []
    if schema.items is not None:
        checks.append(_items_check(schema, compile_node(schema.items)))
    least, most = schema.raw.get("minItems"), schema.raw.get("maxItems")
    if type(least) is int:
        checks.append(_min_items(least))
    if type(most) is int:
        checks.append(_max_size(most))
    return [*checks, *uniqueness(schema)]


def uniqueness(schema: Structural) -> list[Check]:
    """Return the check of ``uniqueItems``, if the schema has it."""
    return [_unique] if schema.raw.get("uniqueItems") is True else []


def _items_check(schema: Structural, items: ValidationNode) -> Check:
    table, run = items.table, items.run

    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        if old is ABSENT:
            for position, item in enumerate(value):
                if table[item.__class__]:
                    run(item, ABSENT, f"{path}[{position}]", out)
            return
        partners = item_partners(schema, value, old)
        for position, (item, partner) in enumerate(zip(value, partners, strict=True)):
            run(item, partner, f"{path}[{position}]", out)

    return check


def _min_items(least: int) -> Check:
    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        if len(value) < least:
            detail = f"{path} in body should have at least {least} items"
            out.append(invalid(path, len(value), detail))

    return check


def _max_size(most: int) -> Check:
    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        if len(value) > most:
            out.append(too_many(path, len(value), most))

    return check


def _unique(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
    if len(set(map(json_key, value))) < len(value):
        out.append(invalid(path, "", f"{path} in body shouldn't contain duplicates"))


def object_checks(schema: Structural, compile_node: Compile) -> list[Check]:
    """Return the checks: sizes first, then members, however many there are."""
    checks: list[Check] = []
    least, most = schema.raw.get("minProperties"), schema.raw.get("maxProperties")
    if type(least) is int:
        checks.append(_min_properties(least))
    if type(most) is int:
        checks.append(_max_size(most))
    return checks + _members(schema, compile_node)


def _min_properties(least: int) -> Check:
    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        if len(value) < least:
            detail = f"{path} in body should have at least {least} properties"
            out.append(invalid(path, len(value), detail))

    return check


def _members(schema: Structural, compile_node: Compile) -> list[Check]:
    checks: list[Check] = []
    known = {name: compile_node(item) for name, item in schema.properties.items()}
    if schema.additional is False:
        checks.append(_closed(frozenset(known)))
    if isinstance(schema.additional, Structural):
        checks.append(_additional(frozenset(known), compile_node(schema.additional)))
    if known:
        checks.append(_properties(known))
    needed = required_names(schema)
    if needed:
        checks.append(_required(needed))
    return checks


def required_names(schema: Structural) -> tuple[str, ...]:
    needed = schema.raw.get("required")
    if not isinstance(needed, list):
        return ()
    return tuple(name for name in needed if isinstance(name, str))


def _closed(known: frozenset[str]) -> Check:
    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        for name in value:
            if name not in known:
                detail = f"{path}.{name} in body is a forbidden property"
                out.append(invalid(path, name, detail))

    return check


def _additional(known: frozenset[str], node: ValidationNode) -> Check:
    table, run = node.table, node.run

    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        for name, item in value.items():
            if table[item.__class__] and name not in known:
                partner = ABSENT if old is ABSENT else child_partner(old, name)
                run(item, partner, f"{path}.{name}", out)

    return check


def _properties(known: dict[str, ValidationNode]) -> Check:
    find = known.get

    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        for name, item in value.items():
            node = find(name)
            if node is not None and node.table[item.__class__]:
                partner = ABSENT if old is ABSENT else child_partner(old, name)
                node.run(item, partner, f"{path}.{name}" if path else name, out)

    return check


def _required(names: tuple[str, ...]) -> Check:
    needed = frozenset(names)

    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        if not needed <= value.keys():
            out.extend(required(f"{path}.{name}") for name in names if name not in value)

    return check
