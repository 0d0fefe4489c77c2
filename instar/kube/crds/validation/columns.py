"""Validates the subresources and printer columns of a CRD (internal form).

Called by ``crd.py``, with the internal form of ``kube/api/crd_codec.py``.
"""

from __future__ import annotations

from instar.base.field_errors import FieldError, child, index, invalid, required
from instar.base.json_values import Object
from instar.kube.api.jsonpath import JsonPathError, JsonPathTooLong, compile_path

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_MAX_SHOWN_PATH = 100
"""A path with more characters is cut in error messages."""
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")


def subresource_errors(subresources: Object | None, path: str) -> list[FieldError]:
    scale = (subresources or {}).get("scale")
    if scale is None:
        return []
    return [
        *_replicas(scale.get("specReplicasPath", ""), ".spec", f"{path}.scale.specReplicasPath"),
        *_replicas(
            scale.get("statusReplicasPath", ""), ".status", f"{path}.scale.statusReplicasPath"
        ),
        *_selector(scale.get("labelSelectorPath") or "", f"{path}.scale.labelSelectorPath"),
    ]


def _replicas(json_path: str, under: str, path: str) -> list[FieldError]:
    if not json_path:
        return [required(path)]
    errors = _simple_path(json_path, path)
    if not errors and not json_path.startswith(f"{under}."):
        errors.append(invalid(path, json_path, f"should be a json path under {under}"))
    return errors


def _selector(json_path: str, path: str) -> list[FieldError]:
    if not json_path:
        return []
    errors = _simple_path(json_path, path)
    if not errors and not json_path.startswith((".spec.", ".status.")):
        text = "should be a json path under either .spec or .status"
        errors.append(invalid(path, json_path, text))
    return errors


def _simple_path(json_path: str, path: str) -> list[FieldError]:
    if json_path.startswith("."):
        return []
    return [invalid(path, json_path, "must be a simple json path starting with .")]


def column_errors(columns: list[Object] | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, column in enumerate(columns or ()):
        errors += _column(column, index(path, position))
    return errors


def _column(column: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    type, format = column.get("type", ""), column.get("format", "")
    json_path = column.get("JSONPath", "")
    if not column.get("name"):
        errors.append(required(child(path, "name")))
    text = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not type:
        errors.append(required(child(path, "type"), text))
    elif type not in _COLUMN_TYPES:
        errors.append(invalid(child(path, "type"), type, text))
    if format and format not in _COLUMN_FORMATS:
        text = f"must be one of {','.join(_COLUMN_FORMATS)}"
        errors.append(invalid(child(path, "format"), format, text))
    if not json_path:
        errors.append(required(child(path, "JSONPath")))
    else:
        errors += _simple_path(json_path, child(path, "JSONPath"))
        errors += _bounds(json_path, child(path, "JSONPath"))
    return errors


def _bounds(json_path: str, path: str) -> list[FieldError]:
    """Return an error for a path that exceeds our limits. An invalid path is accepted, as
    upstream does; its column is missing from tables."""
    try:
        compile_path(json_path)
    except JsonPathTooLong as problem:
        shown = (
            json_path[:_MAX_SHOWN_PATH] + "..." if len(json_path) > _MAX_SHOWN_PATH else json_path
        )
        return [invalid(path, shown, str(problem))]
    except JsonPathError:
        pass
    return []
