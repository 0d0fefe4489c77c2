"""Type check of an applied configuration before it is merged, with upstream's messages.

Called by ``applying.py`` and mutating policies. Only types, undeclared fields and list item keys
are checked; schema validation comes later.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from instar.base.field_errors import go_float, go_plain, go_quote
from instar.kube.api.encoding.go_json_errors import go_value_type
from instar.kube.apply.field_set import element_text
from instar.kube.apply.ownership_schema import (
    BOOLEAN,
    NUMERIC,
    STRING,
    Atom,
    BadItem,
    ListType,
    MapType,
    TypedSchema,
    item_element,
)


class TypeProblem(NamedTuple):
    """A value of the wrong type, with its path."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


def type_problems(schema: TypedSchema, obj: dict[str, Any]) -> list[TypeProblem]:
    out: list[TypeProblem] = []
    _check(schema.root, obj, "", out)
    return out


def problems_text(problems: list[TypeProblem]) -> str:
    """Return one problem unchanged, several as an indented list."""
    if len(problems) == 1:
        return str(problems[0])
    return "\n".join(["errors:", *(f"  {problem}" for problem in problems)])


def _check(atom: Atom, value: Any, path: str, out: list[TypeProblem]) -> None:
    if value is None:
        return
    if isinstance(value, dict) and atom.map is not None:
        _check_map(atom.map, value, path, out)
    elif isinstance(value, list) and atom.list is not None:
        _check_list(atom.list, value, path, out)
    else:
        text = _mismatch(atom, value)
        if text:
            out.append(TypeProblem(path, text))


def _mismatch(atom: Atom, value: Any) -> str:
    """Return the error of a value that is not the expected map or list."""
    scalar = not isinstance(value, dict | list)
    if atom.map is not None and not (scalar and atom.scalar):
        return f"expected map, got &{{{go_plain(value)}}}"
    if atom.scalar is None:
        return f"expected list, got &{{{go_plain(value)}}}"
    match atom.scalar:
        case s if s == NUMERIC and (isinstance(value, bool) or not isinstance(value, int | float)):
            return f"expected numeric (int or float), got {go_value_type(value)}"
        case s if s == STRING and not isinstance(value, str):
            return f"expected string, got &value.valueUnstructured{{Value:{_literal(value)}}}"
        case s if s == BOOLEAN and not isinstance(value, bool):
            return f"expected boolean, got &{{{go_plain(value)}}}"
    return "" if scalar else f"expected any scalar, got &{{{go_plain(value)}}}"


def _check_map(kind: MapType, value: dict[str, Any], path: str, out: list[TypeProblem]) -> None:
    """Check a map; of several undeclared fields one is reported (upstream reports a random one)."""
    reported = False
    for name, child in value.items():
        known = kind.fields.get(name)
        atom = kind.element if known is None else known[1]
        if atom is not None and atom.scalar == STRING and child.__class__ is str:
            continue  # by far the most common case
        if atom is not None:
            _check(atom, child, f"{path}.{name}", out)
        elif not reported:
            reported = True
            out.append(TypeProblem(f"{path}.{name}", "field not declared in schema"))


def _check_list(kind: ListType, items: list[Any], path: str, out: list[TypeProblem]) -> None:
    seen: set[str] = set()
    for position, item in enumerate(items):
        if kind.relation == "atomic":
            _check(kind.element, item, f"{path}[{position}]", out)
            continue
        try:
            element = item_element(kind, item)
        except BadItem as problem:
            out.append(TypeProblem(path, f"element {position}: {problem}"))
            return
        shown = element_text(element)
        if element in seen:
            out.append(TypeProblem(path, f"duplicate entries for key {shown}"))
        seen.add(element)
        _check(kind.element, item, path + shown, out)


def _literal(value: Any) -> str:
    """Return Go's ``%#v`` of a JSON value."""
    if isinstance(value, dict):
        inner = ", ".join(f"{go_quote(k)}:{_literal(v)}" for k, v in sorted(value.items()))
        return "map[string]interface {}{" + inner + "}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(_literal(item) for item in value) + "}"
    return (
        go_quote(value) if isinstance(value, str) else _number_or_word(value, "interface {}(nil)")
    )


def _number_or_word(value: Any, null: str) -> str:
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    return go_float(value) if isinstance(value, float) else str(value)
