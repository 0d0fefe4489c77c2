"""``Declared``: type, JSON conversion and maximum size of a CEL variable or field, for the type
checker and the cost estimate.

Built by the modules that declare variables (``kube/schema/cel_rules/declare.py``,
``host_types.py``); the checker, the cost estimate and field access read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple, TypeAlias

from instar.base.fast_dataclass import dataclass
from instar.kube.cel.checking.cost_ranges import Range
from instar.kube.cel.functions import Path, SizeAt
from instar.kube.cel.syntax.property_names import RESERVED
from instar.kube.cel.types import Type

PythonType: TypeAlias = type


class DeclaredField(NamedTuple):
    name: str
    """The name in the JSON; the dict key is the escaped name."""
    declared: Declared


@dataclass(slots=True, eq=False)
class Declared:
    """Type, JSON conversion and maximum size of a value."""

    type: Type
    convert: Callable[[Any], Any]
    """Converts raw JSON; raises CelError for data that does not fit."""
    plain: PythonType | None = None
    """The Python type that needs no conversion; the interpreter's fast path."""
    max_size: int = 0
    """Largest length of a string, list or map, for estimates; 0 for scalars and objects."""
    min_bytes: int = 1
    """Smallest serialised size, for estimates."""
    fields: dict[str, DeclaredField] = field(default_factory=dict)
    """Fields by the name that an expression uses (escaped)."""
    by_name: dict[str, DeclaredField] = field(default_factory=dict)
    """Fields by the name in the JSON, including those that no expression can reach."""
    others: Declared | None = None
    """Type of all other fields; None if there are no others."""
    key: Declared | None = None
    element: Declared | None = None
    list_type: str = "atomic"
    list_keys: tuple[str, ...] = ()
    nullable: bool = False

    def field_named(self, name: str) -> DeclaredField | None:
        """Return a field by its name in an expression; a reserved word needs no escape after a
        dot."""
        found = self.fields.get(name)
        if found is None and name in RESERVED:
            found = self.fields.get(f"__{name}__")
        if found is None and self.others is not None:
            found = DeclaredField(name, self.others)
        return found

    def convert_element(self, raw: Any) -> Any:
        assert self.element is not None
        return self.element.convert(raw)


def sizes_of(root: Declared) -> SizeAt:
    """Return the size lookup below one declared value, for any variable name at the head of the
    path."""

    def size_at(path: Path) -> Range | None:
        at: Declared | None = root
        for step in path[1:]:
            if at is None:
                return None
            match step:
                case "@items" | "@values":
                    at = at.element
                case "@keys":
                    at = at.key
                case _:
                    found = at.fields.get(step)
                    at = None if found is None else found.declared
        return None if at is None else Range(0, at.max_size)

    return size_at
