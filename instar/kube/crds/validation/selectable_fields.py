"""Validates selectable fields: at most eight, each naming a scalar of the schema.

Called by ``crd.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from instar.base.field_errors import (
    FieldError,
    child,
    duplicate,
    index,
    invalid,
    required,
    too_many,
)
from instar.kube.schema.structure.field_path import PathProblem, resolve

MOST = 8
"""Maximum selectable fields of a version."""
_TYPES = ("string", "boolean", "integer")
_WRONG_TYPE = (
    "must point to a field of type string, boolean or integer. "
    "Enum string fields and strings with formats are allowed."
)


def selectable_errors(
    fields: Sequence[Mapping[str, Any]], schema: Mapping[str, Any], path: str, *, limited: bool
) -> list[FieldError]:
    """Return the errors; ``limited`` is off when the old object already had the same, too long
    list."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for position, field in enumerate(fields):
        errors += _field(field.get("jsonPath", ""), schema, index(path, position), seen)
    if limited and len(seen) > MOST:
        errors.append(too_many(path, len(seen), MOST))
    return errors


def _field(json_path: str, schema: Mapping[str, Any], at: str, seen: set[str]) -> list[FieldError]:
    """Return the errors of one field; adds its normalised path to ``seen``."""
    where = child(at, "jsonPath")
    if not json_path:
        return [required(where)]
    try:
        place = resolve(json_path, schema, keys=False)
    except PathProblem as problem:
        return [invalid(where, json_path, f"is an invalid path: {problem}")]
    errors: list[FieldError] = []
    if place.names[0] == "metadata":
        errors.append(invalid(where, json_path, "must not point to fields in metadata"))
    if place.schema.get("type") not in _TYPES:
        errors.append(invalid(where, json_path, _WRONG_TYPE))
    if place.normal in seen:
        errors.append(duplicate(where, json_path))
    seen.add(place.normal)
    return errors
