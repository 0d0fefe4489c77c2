"""``Structural``: the structural schema, one frozen node per field.

``parse.py`` builds it from a CRD's JSONSchemaProps; pruning, defaulting, validation, CEL and field
ownership read it. Value keywords (minimum, pattern, allOf …) stay in ``raw``, which only
``schema/validation`` interprets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from instar.base.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ValidationRule:
    """One entry of ``x-kubernetes-validations``."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str | None = None
    field_path: str = ""
    optional_old_self: bool | None = None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Structural:
    """A node of the schema. ``additional`` is a node, a bool, or ``None`` when absent.

    A default of ``None`` means "no default": JSON null cannot be a default.
    """

    type: str = ""
    nullable: bool = False
    default: Any = None
    properties: Mapping[str, Structural] = field(default_factory=dict)
    items: Structural | None = None
    additional: Structural | bool | None = None
    preserve_unknown: bool = False
    embedded: bool = False
    int_or_string: bool = False
    list_type: str | None = None
    list_map_keys: tuple[str, ...] = ()
    map_type: str | None = None
    rules: tuple[ValidationRule, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The JSONSchemaProps of this node."""
    made: dict[object, Any] = field(default_factory=dict, init=False, repr=False)
    """Results cached by ``interning.py``."""
