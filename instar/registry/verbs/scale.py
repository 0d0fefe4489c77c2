"""The scale subresource: an ``autoscaling/v1`` Scale projected out of an object and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from instar.api.crd import ScalePaths
from instar.errors import BadRequest, Internal
from instar.fields import FieldError, invalid
from instar.plain import Object

API_VERSION, KIND = "autoscaling/v1", "Scale"
_MAX = 2_147_483_647
_UNSET = -2_147_483_648


class _WrongType(Exception):
    def __init__(self, path: str, value: Any, wanted: str) -> None:
        found = _go_name(value)
        super().__init__(
            f"{path} accessor error: {_shown(value)} is of the type {found}, expected {wanted}"
        )


def to_scale(obj: Object, paths: ScalePaths) -> Object:
    """The Scale of an object. Raises ``Internal`` where upstream answers 500."""
    try:
        desired = _int_at(obj, paths.spec_replicas)
        actual = _int_at(obj, paths.status_replicas)
        selector = _string_at(obj, paths.label_selector) if paths.label_selector else ""
    except _WrongType as error:
        raise Internal(str(error)) from error
    if desired is None:
        raise Internal(f'the spec replicas field "{paths.spec_replicas}" does not exist')
    status: Object = {"replicas": _int32(actual or 0)}
    if selector:
        status["selector"] = selector
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": _int32(desired)} if desired else {},
        "status": status,
    }


def unset_scale(obj: Object) -> Object:
    """For a patch of an object whose replicas field is not there yet: upstream marks it so."""
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": _UNSET},
        "status": {"replicas": 0},
    }


def has_replicas(obj: Object, paths: ScalePaths) -> bool:
    try:
        return _int_at(obj, paths.spec_replicas) is not None
    except _WrongType:
        return True


def set_replicas(obj: Object, scale: Object, paths: ScalePaths) -> None:
    """Write the Scale's wish into the object (in place); no wish is a wish for none."""
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas == _UNSET:
        raise BadRequest(f'the spec replicas field "{paths.spec_replicas}" cannot be empty')
    value: Any = obj
    *parents, last = paths.spec_replicas.lstrip(".").split(".")
    for part in parents:
        value = value.setdefault(part, {})
    value[last] = replicas


def scale_errors(obj: Object, paths: ScalePaths | None, *, status_only: bool) -> list[FieldError]:
    """What an ordinary write must respect when the version declares scale."""
    if paths is None:
        return []
    found: list[FieldError] = []
    replica_paths = [paths.status_replicas]
    if not status_only:
        replica_paths.insert(0, paths.spec_replicas)
    for path in replica_paths:
        found += _checked(obj, path, _replica_errors)
    if paths.label_selector:
        found += _checked(obj, paths.label_selector, _selector_errors)
    return found


def _checked(
    obj: Object, path: str, check: Callable[[Object, str], list[FieldError]]
) -> list[FieldError]:
    try:
        return check(obj, path)
    except _WrongType as error:
        return [invalid(path, 0, str(error))]


def _replica_errors(obj: Object, path: str) -> list[FieldError]:
    value = _int_at(obj, path)
    if value is None:
        return []
    if value < 0:
        return [invalid(path, value, "should be a non-negative integer")]
    if value > _MAX:
        return [invalid(path, value, f"should be less than or equal to {_MAX}")]
    return []


def _selector_errors(obj: Object, path: str) -> list[FieldError]:
    _string_at(obj, path)
    return []


def _at(obj: Object, path: str) -> Any:
    value: Any = obj
    for part in path.lstrip(".").split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def _int_at(obj: Object, path: str) -> int | None:
    value = _at(obj, path)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise _WrongType(path, value, "int64")
    return value


def _string_at(obj: Object, path: str) -> str:
    value = _at(obj, path)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _WrongType(path, value, "string")
    return value


def _int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


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


def _shown(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
