"""Schema validation: compiles a schema into tables of checks and validates values with them.

Called through ``compiled.py``. Checks that always pass are left out, so a plain ``type: string``
costs its parent one lookup. Old values are compared only after an error was found (``ratchet.py``).
Metadata rules, list uniqueness and CEL are separate modules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from instar.base.field_errors import NO_FIELD, FieldError, child
from instar.kube.schema.formats.named import is_supported, string_format
from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.structure.interning import once_while_used
from instar.kube.schema.structure.structural import Structural
from instar.kube.schema.validation.combinators import compile_combinators
from instar.kube.schema.validation.containers import array_checks, object_checks, uniqueness
from instar.kube.schema.validation.fast_validate import passes_of
from instar.kube.schema.validation.findings import collect_errors
from instar.kube.schema.validation.node import UNJUDGED, Check, ValidationNode
from instar.kube.schema.validation.numbers import NUMBER_FORMATS, compile_numbers
from instar.kube.schema.validation.ratchet import compile_comparable, unchanged
from instar.kube.schema.validation.scalars import (
    enum_checks,
    format_check,
    string_checks,
    type_checks,
)

_IDENTITY = frozenset({"apiVersion", "kind"})
_CONTAINERS = (dict, list)
_KINDS: tuple[type, ...] = (str, int, float, bool, list, dict)


class Validator:
    """One schema, ready to validate values."""

    __slots__ = ("_comparable", "_resource", "_root")

    def __init__(self, root: ValidationNode, *, resource: bool, pruned: bool) -> None:
        self._root = root
        self._resource = resource
        members = root.schema.properties.items() if pruned else ()
        self._comparable = {name: compile_comparable(item) for name, item in members}

    def validate(self, value: Any, old: Any = ABSENT, *, path: str = "") -> list[FieldError]:
        """Return the errors of ``value``, without those in parts unchanged since ``old``.

        ``path`` is prefixed to the errors' fields but, as upstream does, not to paths inside
        messages.
        """
        judged = self._without_kept(value, old)
        if self._root.passes(judged):
            return []
        found = collect_errors(lambda out: self._root.run(judged, ABSENT, "", out))
        if found and old is not ABSENT:
            found = self._ratcheted(value, old)
        return _with_final_fields(found, path) if found else found

    def _ratcheted(self, value: Any, old: Any) -> list[FieldError]:
        if unchanged(self._root.schema, value, old):
            return []
        if self._resource and type(old) is dict:
            # apiVersion and kind are validated on every write.
            old = {name: item for name, item in old.items() if name not in _IDENTITY}
        return collect_errors(lambda out: self._root.run(value, old, "", out))

    def _without_kept(self, value: Any, old: Any) -> Any:
        """Replace members that are identical to those of ``old`` by ``Unchecked``, so that a small
        write (a label, the status) only validates what it changed."""
        if type(value) is not dict or type(old) is not dict:
            return value
        kept = {
            name: UNJUDGED
            for name, comparable in self._comparable.items()
            if (item := value.get(name)).__class__ in _CONTAINERS
            and item is old.get(name)
            and (comparable is None or comparable(item))
        }
        return {**value, **kept} if kept else value


def compile_validator(
    root: Structural, *, resource: bool = False, pruned: bool = True
) -> Validator:
    """Compile a validator.

    ``resource``: values are whole objects, and errors in their apiVersion and kind are always
    reported. ``pruned``: values contain no unknown fields.
    """
    return Validator(compile_node(root), resource=resource, pruned=pruned)


@once_while_used
def compile_node(schema: Structural) -> ValidationNode:
    """Return the checks of a node, in upstream's order, for each type of value."""
    raw = schema.raw
    written = raw.get("format")
    format = written if isinstance(written, str) and is_supported(written) else ""
    types = stated_types(schema)
    node = ValidationNode(schema)
    combined = compile_combinators(raw, compile_node)
    named = string_format(format) if format else None
    by_kind: dict[type, list[Check]] = {
        str: [*string_checks(raw), *([format_check(format, named)] if named else ())],
        int: [_number(check) for check in compile_numbers(raw, *_numeric(types, format))],
        list: array_checks(schema, compile_node),
    }
    by_kind[float] = by_kind[int]
    objects = object_checks(schema, compile_node)
    extra: dict[type, list[Check]] = {}
    for kind in _KINDS:
        first, last = [*type_checks(types, format, kind), *combined], enum_checks(raw, kind)
        extra[kind] = first + last
        own = by_kind.get(kind, ())
        node.table[kind] = (*first, *own, *last, *(objects if kind is dict else ()))
    extra[list] += uniqueness(schema)
    null = type(None)
    node.table[null] = (
        *type_checks(() if schema.nullable else types, "", null),
        *enum_checks(raw, null),
    )
    node.passes = passes_of(schema, node.table, extra, compile_node)
    return node


def _numeric(types: tuple[str, ...], format: str) -> tuple[str, str]:
    """Return the type and format that limit a number's range; neither if the type is ambiguous."""
    if len(types) != 1 or types[0] not in NUMBER_FORMATS:
        return "", ""
    return types[0], format if format in NUMBER_FORMATS[types[0]] else ""


def stated_types(schema: Structural) -> tuple[str, ...]:
    """Return the types that a schema names; none if it names no type."""
    if schema.type:
        return (schema.type,)
    return ("integer", "string") if schema.int_or_string else ()


def _number(check: Callable[[Any, str, list[FieldError]], None]) -> Check:
    def number(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        check(value, path, out)

    return number


def _with_final_fields(found: list[FieldError], prefix: str) -> list[FieldError]:
    """Return the errors with their final fields, without repeats."""
    placed: dict[tuple[str, str, str | None, str], FieldError] = {}
    for error in found:
        field = _field_under(prefix, error.field) or NO_FIELD
        place = None if error.place is None else _field_under(prefix, error.place)
        moved = replace(error, field=field, place=place)
        placed.setdefault((error.kind, field, place, error.detail), moved)
    return list(placed.values())


def _field_under(prefix: str, path: str) -> str:
    path = path.removeprefix(".")
    return child(prefix, path) if path else prefix
