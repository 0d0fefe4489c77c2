"""Orders the fields of built-in objects as Go's structs do, for error messages that quote them.

Called by ``documents.py``.
"""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from instar.kube.facts.messages import MessageField, fields_of


def in_go_order(value: Any, message: str) -> Any:
    """Return ``value``, of a type in ``kube/facts``, with the members of each struct in Go's
    order."""
    if not isinstance(value, dict):
        return value
    out: Object = {name: value[name] for name in ("kind", "apiVersion") if name in value}
    _collect_fields(value, message, out)
    out |= {name: item for name, item in value.items() if name not in out}
    return out


def _collect_fields(value: Object, message: str, out: Object) -> None:
    for field in fields_of(message):
        if not field.name and "#" in field.type:
            _collect_fields(value, field.type, out)
        elif field.name in value:
            out[field.name] = _member(value[field.name], field)


def _member(value: Any, field: MessageField) -> Any:
    if field.mapped and isinstance(value, dict):
        return {name: _ordered_by_type(value[name], field.type) for name in sorted(value)}
    if field.repeated and isinstance(value, list):
        return [_ordered_by_type(item, field.type) for item in value]
    return _ordered_by_type(value, field.type)


def _ordered_by_type(value: Any, type: str) -> Any:
    return in_go_order(value, type) if "#" in type else value
