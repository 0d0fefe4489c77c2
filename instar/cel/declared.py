"""A declared type: what the checker knows of a variable, how raw JSON becomes its value, and how
large it can get. The schema side (``declare.py``) fills it in; the language only reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from instar.cel.types import Type

PythonType: TypeAlias = type


class Field(NamedTuple):
    name: str
    """The name in the JSON; the key it is filed under is the escaped one."""
    declared: Declared


@dataclass(slots=True, eq=False)
class Declared:
    type: Type
    convert: Callable[[Any], Any]
    """From raw JSON; raises CelError for data that does not fit."""
    plain: PythonType | None = None
    """The Python type whose values need no conversion at all; the interpreter's fast path."""
    max_size: int = 1
    """Largest length of a string, list or map, for estimates."""
    min_bytes: int = 1
    """Smallest serialised form, for estimates."""
    fields: dict[str, Field] = field(default_factory=dict)
    """By the name an expression writes (escaped)."""
    by_name: dict[str, Field] = field(default_factory=dict)
    """By the name in the JSON, also those no expression can reach."""
    element: Declared | None = None
    list_type: str = "atomic"
    list_keys: tuple[str, ...] = ()
    nullable: bool = False

    def convert_element(self, raw: Any) -> Any:
        assert self.element is not None
        return self.element.convert(raw)
