"""Values at the paths of a CRD's ``/scale`` subresource: reads and validates replicas and selector.

Called by ``pipeline.py`` on every write and by ``server/registry/verbs/subresources/scale.py``,
which builds Scale objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from instar.base.field_errors import FieldError, go_plain, invalid
from instar.base.json_values import Object
from instar.kube.api.crd import ScalePaths

MOST_REPLICAS = 2_147_483_647


class WrongType(Exception):
    """A declared path has a value of another type; the text is upstream's."""

    def __init__(self, path: str, value: Any, wanted: str) -> None:
        found = _go_name(value)
        super().__init__(
            f"{path} accessor error: {go_plain(value)} is of the type {found}, expected {wanted}"
        )


def scale_errors(obj: Object, paths: ScalePaths, *, status_only: bool) -> list[FieldError]:
    """Return the errors at the declared paths; a status write does not check the spec."""
    found: list[FieldError] = []
    replica_paths = [paths.status_replicas]
    if not status_only:
        replica_paths.insert(0, paths.spec_replicas)
    for path in replica_paths:
        found += _checked(obj, path, _replica_errors, 0)
    if paths.label_selector:
        found += _checked(obj, paths.label_selector, _selector_errors, "")
    return found


def int_at(obj: Object, path: str) -> int | None:
    """Return the integer at a declared path, or None. Raises ``WrongType``."""
    value = _at(obj, path)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongType(path, value, "int64")
    return value


def string_at(obj: Object, path: str) -> str:
    """Return the string at a declared path, or an empty one. Raises ``WrongType``."""
    value = _at(obj, path)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise WrongType(path, value, "string")
    return value


def _checked(
    obj: Object, path: str, check: Callable[[Object, str], list[FieldError]], empty: Any
) -> list[FieldError]:
    """Return the errors of a value; errors show ``empty`` instead of a value of the wrong type."""
    try:
        return check(obj, path)
    except WrongType as error:
        return [invalid(path, empty, str(error))]


def _replica_errors(obj: Object, path: str) -> list[FieldError]:
    value = int_at(obj, path)
    if value is None:
        return []
    if value < 0:
        return [invalid(path, value, "should be a non-negative integer")]
    if value > MOST_REPLICAS:
        return [invalid(path, value, f"should be less than or equal to {MOST_REPLICAS}")]
    return []


def _selector_errors(obj: Object, path: str) -> list[FieldError]:
    string_at(obj, path)
    return []


def _at(obj: Object, path: str) -> Any:
    value: Any = obj
    for part in path.lstrip(".").split("."):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise WrongType(path, value, "map[string]interface{}")
        value = value.get(part)
    return value


def _go_name(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case list():
            return "[]interface {}"
        case _:
            return "map[string]interface {}"
